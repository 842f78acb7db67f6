// SPDX-License-Identifier: BSD-2-Clause
// weft run: sets the loader's variables and becomes the program, so that signals, the terminal and
// the exit status are the program's own.
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_help(FILE *out)
{
    fputs(
        "usage: weft run [OPTIONS] [--] PROGRAM [ARGUMENTS]\n\n"
        "Runs PROGRAM with Weft in place of the system's libibverbs: it and its children see the\n"
        "device weft0. Exit status and signals are the program's own.\n\n"
        "  --explain               one line on standard error for each root cause of a failure,\n"
        "                          with what to do about it (WEFT_EXPLAIN=1)\n"
        "  --explain-file FILE     the same as JSON lines, added to FILE\n"
        "  --leaks                 what was never destroyed or polled, at exit\n"
        "  --faults FILE           do what these rules say to its packets: weft-faults(5)\n"
        "  --faults-log FILE       what was done, there instead of on standard error\n"
        "  --capture FILE          all packets, within the host too, as pcapng\n"
        "  --flight-recorder[=4M]  keep the last packets, write them only when something fails\n"
        "  --snaplen BYTES         capture no more of each packet\n"
        "  -n RANKS                start that many local ranks of a job (uGNI programs, PMI); the\n"
        "                          exit status is that of the first rank that failed\n"
        "  --ppn RANKS             ranks of a node as PMI sees them (default: all on one)\n\n"
        "Weft's own exit status: 127 the program is not there, 126 it cannot be run with Weft.\n",
        out);
}

// VAR=item:old, unless item is in it already (weft run inside weft run).
static int add_to_list(const char *var, const char *item, bool front)
{
    const char *old = getenv(var);
    if (!old || !*old)
        return setenv(var, item, 1);
    size_t n = strlen(item);
    for (const char *p = strstr(old, item); p; p = strstr(p + 1, item))
        if ((p == old || p[-1] == ':') && (p[n] == 0 || p[n] == ':'))
            return 0;
    char *both = NULL;
    if (asprintf(&both, "%s:%s", front ? item : old, front ? old : item) < 0)
        return -1;
    int r = setenv(var, both, 1);
    free(both);
    return r;
}

static int set_loader(const char *libdir)
{
    char preload[PATH_MAX + 32];
    snprintf(preload, sizeof(preload), "%s/libweft-preload.so", libdir);
    // The loader splits both variables at colons (LD_PRELOAD at spaces too), with no way to quote.
    if (strpbrk(preload, ": "))
        return cli_fail(CLI_CANNOT, "run",
                        "the loader cannot use a folder with a space or colon in its name: %s",
                        libdir);
    if (add_to_list("LD_LIBRARY_PATH", libdir, true) != 0 ||
        (access(preload, R_OK) == 0 && add_to_list("LD_PRELOAD", preload, false) != 0))
        return cli_fail(CLI_CANNOT, "run", "out of memory");
    return 0;
}

static int refuse_program(enum cli_program_fault fault, const char *name, const char *path,
                          const char *detail)
{
    switch (fault) {
    case CLI_PROGRAM_OK:
        return 0;
    case CLI_PROGRAM_MISSING:
        if (strcmp(name, path) != 0)
            return cli_fail(CLI_NOT_FOUND, "run", "%s needs %s, which is not there", name, path);
        return cli_fail(CLI_NOT_FOUND, "run", "%s: not found", name);
    case CLI_PROGRAM_NOT_EXECUTABLE:
        return cli_fail(CLI_CANNOT, "run", "%s: not an executable file", path);
    case CLI_PROGRAM_STATIC:
        return cli_fail(CLI_CANNOT, "run",
                        "%s is statically linked: no library can be put in its place", path);
    case CLI_PROGRAM_OTHER_MACHINE:
        return cli_fail(CLI_CANNOT, "run", "%s %s", path, detail);
    case CLI_PROGRAM_PRIVILEGED:
        return cli_fail(CLI_CANNOT, "run",
                        "%s %s, so the loader ignores libraries from outside; run a copy without",
                        path, detail);
    }
    return 0;
}

static int rank_count(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    return *text && !*end && n >= 1 && n <= 4096 ? (int)n : -1;
}

int cli_run(int argc, char **argv)
{
    int ranks = 0, ppn = 0, status;
    int c;
    while ((c = getopt_long(argc, argv, "+ehn:", cli_run_long_options(), NULL)) != -1) {
        switch (c) {
        case 'n':
        case 'p':
            if (rank_count(optarg) < 0)
                return cli_fail(CLI_USAGE, "run", "%s: not a number from 1 to 4096", optarg);
            *(c == 'n' ? &ranks : &ppn) = rank_count(optarg);
            break;
        case 'h':
            print_help(stdout);
            return CLI_OK;
        case '?':
            return CLI_USAGE;
        default:
            if ((status = cli_run_option(c, optarg)))
                return status;
        }
    }
    if (optind >= argc) {
        print_help(stderr);
        return CLI_USAGE;
    }

    char libdir[PATH_MAX], path[PATH_MAX], detail[PATH_MAX];
    char **program = argv + optind;
    enum cli_program_fault fault = cli_program_check(program[0], path, detail);
    status = refuse_program(fault, program[0], path, detail);
    if (status)
        return status;
    if (cli_libdir(libdir) != 0)
        return cli_fail(CLI_CANNOT, "run",
                        "%s/libibverbs.so.1 is missing: build or install all of Weft", libdir);
    status = set_loader(libdir);
    if (status)
        return status;
    if (ranks)
        return cli_run_ranks(ranks, ppn && ppn < ranks ? ppn : ranks, program);
    execvp(program[0], program);
    int err = errno;
    return cli_fail(err == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT, "run", "%s: %s", program[0],
                    strerror(err));
}
