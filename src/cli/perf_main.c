// SPDX-License-Identifier: BSD-2-Clause
#include "cli/perf.h"

#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int help(FILE *out, int status)
{
    fputs("usage: weft perf [OPTIONS] [HOST]\n\n"
          "Latency and bandwidth of verbs by message size, between two processes of this host, or\n"
          "with the one that runs `weft perf --server` on HOST.\n\n"
          "  -s, --server        wait for one client and serve it\n"
          "  -p, --port PORT     TCP port to meet at (18555)\n"
          "  -x, --gid INDEX     GID to use (0)\n"
          "  -t, --time SECONDS  for each size (0.3)\n"
          "  -q, --quick         few sizes\n"
          "      --json          results as JSON\n"
          "      --plot FILE     latencies and bandwidths as an SVG picture\n",
          out);
    return status;
}

static int wrong(int status, const char *what, const char *detail)
{
    fprintf(stderr, "weft perf: %s%s%s\n", what, detail ? ": " : "", detail ? detail : "");
    return status;
}

static int serve(int port)
{
    int one = 1, s = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), c = -1;
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(s, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(s, 1) == 0)
        c = accept(s, NULL, NULL);
    if (s >= 0)
        close(s);
    return c;
}

static int reach(const char *host, int port)
{
    char service[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *a;
    int s = -1;
    snprintf(service, sizeof(service), "%d", port);
    if (getaddrinfo(host, service, &hints, &list))
        return -1;
    for (a = list; a && s < 0; a = a->ai_next) {
        s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (s >= 0 && connect(s, a->ai_addr, a->ai_addrlen)) {
            close(s);
            s = -1;
        }
    }
    freeaddrinfo(list);
    return s;
}

static void print_text(const struct perf_results *r)
{
    printf("one-way latency of SEND, microseconds (%s)\n", r->peer);
    printf("%10s %9s %9s %9s %9s %9s %9s\n", "bytes", "min", "p50", "p90", "p99", "p99.9", "max");
    for (unsigned i = 0; i < r->nlat; i++) {
        const struct perf_latency *l = &r->lat[i];
        printf("%10u %9.2f %9.2f %9.2f %9.2f %9.2f %9.1f\n", l->size, l->min, l->p50, l->p90,
               l->p99, l->p999, l->max);
    }
    printf("\nbandwidth, MB/s (million bytes) and thousand messages a second\n");
    printf("%10s %10s %10s %10s %10s %10s %10s\n", "bytes", "SEND", "k/s", "WRITE", "k/s", "READ",
           "k/s");
    for (unsigned i = 0; i < r->nbw; i++)
        printf("%10u %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f\n", r->send[i].size,
               r->send[i].bytes / 1e6, r->send[i].messages / 1e3, r->write[i].bytes / 1e6,
               r->write[i].messages / 1e3, r->read[i].bytes / 1e6, r->read[i].messages / 1e3);
}

static void print_json(const struct perf_results *r)
{
    printf("{\n  \"latency_us\": [");
    for (unsigned i = 0; i < r->nlat; i++) {
        const struct perf_latency *l = &r->lat[i];
        printf(
            "%s\n    {\"bytes\": %u, \"min\": %.3f, \"p50\": %.3f, \"p90\": %.3f, \"p99\": %.3f, "
            "\"p999\": %.3f, \"max\": %.3f}",
            i ? "," : "", l->size, l->min, l->p50, l->p90, l->p99, l->p999, l->max);
    }
    printf("\n  ],\n  \"bandwidth\": [");
    for (unsigned i = 0; i < r->nbw; i++)
        printf("%s\n    {\"bytes\": %u, \"send_bytes_per_s\": %.0f, \"write_bytes_per_s\": %.0f, "
               "\"read_bytes_per_s\": %.0f}",
               i ? "," : "", r->send[i].size, r->send[i].bytes, r->write[i].bytes,
               r->read[i].bytes);
    puts("\n  ]\n}");
}

static int client(const struct perf_options *o, int chan)
{
    static struct perf_results r;
    r.peer = o->host ? o->host : "two processes of this host";
    int status = perf_run(o, chan, true, &r);
    if (status)
        return status;
    if (o->json)
        print_json(&r);
    else
        print_text(&r);
    if (o->plot && perf_plot(&r, o->plot))
        return wrong(1, o->plot, strerror(errno));
    return 0;
}

static int one_host(const struct perf_options *o)
{
    int pair[2], status;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return wrong(1, "socketpair", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        _exit(perf_run(o, pair[1], false, NULL));
    }
    close(pair[1]);
    status = client(o, pair[0]);
    close(pair[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return status;
}

int perf_main(int argc, char **argv)
{
    static const struct option options[] = {{"server", no_argument, NULL, 's'},
                                            {"port", required_argument, NULL, 'p'},
                                            {"gid", required_argument, NULL, 'x'},
                                            {"time", required_argument, NULL, 't'},
                                            {"quick", no_argument, NULL, 'q'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"plot", required_argument, NULL, 'P'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct perf_options o = {.port = 18555, .seconds = 0.3};
    int c;
    argv[0] = (char *)"weft perf";
    while ((c = getopt_long(argc, argv, "sp:x:t:qh", options, NULL)) != -1) {
        if (c == 'h')
            return help(stdout, 0);
        if (c == '?')
            return 2;
        o.server |= c == 's';
        o.quick |= c == 'q';
        o.json |= c == 'j';
        if (c == 'P')
            o.plot = optarg;
        if (c == 'x')
            o.gid = atoi(optarg);
        if (c == 'p' && ((o.port = atoi(optarg)) < 1 || o.port > 65535))
            return wrong(2, optarg, "not a port");
        if (c == 't' && !((o.seconds = strtod(optarg, NULL)) > 0))
            return wrong(2, optarg, "not a time in seconds");
    }
    if (argc - optind > 1 || (o.server && optind < argc))
        return wrong(2, "one host at most, and none with --server", NULL);
    if (optind < argc)
        o.host = argv[optind];
    signal(SIGPIPE, SIG_IGN);
    if (!o.server && !o.host)
        return one_host(&o);
    int chan = o.server ? serve(o.port) : reach(o.host, o.port);
    if (chan < 0)
        return wrong(1, o.server ? "cannot listen" : o.host, strerror(errno));
    return o.server ? perf_run(&o, chan, false, NULL) : client(&o, chan);
}
