#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Turn the uGNI tables (tests/data/gni) into C that does not compile when a header differs.

Usage: gni_tables.py DATADIR API OUT.c, where API is 0x5c or 0x5d: the revision to check. A row of
0x5d replaces one of 0x5c with the same name; rows newer than API are left out.
"""
import csv
import re
import sys


def rows(path):
    with open(path, newline="") as f:
        yield from csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE)


def since(row):
    return int(row["since"].split()[0], 16)


def constants(data, api, out):
    last = {}
    for row in rows(f"{data}/constants.tsv"):
        if since(row) <= api and row["kind"] in ("enum", "define"):
            last[row["name"]] = row
    for name, row in last.items():
        if row["value"] == "(empty)":
            out.append(f"_Static_assert(sizeof STR({name}) == 1, \"{name}\");")
            continue
        check = '_Static_assert((int64_t)({0}) == (int64_t)({1}), "{0}");'
        longer = re.search(r"(\d+) with (it|CRAY)", row["note"])
        if "only when CRAY" in row["note"]:
            out += ["#ifdef CRAY_CONFIG_GHAL_ARIES", check.format(name, row["value"]), "#endif"]
        elif longer:
            out += ["#ifdef CRAY_CONFIG_GHAL_ARIES", check.format(name, longer[1]), "#else",
                    check.format(name, row["value"]), "#endif"]
        else:
            out.append(check.format(name, row["value"]))
    for row in rows(f"{data}/constants.tsv"):
        name = row["name"]
        if row["kind"] == "macro" and "(" not in name:
            out.append(f"_Static_assert(SAME({name}, {row['value']}), \"{name}\");")
        elif row["kind"] == "macro":
            out.append(f"#ifndef {name.split('(')[0]}\n#error {name} is missing\n#endif")


def structs(data, api, out):
    sizes, fields = {}, {}
    for row in rows(f"{data}/structs.tsv"):
        if since(row) > api:
            continue
        name = row["struct"]
        if row["struct_size"]:
            sizes[name] = row["struct_size"]
        if row["field"]:
            fields[name, row["field"]] = (row["offset"], row["field_size"])
    for name, size in sizes.items():
        out.append(f"_Static_assert(sizeof({name}) == {size}, \"{name}\");")
    for (name, field), (offset, size) in fields.items():
        out.append(f"_Static_assert(offsetof({name}, {field}) == {offset}, \"{name}.{field}\");")
        out.append(
            f"_Static_assert(sizeof((({name} *)0)->{field}) == {size}, \"{name}.{field} size\");")


def functions(data, out):
    names = []
    for row in rows(f"{data}/functions.tsv"):
        if row["level"] == "data":
            out.append(f"const char **use_{row['name']} = {row['name']};")
            continue
        params = row["parameters"].replace(";", ",") or "void"
        out.append(f"{row['return_type']} (*use_{row['name']})({params}) = {row['name']};")
        names.append(row["name"])
    out.append("const char *const function_names[] = {")
    out += [f'    "{n}",' for n in names]
    out.append("    0};")


def main():
    data, api, path = sys.argv[1], int(sys.argv[2], 16), sys.argv[3]
    out = [
        f"/* Made by {sys.argv[0].split('/')[-1]} from the tables; do not edit. */",
        f"#define WEFT_GNI_API {api:#x}",
        "#include <stddef.h>",
        "#include <gni_kernel.h>",
        "#define STR_(x) #x",
        "#define STR(x) STR_(x)",
        "#define SAME(a, b) __builtin_strcmp(STR(a), STR(b)) == 0",
    ]
    constants(data, api, out)
    structs(data, api, out)
    functions(data, out)
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")


main()
