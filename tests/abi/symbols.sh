#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# symbols.sh LIST LIBRARY SONAME: the library exports exactly the names of the list, each with its
# version, and carries the soname. Lines of the list: name version default|compat.
set -eu
list=$1 library=$2 soname=$3
command -v readelf >/dev/null || { echo "readelf (binutils) is missing"; exit 77; }
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

grep -v '^#' "$list" | awk '{print $1 ($3 == "default" ? "@@" : "@") $2}' | sort >"$work/want"
readelf --dyn-syms -W "$library" |
    awk '$7 != "UND" && $7 != "ABS" && $8 ~ /@/ {print $8}' | sort >"$work/have"
if ! diff "$work/want" "$work/have" >"$work/diff"; then
    echo "exports differ (< missing, > too many):"
    cat "$work/diff"
    exit 1
fi
readelf -d "$library" | grep -q "SONAME.*\[$soname\]" || { echo "soname is not $soname"; exit 1; }
echo "$(wc -l <"$work/want") names, soname $soname"
