// SPDX-License-Identifier: BSD-2-Clause
// Options of weft run that are handed to the program's libraries as variables. Files are opened
// here, so that a mistake is seen at once and not in the middle of the program, and named by full
// paths, as programs change directory.
#include "base/fault_rules.h"
#include "base/pcapng.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_RECORDER (1ull << 30)

static int set_path(const char *var, const char *name)
{
    char path[PATH_MAX];
    if (!realpath(name, path))
        return cli_fail(CLI_FAILED, "run", "%s: %s", name, strerror(errno));
    return setenv(var, path, 1) ? cli_fail(CLI_FAILED, "run", "out of memory") : 0;
}

static int output_file(const char *var, const char *name, int flags)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
    if (fd < 0)
        return cli_fail(CLI_FAILED, "run", "%s: %s", name, strerror(errno));
    close(fd);
    return set_path(var, name);
}

int cli_read_rules(const char *command, const char *name, char *text, size_t *len)
{
    static struct wf_fault_rules rules;
    char err[256];
    int fd = strcmp(name, "-") == 0 ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cli_fail(CLI_FAILED, command, "%s: %s", name, strerror(errno));
    ssize_t n = 0;
    *len = 0;
    while (*len <= WF_FAULT_TEXT && (n = read(fd, text + *len, WF_FAULT_TEXT + 1 - *len)) > 0)
        *len += (size_t)n;
    int saved = errno;
    if (fd != STDIN_FILENO)
        close(fd);
    if (n < 0)
        return cli_fail(CLI_FAILED, command, "%s: %s", name, strerror(saved));
    if (wf_fault_parse(text, *len, &rules, err, sizeof(err)))
        return cli_fail(CLI_FAILED, command, "%s: %s", name, err);
    return 0;
}

static int use_rules(const char *name)
{
    static char text[WF_FAULT_TEXT + 1];
    size_t len;
    int status = cli_read_rules("run", name, text, &len);
    return status ? status : set_path("WEFT_FAULTS", name);
}

int cli_create_capture(const char *command, const char *name)
{
    uint8_t head[256];
    size_t len = wf_pcapng_header(head, sizeof(head));
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, head, len) != (ssize_t)len) {
        int status = cli_fail(CLI_FAILED, command, "%s: %s", name, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    close(fd);
    return 0;
}

static int use_capture(const char *name)
{
    int status = cli_create_capture("run", name);
    return status ? status : set_path("WEFT_CAPTURE", name);
}

int cli_parse_size(const char *text, uint64_t max, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || errno || v > max)
        return -EINVAL;
    switch (*end) {
    case 'K':
    case 'k':
        v <<= 10;
        end++;
        break;
    case 'M':
    case 'm':
        v <<= 20;
        end++;
        break;
    case 'G':
    case 'g':
        v <<= 30;
        end++;
        break;
    }
    if (*end || v > max)
        return -EINVAL;
    *out = v;
    return 0;
}

static int use_size(const char *var, const char *text, uint64_t max)
{
    uint64_t v;
    char number[24];
    if (cli_parse_size(text, max, &v))
        return cli_fail(CLI_USAGE, "run", "\"%s\" is not a size as 64K or 16M", text);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)v);
    return setenv(var, number, 1) ? cli_fail(CLI_FAILED, "run", "out of memory") : 0;
}

const struct option *cli_run_long_options(void)
{
    static const struct option options[] = {
        {"explain", no_argument, NULL, 'e'},
        {"explain-file", required_argument, NULL, CLI_OPT_EXPLAIN_FILE},
        {"leaks", no_argument, NULL, CLI_OPT_LEAKS},
        {"faults", required_argument, NULL, CLI_OPT_FAULTS},
        {"faults-log", required_argument, NULL, CLI_OPT_FAULTS_LOG},
        {"capture", required_argument, NULL, CLI_OPT_CAPTURE},
        {"flight-recorder", optional_argument, NULL, CLI_OPT_RECORDER},
        {"snaplen", required_argument, NULL, CLI_OPT_SNAPLEN},
        {"help", no_argument, NULL, 'h'},
        {"ranks", required_argument, NULL, 'n'},
        {"ppn", required_argument, NULL, 'p'},
        {0}};
    return options;
}

int cli_run_option(int c, const char *arg)
{
    switch (c) {
    case 'e':
        setenv("WEFT_EXPLAIN", "1", 1);
        return 0;
    case CLI_OPT_EXPLAIN_FILE:
        return output_file("WEFT_EXPLAIN_FILE", arg, O_APPEND);
    case CLI_OPT_LEAKS:
        setenv("WEFT_LEAKS", "1", 1);
        return 0;
    case CLI_OPT_FAULTS:
        return use_rules(arg);
    case CLI_OPT_FAULTS_LOG:
        return output_file("WEFT_FAULTS_LOG", arg, O_TRUNC);
    case CLI_OPT_CAPTURE:
        return use_capture(arg);
    case CLI_OPT_RECORDER:
        return use_size("WEFT_CAPTURE_RING", arg ? arg : "4M", MAX_RECORDER);
    case CLI_OPT_SNAPLEN:
        return use_size("WEFT_CAPTURE_SNAPLEN", arg, 65536);
    default:
        return CLI_USAGE;
    }
}
