// SPDX-License-Identifier: BSD-2-Clause
// weft explain: what a reason means, or what a live process has had to say.
#include "base/reason.h"
#include "cli/cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static void print_help(FILE *out)
{
    fputs(
        "usage: weft explain NUMBER|NAME | --list | --pid PID [--json]\n\n"
        "Tells what a reason means (the number stands in vendor_err of a failed completion and in\n"
        "each line of weft run --explain): the cause, who has to act, and what to do.\n\n"
        "  --list       all reasons, one a line\n"
        "  --pid PID    the last failures of a running program\n"
        "  --json       as JSON\n"
        "  --markdown   the table of docs/errors.md\n",
        out);
}

static void print_reason(enum wf_reason why)
{
    printf("%u %s\n\n"
           "  cause    %s.\n"
           "  fault    %s.\n"
           "  to do    %s.\n",
           why, wf_reason_name(why), wf_reason_cause(why), wf_reason_fault(why),
           wf_reason_remedy(why));
}

static int list(void)
{
    enum wf_reason why;
    for (unsigned i = 0; (why = wf_reason_at(i)); i++)
        printf("%4u  %-18s %s\n", why, wf_reason_name(why), wf_reason_cause(why));
    return CLI_OK;
}

static int by_number(const void *a, const void *b)
{
    enum wf_reason x = *(const enum wf_reason *)a, y = *(const enum wf_reason *)b;
    return x < y ? -1 : x > y;
}

static const char *class_of(unsigned number)
{
    static const char *const names[] = {
        "",
        "Arguments and states of calls",
        "Memory of this side",
        "Refused by the responder",
        "No answer, and its consequences",
        "Dropped packets",
        "Resources and environment",
        "Connection management",
        "uGNI",
        "Async verbs",
    };
    return names[number / 100 % 10];
}

static int markdown(void)
{
    enum wf_reason all[512];
    unsigned n = 0, class = 0;
    while (n < 512 && (all[n] = wf_reason_at(n)))
        n++;
    qsort(all, n, sizeof(all[0]), by_number);
    puts("# Reasons\n\n"
         "What Weft says when something is refused or fails. The number stands in `vendor_err` of "
         "a\n"
         "failed completion, in each line of `weft run --explain` and in the JSON lines of\n"
         "`--explain-file`; `weft explain NUMBER` prints the same text.\n\n"
         "Made by `scripts/errors-doc` from `src/base/reasons.def`: do not edit.");
    for (unsigned i = 0; i < n; i++) {
        if ((unsigned)all[i] / 100 != class) {
            class = (unsigned)all[i] / 100;
            printf("\n## %uxx: %s\n\n| number | name | cause | who has to act | what to do |\n"
                   "|---|---|---|---|---|\n",
                   class, class_of((unsigned)all[i]));
        }
        printf("| %u | %s | %s | %s | %s |\n", all[i], wf_reason_name(all[i]),
               wf_reason_cause(all[i]), wf_reason_fault(all[i]), wf_reason_remedy(all[i]));
    }
    return CLI_OK;
}

int cli_explain(int argc, char **argv)
{
    static const struct option options[] = {
        {"list", no_argument, NULL, 'l'}, {"pid", required_argument, NULL, 'p'},
        {"json", no_argument, NULL, 'j'}, {"markdown", no_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'}, {0}};
    const char *pid = NULL;
    bool json = false;
    int c;
    while ((c = getopt_long(argc, argv, "lp:jh", options, NULL)) != -1) {
        switch (c) {
        case 'l':
            return list();
        case 'm':
            return markdown();
        case 'p':
            pid = optarg;
            break;
        case 'j':
            json = true;
            break;
        case 'h':
            print_help(stdout);
            return CLI_OK;
        default:
            return CLI_USAGE;
        }
    }
    if (pid && optind == argc)
        return cli_explain_pid(pid, json);
    if (pid || optind + 1 != argc)
        return cli_fail(CLI_USAGE, "explain", "one reason is needed; --list shows all");
    enum wf_reason why = wf_reason_find(argv[optind]);
    if (!why)
        return cli_fail(CLI_FAILED, "explain", "no reason \"%s\"; --list shows all", argv[optind]);
    print_reason(why);
    return CLI_OK;
}
