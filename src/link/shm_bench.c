// SPDX-License-Identifier: BSD-2-Clause
// Figures of the rings alone: shm_bench [core [core]]. No daemon is needed.
#include "base/clock.h"
#include "link/shm_ring.h"
#include "wire/opcode.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// Each figure is that of the best batch: others may be using the machine.
#define PINGS 400000
#define BATCH 1000
#define CELLS 4000000
#define FLOOD 20000

static struct wf_region *map_region(void)
{
    void *p = mmap(NULL, sizeof(struct wf_region), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        exit(1);
    return p;
}

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static uint64_t count;

static void deliver(void *arg, const struct wf_pkt *pkt)
{
    count += pkt->len ? 1 : 0;
}

static void send_one(struct wf_ring_tx *tx, const struct wf_pkt *pkt)
{
    while (wf_ring_send(tx, pkt, NULL))
        ;
    wf_ring_notify(tx, -1);
}

static void recv_one(struct wf_ring_rx *rx)
{
    while (!wf_ring_poll(rx, 1, deliver, NULL))
        ;
}

static void serve(struct wf_ring_tx *tx, struct wf_ring_rx *rx, const struct wf_pkt *pkt)
{
    for (int i = 0; i < PINGS; i++) {
        recv_one(rx);
        send_one(tx, pkt);
    }
    while (count < PINGS + CELLS)
        wf_ring_poll(rx, 256, deliver, NULL);
    send_one(tx, pkt);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void measure(struct wf_ring_tx *tx, struct wf_ring_rx *rx, const struct wf_pkt *pkt)
{
    uint64_t t, best = UINT64_MAX;
    for (int i = 0; i < PINGS; i += BATCH) {
        t = wf_clock_ns();
        for (int k = 0; k < BATCH; k++) {
            send_one(tx, pkt);
            recv_one(rx);
        }
        best = least(best, wf_clock_ns() - t);
    }
    printf("%-28s %8.1f ns\n", "8 B one way", (double)best / BATCH / 2);
    best = UINT64_MAX;
    for (int i = 0; i < CELLS; i += FLOOD) {
        t = wf_clock_ns();
        for (int k = 0; k < FLOOD; k++)
            while (wf_ring_send(tx, pkt, NULL))
                ;
        best = least(best, wf_clock_ns() - t);
    }
    recv_one(rx);
    printf("%-28s %8.1f M/s\n", "cells one way", FLOOD / (double)best * 1e3);
    t = wf_clock_ns();
    for (int i = 0; i < CELLS; i++)
        wf_ring_poll(rx, 1, deliver, NULL);
    printf("%-28s %8.1f ns\n", "poll that finds nothing", (double)(wf_clock_ns() - t) / CELLS);
}

int main(int argc, char **argv)
{
    struct wf_region *a = map_region(), *b = map_region();
    struct wf_ring_tx tx;
    struct wf_ring_rx rx;
    uint64_t data = 1;
    struct iovec iov = {&data, sizeof(data)};
    struct wf_pkt pkt = {.opcode = WF_OPCODE(WF_SVC_RC, WF_OP_SEND_ONLY),
                         .pkey = 0xffff,
                         .npsn = 1,
                         .len = sizeof(data),
                         .niov = 1,
                         .iov = &iov};
    pid_t child = fork();
    pin(child ? (argc > 1 ? atoi(argv[1]) : 0) : (argc > 2 ? atoi(argv[2]) : 1));
    wf_ring_tx_init(&tx, child ? b : a, child ? 1 : 2, 7, NULL);
    wf_ring_rx_init(&rx, child ? a : b, child ? 2 : 1);
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(&tx, &rx, &pkt);
        _exit(0);
    }
    measure(&tx, &rx, &pkt);
    waitpid(child, NULL, 0);
    return 0;
}
