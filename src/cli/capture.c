// SPDX-License-Identifier: BSD-2-Clause
// weft capture: all packets of the fabric to one file, until interrupted.
#include "cli/cli.h"
#include "cli/fabric.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int help(FILE *out, int status)
{
    fputs("usage: weft capture -w FILE [OPTIONS]\n\n"
          "Writes the packets of all programs of this fabric as RoCEv2 frames to a pcapng file, "
          "those\n"
          "within the host included, until interrupted. tshark and Wireshark read it.\n\n"
          "  -w, --write FILE            the file\n"
          "  -d, --duration SECONDS      stop by itself\n"
          "      --snaplen BYTES         no more of each packet\n"
          "      --flight-recorder[=4M]  keep the last packets, write them only when something "
          "fails\n"
          "\nThe filter is the reader's: tshark -r FILE -Y 'infiniband.bth.destqp == 0x10002'\n",
          out);
    return status;
}

static void report(const char *name)
{
    struct stat st;
    if (stat(name, &st) == 0)
        fprintf(stderr, "weft capture: %lld bytes in %s\n", (long long)st.st_size, name);
}

static int run(struct cli_fabric *f, const char *name, uint64_t ring, uint64_t snaplen,
               double seconds)
{
    char path[PATH_MAX];
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    if (!realpath(name, path))
        return cli_fail(CLI_FAILED, "capture", "%s: %s", name, strerror(errno));
    int ret = cli_fabric_capture(f, path, ring, (uint32_t)snaplen);
    if (ret == -EBUSY)
        return cli_fail(CLI_FAILED, "capture", "another capture of this fabric runs");
    if (ret)
        return cli_fail(CLI_FAILED, "capture", "%s: %s", path, strerror(-ret));
    fprintf(stderr, "weft capture: %u processes, to %s; ^C ends it\n", f->n, name);
    struct timespec ts = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (sigtimedwait(&stop, NULL, seconds > 0 ? &ts : NULL) < 0 && errno == EINTR)
        ;
    cli_fabric_capture(f, "", 0, 0);
    struct timespec moment = {0, 100000000};
    nanosleep(&moment, NULL); // processes write what they still hold
    report(name);
    return CLI_OK;
}

int cli_capture(int argc, char **argv)
{
    static const struct option options[] = {{"write", required_argument, NULL, 'w'},
                                            {"duration", required_argument, NULL, 'd'},
                                            {"snaplen", required_argument, NULL, 's'},
                                            {"flight-recorder", optional_argument, NULL, 'r'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *file = NULL;
    uint64_t ring = 0, snaplen = 0;
    double seconds = 0;
    struct cli_fabric f;
    int c;
    while ((c = getopt_long(argc, argv, "w:d:h", options, NULL)) != -1) {
        if (c == 'h')
            return help(stdout, CLI_OK);
        if (c == 'w')
            file = optarg;
        else if (c == 'd' && (seconds = strtod(optarg, NULL)) <= 0)
            return cli_fail(CLI_USAGE, "capture", "\"%s\" is not a time in seconds", optarg);
        else if (c == 's' && cli_parse_size(optarg, 65536, &snaplen))
            return cli_fail(CLI_USAGE, "capture", "\"%s\" is not a size up to 65536", optarg);
        else if (c == 'r' && cli_parse_size(optarg ? optarg : "4M", 1u << 30, &ring))
            return cli_fail(CLI_USAGE, "capture", "\"%s\" is not a size as 16M", optarg);
        else if (c == '?')
            return CLI_USAGE;
    }
    if (!file || optind != argc)
        return cli_fail(CLI_USAGE, "capture", "-w FILE is needed, and nothing more; see --help");
    int status = cli_fabric_open("capture", &f);
    if (status)
        return status;
    status = cli_create_capture("capture", file);
    if (!status)
        status = run(&f, file, ring, snaplen, seconds);
    cli_fabric_close(&f);
    return status;
}
