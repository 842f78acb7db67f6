// SPDX-License-Identifier: BSD-2-Clause
// Requests, replies and events between this process and weftd.
#include "base/reason.h"
#include "link/fabric_impl.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_MS 1000

void wf_fabric_queue(struct wf_fabric *f, const struct wf_fabric_event *ev)
{
    struct queued_event *q = malloc(sizeof(*q));
    if (!q) {
        wf_explain(WF_R_NO_MEMORY, "an event of the fabric is lost");
        return;
    }
    q->ev = *ev;
    q->next = NULL;
    *f->tail = q;
    f->tail = &q->next;
    uint64_t one = 1;
    (void)!write(f->wakefd, &one, sizeof(one));
}

void wf_fabric_lost(struct wf_fabric *f)
{
    if (f->sock < 0)
        return;
    epoll_ctl(f->epfd, EPOLL_CTL_DEL, f->sock, NULL);
    close(f->sock);
    f->sock = -1;
    f->retry_ms = wf_fabric_now_ms() + RETRY_MS;
    wf_fabric_forget_groups(f, NULL);
    wf_fabric_queue(f, &(struct wf_fabric_event){.type = WF_FABRIC_LOST});
}

// The event of a message; false when it is none.
static bool event_of(struct wf_fabric *f, const struct wf_fmsg *m, struct wf_fabric_event *ev)
{
    memset(ev, 0, sizeof(*ev));
    ev->slot = m->slot;
    ev->generation = m->generation;
    switch (m->type) {
    case WF_F_PEER_DIED:
        ev->type = WF_FABRIC_PEER_DIED;
        wf_fabric_peer_died(f, m->slot, m->generation);
        return true;
    case WF_F_GID_CHANGE:
        ev->type = WF_FABRIC_GID_CHANGE;
        ev->gid_index = m->index;
        return m->index < WF_GIDS;
    case WF_F_PORT:
        ev->type = m->index ? WF_FABRIC_PORT_ACTIVE : WF_FABRIC_PORT_ERR;
        return true;
    case WF_F_CONTROL:
        ev->type = WF_FABRIC_CONTROL;
        return true;
    case WF_F_MCAST_CHANGE:
        wf_fabric_forget_groups(f, m->dgid);
        ev->type = WF_FABRIC_MCAST;
        memcpy(ev->mad.dgid.raw, m->dgid, 16);
        return true;
    case WF_F_MAD:
        ev->type = WF_FABRIC_MAD;
        memcpy(ev->mad.data, m->mad, sizeof(ev->mad.data));
        memcpy(ev->mad.sgid.raw, m->sgid, 16);
        memcpy(ev->mad.dgid.raw, m->dgid, 16);
        ev->mad.sqpn = m->sqpn;
        ev->mad.pkey = m->pkey;
        ev->mad.tclass = m->tclass;
        ev->mad.ifindex = m->ifindex;
        return true;
    default:
        return false;
    }
}

static void close_all(int fds[WF_FABRIC_FDS])
{
    for (int i = 0; i < WF_FABRIC_FDS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

// The next message. Events are queued; 1 with the reply to `seq` in *m, 0 for anything else.
static int receive(struct wf_fabric *f, uint32_t seq, struct wf_fmsg *m, int fds[WF_FABRIC_FDS])
{
    struct wf_fabric_event ev;
    int nfds;
    int ret = wf_fmsg_recv(f->sock, m, fds, &nfds, MSG_DONTWAIT);
    if (ret == -EAGAIN)
        return ret;
    // Out of descriptors: that request failed, weftd is still there.
    if (ret == -EMFILE) {
        m->status = -EMFILE;
        ret = 0;
    }
    if (ret) {
        wf_fabric_lost(f);
        return -ENOTCONN;
    }
    if (m->flags & WF_FM_REPLY && m->seq == seq && seq)
        return 1;
    close_all(fds);
    if (!(m->flags & WF_FM_REPLY) && event_of(f, m, &ev))
        wf_fabric_queue(f, &ev);
    return 0;
}

static int wait_reply(struct wf_fabric *f, uint32_t seq, struct wf_fmsg *m, int fds[WF_FABRIC_FDS])
{
    uint64_t deadline = wf_fabric_now_ms() + WF_FABRIC_TIMEOUT_MS;
    for (;;) {
        int ret = receive(f, seq, m, fds);
        if (ret == 1)
            return m->status > 0 ? -EPROTO : m->status;
        if (ret == 0)
            continue;
        uint64_t now = wf_fabric_now_ms();
        if (ret != -EAGAIN || now >= deadline)
            return ret == -EAGAIN ? -ETIMEDOUT : ret;
        struct pollfd p = {.fd = f->sock, .events = POLLIN};
        (void)poll(&p, 1, (int)(deadline - now));
    }
}

static int send_all(struct wf_fabric *f, const struct wf_fmsg *m, const int *fds, int nfds,
                    int timeout_ms)
{
    int ret = wf_fmsg_send(f->sock, m, fds, nfds, MSG_DONTWAIT);
    if (ret == -EAGAIN && timeout_ms) {
        struct pollfd p = {.fd = f->sock, .events = POLLOUT};
        (void)poll(&p, 1, timeout_ms);
        ret = wf_fmsg_send(f->sock, m, fds, nfds, MSG_DONTWAIT);
    }
    if (ret == -EPIPE || ret == -ECONNRESET || ret == -ENOTCONN) {
        wf_fabric_lost(f);
        return -ENOTCONN;
    }
    return ret;
}

int wf_fabric_call(struct wf_fabric *f, struct wf_fmsg *m, const int *fds, int nfds,
                   int reply_fds[WF_FABRIC_FDS])
{
    int none[WF_FABRIC_FDS], *got = reply_fds ? reply_fds : none;
    for (int i = 0; i < WF_FABRIC_FDS; i++)
        got[i] = -1;
    if (f->sock < 0)
        return -ENOTCONN;
    m->version = WF_FABRIC_VERSION;
    m->seq = ++f->seq ? f->seq : ++f->seq;
    int ret = send_all(f, m, fds, nfds, WF_FABRIC_TIMEOUT_MS);
    if (ret == 0)
        ret = wait_reply(f, m->seq, m, got);
    if (got == none)
        close_all(none);
    return ret;
}

int wf_fabric_request(struct wf_fabric *f, struct wf_fmsg *m, int reply_fds[WF_FABRIC_FDS])
{
    struct wf_fmsg again = *m;
    int ret = wf_fabric_call(f, m, NULL, 0, reply_fds);
    if (ret != -ENOTCONN || wf_fabric_rejoin(f))
        return ret;
    *m = again;
    return wf_fabric_call(f, m, NULL, 0, reply_fds);
}

int wf_fabric_tell(struct wf_fabric *f, const struct wf_fmsg *msg, int timeout_ms)
{
    struct wf_fmsg m = *msg;
    m.version = WF_FABRIC_VERSION;
    m.seq = 0;
    if (f->sock < 0)
        return -ENOTCONN;
    return send_all(f, &m, NULL, 0, timeout_ms);
}

void wf_fabric_catch_up(struct wf_fabric *f)
{
    struct wf_fmsg m;
    int fds[WF_FABRIC_FDS];
    while (f->sock >= 0 && receive(f, 0, &m, fds) == 0)
        ;
}

// A caller that could not join again is reminded.
static bool remind(struct wf_fabric *f)
{
    if (f->sock >= 0 || wf_fabric_now_ms() < f->retry_ms)
        return false;
    f->retry_ms = wf_fabric_now_ms() + RETRY_MS;
    return true;
}

bool wf_fabric_has_events(const struct wf_fabric *f)
{
    return f->head != NULL;
}

int wf_fabric_next_event(struct wf_fabric *f, struct wf_fabric_event *ev)
{
    struct wf_fmsg m;
    int fds[WF_FABRIC_FDS];
    while (!f->head) {
        if (remind(f)) {
            *ev = (struct wf_fabric_event){.type = WF_FABRIC_LOST};
            return 0;
        }
        if (f->sock < 0 || receive(f, 0, &m, fds) == -EAGAIN)
            return -EAGAIN;
    }
    struct queued_event *q = f->head;
    *ev = q->ev;
    f->head = q->next;
    free(q);
    if (!f->head) {
        uint64_t n;
        f->tail = &f->head;
        (void)!read(f->wakefd, &n, sizeof(n));
    }
    return 0;
}
