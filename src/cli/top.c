// SPDX-License-Identifier: BSD-2-Clause
// weft top: rates of each process and QP, renewed each second. Counters are read from outside; the
// programs do nothing for it.
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/fabric.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define MAX_ROWS 512

static int help(FILE *out, int status)
{
    fputs(
        "usage: weft top [-d SECONDS] [-n TIMES]\n\n"
        "A live screen: message, byte and packet rates and retransmissions of each process and of\n"
        "its busiest queue pairs. q ends it. -n prints that many screens and ends.\n",
        out);
    return status;
}

struct row {
    int32_t pid;
    uint32_t qpn;
    uint64_t generation;
    uint32_t sends, recvs; // completed, free-running
    uint64_t retransmits;
    double send_rate, recv_rate, retry_rate;
    char type[8], state[8], path[40];
    uint32_t queued;
};

struct process_row {
    int32_t pid;
    char name[32];
    uint64_t tx_bytes, rx_bytes, tx_packets, rx_packets;
};

struct sample {
    uint64_t when;
    unsigned n, np;
    struct row rows[MAX_ROWS];
    struct process_row processes[WF_SLOTS];
};

static void take_qp(const struct cli_process *p, const struct wf_qp *qp, void *arg)
{
    struct sample *s = arg;
    if (s->n == MAX_ROWS)
        return;
    struct row *r = &s->rows[s->n++];
    *r = (struct row){.pid = p->pid,
                      .qpn = qp->qpn,
                      .sends = qp->sq.una,
                      .recvs = qp->rq.next,
                      .retransmits = qp->stat_retransmits,
                      .queued = qp->sq.head - qp->sq.una};
    snprintf(r->type, sizeof(r->type), "%s", cli_qp_type(qp));
    snprintf(r->state, sizeof(r->state), "%s", cli_qp_state(qp->state));
    cli_path_name(p, qp, r->path, sizeof(r->path));
}

static int take_sample(struct sample *s)
{
    struct cli_fabric f;
    int status = cli_fabric_open("top", &f);
    if (status)
        return status;
    s->n = s->np = 0;
    s->when = wf_clock_ns();
    for (unsigned i = 0; i < f.n; i++) {
        const struct cli_process *p = f.processes[i];
        if (!p->readable)
            continue;
        struct process_row *r = &s->processes[s->np++];
        *r = (struct process_row){.pid = p->pid,
                                  .tx_bytes = p->hca.tx_bytes,
                                  .rx_bytes = p->hca.rx_bytes,
                                  .tx_packets = p->hca.tx_packets,
                                  .rx_packets = p->hca.rx_packets};
        memcpy(r->name, p->name, sizeof(r->name));
        cli_each_qp(p, take_qp, s);
    }
    cli_fabric_close(&f);
    return 0;
}

static void rate_text(double v, const char *unit, char *buf, size_t len)
{
    static const char *const units[] = {"", "k", "M", "G"};
    unsigned u = 0;
    for (; v >= 1000 && u < 3; u++)
        v /= 1000;
    snprintf(buf, len, "%.*f %s%s", v < 10 && u ? 2 : v < 100 && u ? 1 : 0, v, units[u], unit);
}

static void find_rates(const struct sample *old, struct sample *now)
{
    double t = (double)(now->when - old->when) / 1e9;
    for (unsigned i = 0; i < now->n && t > 0; i++) {
        struct row *r = &now->rows[i];
        for (unsigned k = 0; k < old->n; k++) {
            const struct row *o = &old->rows[k];
            if (o->pid != r->pid || o->qpn != r->qpn)
                continue;
            r->send_rate = (double)(uint32_t)(r->sends - o->sends) / t;
            r->recv_rate = (double)(uint32_t)(r->recvs - o->recvs) / t;
            r->retry_rate = (double)(r->retransmits - o->retransmits) / t;
        }
    }
}

static int busiest_first(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    double dx = x->send_rate + x->recv_rate, dy = y->send_rate + y->recv_rate;
    return dx < dy ? 1 : dx > dy ? -1 : x->qpn < y->qpn ? -1 : x->qpn > y->qpn;
}

static unsigned show_processes(const struct sample *old, const struct sample *now)
{
    double t = (double)(now->when - old->when) / 1e9;
    printf("%8s  %-18s %12s %12s %14s %14s\n", "PID", "PROGRAM", "SENT", "RECEIVED", "PACKETS OUT",
           "PACKETS IN");
    for (unsigned i = 0; i < now->np; i++) {
        const struct process_row *p = &now->processes[i], *o = NULL;
        char tx[24], rx[24], txp[24], rxp[24];
        for (unsigned k = 0; k < old->np; k++)
            if (old->processes[k].pid == p->pid)
                o = &old->processes[k];
        o = o ? o : p;
        rate_text((double)(p->tx_bytes - o->tx_bytes) / t, "B/s", tx, sizeof(tx));
        rate_text((double)(p->rx_bytes - o->rx_bytes) / t, "B/s", rx, sizeof(rx));
        rate_text((double)(p->tx_packets - o->tx_packets) / t, "/s", txp, sizeof(txp));
        rate_text((double)(p->rx_packets - o->rx_packets) / t, "/s", rxp, sizeof(rxp));
        printf("%8d  %-18.18s %12s %12s %14s %14s\n", p->pid, p->name, tx, rx, txp, rxp);
    }
    return now->np + 1;
}

static void show(const struct sample *old, struct sample *now, bool screen, unsigned height)
{
    find_rates(old, now);
    qsort(now->rows, now->n, sizeof(now->rows[0]), busiest_first);
    if (screen)
        fputs("\033[H\033[J", stdout);
    printf("weft top: %u process%s, %u queue pairs\n\n", now->np, now->np == 1 ? "" : "es", now->n);
    unsigned lines = 4 + show_processes(old, now);
    printf("\n%8s  %-9s %-7s %-5s %12s %12s %10s %7s  %s\n", "PID", "QP", "TYPE", "STATE", "SENDS",
           "RECEIVES", "RETRIES", "QUEUED", "PATH");
    for (unsigned i = 0; i < now->n && (!height || lines + 2 < height); i++, lines++) {
        const struct row *r = &now->rows[i];
        char sends[24], recvs[24], retries[24];
        rate_text(r->send_rate, "/s", sends, sizeof(sends));
        rate_text(r->recv_rate, "/s", recvs, sizeof(recvs));
        rate_text(r->retry_rate, "/s", retries, sizeof(retries));
        printf("%8d  0x%06x  %-7s %-5s %12s %12s %10s %7u  %s\n", r->pid, r->qpn, r->type, r->state,
               sends, recvs, retries, r->queued, r->path);
    }
    if (screen)
        fputs("\nq: quit", stdout);
    fflush(stdout);
}

static struct termios saved;

static void restore(void)
{
    tcsetattr(STDIN_FILENO, TCSANOW, &saved);
    fputs("\033[?25h\n", stdout);
    fflush(stdout);
}

static void raw_keys(void)
{
    struct termios t;
    if (tcgetattr(STDIN_FILENO, &saved))
        return;
    t = saved;
    t.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &t);
    atexit(restore);
    fputs("\033[?25l", stdout);
}

static bool asked_to_quit(double seconds, bool screen)
{
    struct pollfd p = {.fd = screen ? STDIN_FILENO : -1, .events = POLLIN};
    char key;
    return poll(&p, 1, (int)(seconds * 1000)) > 0 &&
           (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 3);
}

int cli_top(int argc, char **argv)
{
    static struct sample samples[2];
    double seconds = 1;
    long times = 0;
    struct winsize ws = {0};
    int c;
    static const struct option options[] = {{"delay", required_argument, NULL, 'd'},
                                            {"times", required_argument, NULL, 'n'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    while ((c = getopt_long(argc, argv, "d:n:h", options, NULL)) != -1) {
        if (c == 'h')
            return help(stdout, CLI_OK);
        if (c == '?')
            return CLI_USAGE;
        if (c == 'd' && !((seconds = strtod(optarg, NULL)) >= 0.05))
            return cli_fail(CLI_USAGE, "top", "\"%s\" is not a time in seconds", optarg);
        if (c == 'n' && (times = strtol(optarg, NULL, 10)) < 1)
            return cli_fail(CLI_USAGE, "top", "\"%s\" is not a number of screens", optarg);
    }
    if (optind != argc)
        return cli_fail(CLI_USAGE, "top", "unknown word \"%s\"", argv[optind]);
    bool screen = !times && isatty(STDOUT_FILENO);
    int status = take_sample(&samples[0]);
    if (status)
        return status;
    if (screen)
        raw_keys();
    for (unsigned i = 1; !asked_to_quit(seconds, screen); i++) {
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws);
        status = take_sample(&samples[i & 1]);
        if (status)
            return status;
        show(&samples[(i + 1) & 1], &samples[i & 1], screen, screen ? ws.ws_row : 0);
        if (times && i == (unsigned)times)
            break;
    }
    return CLI_OK;
}
