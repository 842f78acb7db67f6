// SPDX-License-Identifier: BSD-2-Clause
// What a client may ask for.
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void reply(struct weftd *d, struct client *c, const struct wf_fmsg *req, struct wf_fmsg *m,
                  int status)
{
    m->type = req->type;
    m->flags |= WF_FM_REPLY;
    m->seq = req->seq;
    m->status = status;
    client_send(d, c, m, NULL, 0);
}

// Without the seals a client could shrink the file and make our accesses fault.
static int map_region(struct client *c, int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) ||
        lseek(fd, 0, SEEK_END) != (off_t)sizeof(struct wf_region))
        return -EPROTO;
    void *p = mmap(NULL, sizeof(struct wf_region), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    c->region = p;
    return c->region->magic == WF_REGION_MAGIC ? 0 : -EPROTO;
}

static void send_join_reply(struct weftd *d, struct client *c)
{
    struct wf_fmsg m = {.type = WF_F_JOIN,
                        .flags = WF_FM_REPLY,
                        .seq = c->join.seq,
                        .slot = c->slot,
                        .generation = c->generation};
    int fds[WF_FABRIC_FDS] = {d->gids.memfd, d->sockets.keep_rx}, n = 2;
    for (int f = 0; f < 2; f++) {
        if (c->slot < d->sockets.count && d->sockets.fd[f][c->slot] >= 0) {
            m.flags |= (uint16_t)(f ? WF_FM_IPV6 : WF_FM_IPV4);
            fds[n++] = d->sockets.fd[f][c->slot];
        }
    }
    client_send(d, c, &m, fds, n);
}

static void join_failed(struct weftd *d, struct client *c, int err)
{
    reply(d, c, &c->join, &(struct wf_fmsg){0}, err);
}

static void complete_join(struct weftd *d, struct client *c)
{
    bool again = c->join.flags & WF_FM_REJOIN;
    uint32_t slot;
    c->waiting = false;
    int ret = slots_take(d, again ? c->join.slot : 0, c->join.generation, &slot);
    if (ret) {
        join_failed(d, c, ret);
        return;
    }
    c->generation = again ? c->join.generation : slots_generation(d);
    if (c->generation > d->slots.last_generation)
        d->slots.last_generation = c->generation;
    sockets_ensure(d, slot);
    if (!again) {
        sockets_drain(d, slot);
        c->region->slot = slot;
        c->region->generation = c->generation;
    }
    // Of processes that died while there was no weftd.
    for (uint32_t i = 0; again && i < WF_SLOTS; i++)
        for (int k = 0;
             !d->slots.taken[i] && !d->slots.expected[i].generation && k < WF_HAZARDS_PER_SLOT; k++)
            atomic_store_explicit(&c->region->hazard[i][k], 0, memory_order_release);
    c->slot = slot;
    d->by_slot[slot] = c;
    d->members_joined++;
    d->gids.roster[slot] = (struct wf_roster_entry){c->generation, c->pid, 0};
    wf_ring_tx_init(&c->mcast_tx, c->region, 0, d->generation, NULL);
    send_join_reply(d, c);
}

void request_retry_joins(struct weftd *d)
{
    for (struct client *c = d->clients; c; c = c->next)
        if (c->waiting)
            complete_join(d, c);
}

static void handle_join(struct weftd *d, struct client *c, const struct wf_fmsg *m, int *fds,
                        int nfds)
{
    if (c->slot || c->region || nfds < 2)
        return client_close(d, c);
    c->join = *m;
    c->region_fd = fds[0];
    c->doorbell = fds[1];
    fds[0] = fds[1] = -1;
    int ret = map_region(c, c->region_fd);
    if (ret)
        return join_failed(d, c, ret);
    if (m->flags & WF_FM_REJOIN) {
        gids_adopt(d, fds[3]);
        // First itself, so that a new program that waits does not get its slot.
        if (!d->sockets.adopting)
            return complete_join(d, c);
        c->waiting = true;
        sockets_adopt(d, fds[2]);
        if (c->waiting)
            complete_join(d, c);
        return;
    }
    c->waiting = d->sockets.adopting;
    if (!c->waiting)
        complete_join(d, c);
}

static void handle_peer(struct weftd *d, struct client *c, const struct wf_fmsg *req)
{
    struct client *p = d->by_slot[req->slot];
    struct wf_fmsg m = {.type = WF_F_PEER, .flags = WF_FM_REPLY, .seq = req->seq};
    if (!p)
        return reply(d, c, req, &m, -ENOENT);
    m.slot = p->slot;
    m.generation = p->generation;
    m.index = (uint32_t)p->pid;
    client_send(d, c, &m, (int[]){p->region_fd, p->doorbell}, 2);
}

// Tools look at processes and say what faults and captures there are to be; nothing else.
static void handle_observer(struct weftd *d, struct client *c, const struct wf_fmsg *m, int *fds)
{
    struct wf_fmsg out = {0};
    switch (m->type) {
    case WF_F_PEER:
        return handle_peer(d, c, m);
    case WF_F_FAULTS:
        return reply(d, c, m, &out, control_faults(d, fds[0], m->a));
    case WF_F_CAPTURE:
        return reply(d, c, m, &out, control_capture(d, m));
    default:
        return client_close(d, c);
    }
}

void request_handle(struct weftd *d, struct client *c, const struct wf_fmsg *m, int *fds, int nfds)
{
    struct wf_fmsg out = {0};
    if (m->flags & WF_FM_REPLY)
        return client_close(d, c);
    if (c->observer)
        return handle_observer(d, c, m, fds);
    if (!c->slot && m->type == WF_F_OBSERVE) {
        c->observer = true;
        out = (struct wf_fmsg){.type = WF_F_OBSERVE, .flags = WF_FM_REPLY, .seq = m->seq};
        return client_send(d, c, &out, &d->gids.memfd, 1);
    }
    if (!c->slot && m->type != WF_F_JOIN && m->type != WF_F_LEAVE)
        return client_close(d, c);
    switch (m->type) {
    case WF_F_JOIN:
        return handle_join(d, c, m, fds, nfds);
    case WF_F_LEAVE:
        return client_close(d, c);
    case WF_F_PEER:
        return handle_peer(d, c, m);
    case WF_F_LISTEN:
        return reply(d, c, m, &out, mads_listen(d, c, m->a, m->b));
    case WF_F_UNLISTEN:
        return reply(d, c, m, &out, mads_unlisten(d, c, m->a, m->b));
    case WF_F_MCAST_JOIN:
        return reply(d, c, m, &out, mcast_join(d, c, m->dgid, m->index));
    case WF_F_MCAST_LEAVE:
        return reply(d, c, m, &out, mcast_leave(d, c, m->dgid, m->index));
    case WF_F_MCAST_SLOTS:
        mcast_slots(d, m->dgid, out.slots);
        return reply(d, c, m, &out, 0);
    case WF_F_MAD:
        return mads_send(d, m);
    case WF_F_WILL:
        (void)wills_set(c, m);
        return;
    default:
        return client_close(d, c);
    }
}
