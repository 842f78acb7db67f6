// SPDX-License-Identifier: BSD-2-Clause
// The `weft` tool: one table of subcommands (main.c), one small file for each.
#ifndef WF_CLI_CLI_H
#define WF_CLI_CLI_H

#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Exit status of weft itself, as a shell has them: the program's own status is passed through.
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_CANNOT = 126,    // the program is there and cannot be run with Weft
    CLI_NOT_FOUND = 127, // the program is not there
};

// A subcommand. argv[0] is its name; getopt's state is fresh.
struct cli_command {
    const char *name;
    const char *summary; // one line of `weft --help`
    int (*main)(int argc, char **argv);
};

int cli_run(int argc, char **argv);
int cli_version(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_status(int argc, char **argv);
int cli_stat(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_why(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_faults(int argc, char **argv);
int cli_capture(int argc, char **argv);
int cli_helper(int argc, char **argv); // devinfo, perf
int cli_topic(const char *topic);      // weft help TOPIC
int cli_explain_pid(const char *pid, bool json);

// N local ranks of a program that uses PMI, ppn of them a node. The environment is the caller's.
// Exit status of the job.
int cli_run_ranks(int n, int ppn, char **program);

// Options of `weft run` that become variables (run_options.c): 0 or an exit status.
enum {
    CLI_OPT_EXPLAIN_FILE = 256,
    CLI_OPT_LEAKS,
    CLI_OPT_FAULTS,
    CLI_OPT_FAULTS_LOG,
    CLI_OPT_CAPTURE,
    CLI_OPT_RECORDER,
    CLI_OPT_SNAPLEN,
};
const struct option *cli_run_long_options(void);
int cli_run_option(int c, const char *arg);

// Read and check a file of fault rules ("-": standard input) into text[WF_FAULT_TEXT + 1]; make an
// empty capture file. 0 or an exit status.
int cli_read_rules(const char *command, const char *name, char *text, size_t *len);
int cli_create_capture(const char *command, const char *name);
int cli_parse_size(const char *text, uint64_t max, uint64_t *out); // "16M"; 0 or -EINVAL

// "weft COMMAND: ..." on standard error, and `status`.
int cli_fail(int status, const char *command, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// The folder with libibverbs.so.1 of this installation or build tree, found from the place of the
// running binary, or WEFT_LIBDIR. 0, or -ENOENT: `dir` then says where it should have been.
int cli_libdir(char dir[PATH_MAX]);

// Why a program cannot use Weft.
enum cli_program_fault {
    CLI_PROGRAM_OK,
    CLI_PROGRAM_MISSING,
    CLI_PROGRAM_NOT_EXECUTABLE,
    CLI_PROGRAM_STATIC,
    CLI_PROGRAM_OTHER_MACHINE,
    CLI_PROGRAM_PRIVILEGED,
};

// Where execvp() would find `name`, and whether the loader will take our libraries there; for a
// script, its interpreter is judged. `detail` is text for the message.
enum cli_program_fault cli_program_check(const char *name, char path[PATH_MAX],
                                         char detail[PATH_MAX]);

#endif
