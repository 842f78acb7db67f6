// SPDX-License-Identifier: BSD-2-Clause
#include "link/udp_internal.h"

#include "base/guard.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

static struct wf_udp_link *of(const struct wf_link *l)
{
    return (struct wf_udp_link *)(uintptr_t)l;
}

static int udp_send(struct wf_link *l, const struct wf_path *path, const struct wf_pkt *pkt)
{
    struct wf_udp_link *u = of(l);
    if (u->faults)
        return wf_udp_faults_send(u, path, pkt);
    if (__builtin_expect(pkt->flags & WF_PKT_DAMAGED, 0))
        return wf_udp_tx_queue(u, path, pkt, true, 1 + 8 * 3);
    return wf_udp_tx_queue(u, path, pkt, false, 0);
}

static void udp_flush(struct wf_link *l)
{
    struct wf_udp_link *u = of(l);
    if (u->faults)
        wf_udp_faults_flush(u);
    wf_udp_tx_flush(u);
}

static int udp_fds(struct wf_link *l, int *fds, int max)
{
    int n = 0;
    for (int v6 = 0; v6 < 2; v6++)
        if (of(l)->rx[v6] && n < max)
            fds[n++] = of(l)->rx[v6]->fd;
    return n;
}

static void udp_destroy(struct wf_link *l)
{
    struct wf_udp_link *u = of(l);
    wf_udp_faults_destroy(u->faults);
    for (int v6 = 0; v6 < 2; v6++) {
        wf_udp_rx_destroy(u->rx[v6]);
        for (int i = 0; i < WF_UDP_SLOTS; i++)
            if (u->socks[v6][i].fd >= 0)
                close(u->socks[v6][i].fd);
    }
    free(u->tx.keep);
    free(u);
}

static const struct wf_link_ops udp_ops = {
    .name = "udp",
    .send = udp_send,
    .flush = udp_flush,
    .poll = wf_udp_poll,
    .fds = udp_fds,
    .destroy = udp_destroy,
};

// All peers listen on one port, so both sockets have it.
static int attach(struct wf_udp_link *u, int fd, bool v6)
{
    if (fd < 0)
        return 0;
    int port = wf_udp_prepare_rx(fd, v6);
    if (port < 0)
        return port;
    if (u->port && u->port != port)
        return -EINVAL;
    u->port = (uint16_t)port;
    return wf_udp_rx_create(fd, v6, &u->rx[v6]);
}

int wf_udp_link_create(int fd4, int fd6, struct wf_link **out)
{
    struct wf_udp_link *u = calloc(1, sizeof(*u));
    if (!u)
        return -ENOMEM;
    wf_guard_install();
    u->base.ops = &udp_ops;
    for (int i = 0; i < WF_UDP_SLOTS; i++)
        u->socks[0][i].fd = u->socks[1][i].fd = -1;
    // Only spreads source ports over processes; a fixed value would do.
    if (getrandom(&u->variant, sizeof(u->variant), GRND_NONBLOCK) < 0)
        u->variant = (uint8_t)getpid();
    int rc = attach(u, fd4, false);
    if (!rc)
        rc = attach(u, fd6, true);
    if (rc) {
        udp_destroy(&u->base);
        return rc;
    }
    u->faults = wf_udp_faults_create(getenv("WEFT_UDP_FAULTS"));
    *out = &u->base;
    return 0;
}

const struct wf_udp_counters *wf_udp_link_counters(const struct wf_link *link)
{
    return &of(link)->counters;
}
