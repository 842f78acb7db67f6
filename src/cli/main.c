// SPDX-License-Identifier: BSD-2-Clause
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct cli_command commands[] = {
    {"run", "run a program, and its children, with Weft", cli_run},
    {"explain", "what a reason number means; the failures of a live process", cli_explain},
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
    fputs("\n`weft COMMAND --help` tells more. For example:\n"
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

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0)
        return cli_version(argc - 1, argv + 1);
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].main(argc - 1, argv + 1);
    fprintf(stderr, "weft: no command \"%s\"; `weft --help` lists them\n", argv[1]);
    return CLI_USAGE;
}
