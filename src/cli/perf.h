// SPDX-License-Identifier: BSD-2-Clause
// weft perf: latency and bandwidth over verbs, between two processes of this host or two hosts.
#ifndef WF_CLI_PERF_H
#define WF_CLI_PERF_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define PERF_MAX_SIZES 24

struct perf_latency {
    uint32_t size;
    double min, p50, p90, p99, p999, max; // us, one way
};

struct perf_bandwidth {
    uint32_t size;
    double bytes, messages; // per second
};

struct perf_results {
    const char *peer;
    unsigned nlat, nbw;
    struct perf_latency lat[PERF_MAX_SIZES];
    struct perf_bandwidth send[PERF_MAX_SIZES], write[PERF_MAX_SIZES], read[PERF_MAX_SIZES];
};

struct perf_options {
    const char *host; // NULL: a process of this host
    bool server, json, quick;
    int port, gid;
    const char *plot;
    double seconds; // for each size
};

int perf_main(int argc, char **argv);
// Both ends; `chan` is a stream between them. 0 or an exit status.
int perf_run(const struct perf_options *o, int chan, bool client, struct perf_results *r);
int perf_plot(const struct perf_results *r, const char *path);

#endif
