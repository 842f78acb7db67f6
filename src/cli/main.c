// SPDX-License-Identifier: BSD-2-Clause
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct cli_command commands[] = {
    {"run", "run a program, and its children, with Weft", cli_run},
    {"explain", "what a reason number means; the failures of a live process", cli_explain},
    {"why", "what a program that hangs waits for", cli_why},
    {"status", "processes, queue pairs, memory", cli_status},
    {"stat", "counters as text, JSON or for Prometheus", cli_stat},
    {"top", "live rates of processes and queue pairs", cli_top},
    {"faults", "fault rules for all programs that run", cli_faults},
    {"capture", "packets of all programs as a pcapng file", cli_capture},
    {"perf", "latency and bandwidth by message size", cli_helper},
    {"devinfo", "the device, its limits and addresses", cli_helper},
    {"doctor", "what this host allows, and what to change", cli_doctor},
    {"version", "print the version", cli_version},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
    fputs("Weft: RDMA without the hardware.\n\n"
          "usage: weft COMMAND [ARGUMENTS]\n\n"
          "commands:\n",
          out);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n`weft COMMAND --help` tells more, `weft help TOPIC` of: explain, faults, capture, "
          "paths.\n"
          "  weft run ibv_devinfo\n"
          "  weft run --explain -- ib_write_bw 10.0.0.2\n",
          out);
}

int cli_fail(int status, const char *command, const char *fmt, ...)
{
    char text[PATH_MAX + 512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "weft %s: %s\n", command, text);
    return status;
}

// Of a command, its own help; else a topic.
static int help_of(const char *what)
{
    char *words[] = {(char *)what, "--help", NULL};
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(what, commands[i].name) == 0 && strcmp(what, "explain") != 0 &&
            strcmp(what, "faults") != 0 && strcmp(what, "capture") != 0)
            return commands[i].main(2, words);
    return cli_topic(what);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 && argc > 2)
        return help_of(argv[2]);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0)
        return cli_version(argc - 1, argv + 1);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        static char name[32]; // what getopt's messages begin with
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        snprintf(name, sizeof(name), "weft %s", commands[i].name);
        if (commands[i].main != cli_helper)
            argv[1] = name;
        return commands[i].main(argc - 1, argv + 1);
    }
    fprintf(stderr, "weft: no command \"%s\"; `weft --help` lists them\n", argv[1]);
    return CLI_USAGE;
}
