// SPDX-License-Identifier: BSD-2-Clause
// weft stat: counters, as text, JSON or for Prometheus.
#include "cli/cli.h"
#include "cli/counters.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static int help(FILE *out, int status)
{
    fputs("usage: weft stat [--json | --prometheus] [--all] [PID]\n\n"
          "Counters of each process, with mlx5's names. Zeros are left out of the text but for "
          "--all.\n",
          out);
    return status;
}

static void text(const struct cli_process *p, bool all)
{
    printf("%s, pid %d\n", p->name, p->pid);
    for (const struct cli_counter *c = cli_counters; c->name; c++)
        if (all || c->get(&p->hca))
            printf("  %-28s %16llu  %s\n", c->name, (unsigned long long)c->get(&p->hca), c->help);
}

static void prometheus(const struct cli_fabric *f, const struct cli_process *only)
{
    for (const struct cli_counter *c = cli_counters; c->name; c++) {
        printf("# HELP weft_%s %s\n# TYPE weft_%s counter\n", c->name, c->help, c->name);
        for (unsigned i = 0; i < f->n; i++) {
            const struct cli_process *p = f->processes[i];
            if (p->readable && (!only || p == only))
                printf("weft_%s{device=\"weft0\",port=\"1\",pid=\"%d\",program=\"%s\"} %llu\n",
                       c->name, p->pid, p->name, (unsigned long long)c->get(&p->hca));
        }
    }
}

static json_t *as_json(const struct cli_process *p)
{
    json_t *o = json_object();
    for (const struct cli_counter *c = cli_counters; c->name; c++)
        json_object_set_new(o, c->name, json_integer((json_int_t)c->get(&p->hca)));
    return json_pack("{s:s,s:i,s:o}", "name", p->name, "pid", p->pid, "counters", o);
}

static void show(const struct cli_fabric *f, const struct cli_process *only, int format, bool all)
{
    json_t *list = json_array();
    if (format == 'P')
        prometheus(f, only);
    for (unsigned i = 0; i < f->n && format != 'P'; i++) {
        const struct cli_process *p = f->processes[i];
        if (!p->readable || (only && p != only))
            continue;
        if (format == 'j')
            json_array_append_new(list, as_json(p));
        else
            text(p, all);
    }
    if (format == 'j') {
        json_dumpf(list, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(list);
}

int cli_stat(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"prometheus", no_argument, NULL, 'P'},
                                            {"all", no_argument, NULL, 'a'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct cli_fabric f;
    struct cli_process *only = NULL;
    int format = 't', c;
    bool all = false;
    while ((c = getopt_long(argc, argv, "jah", options, NULL)) != -1) {
        if (c == 'h')
            return help(stdout, CLI_OK);
        if (c == '?')
            return CLI_USAGE;
        if (c == 'a')
            all = true;
        else
            format = c;
    }
    if (argc - optind > 1)
        return cli_fail(CLI_USAGE, "stat", "one process at most");
    int status = cli_fabric_open("stat", &f);
    if (status)
        return status;
    if (optind < argc)
        only = cli_process_find("stat", &f, argv[optind], &status);
    if (!status)
        show(&f, only, format, all);
    cli_fabric_close(&f);
    return status;
}
