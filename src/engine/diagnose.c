// SPDX-License-Identifier: BSD-2-Clause
// The responder's half of a failure. On one host the requester looks at what the peer's process
// shows of its QPs and refusals, and so can tell what "retry exceeded" or a NAK came from. All of
// it may change or lie: it goes into texts only.
#include "engine/engine.h"

#include "base/record.h"
#include "wire/opcode.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

void wf_refused(struct wf_qp *qp, uint32_t psn, enum wf_reason why, const char *text)
{
    struct wf_view *v = &wf_hca_of(qp)->region->view;
    uint32_t n = atomic_load_explicit(&v->refused, memory_order_relaxed);
    struct wf_refusal *r = &v->refusals[n % WF_REFUSALS];
    atomic_fetch_add(&r->seq, 1);
    r->qpn = qp->qpn;
    r->psn = psn;
    r->reason = (uint32_t)why;
    snprintf(r->text, sizeof(r->text), "%s", text);
    atomic_fetch_add(&r->seq, 1);
    atomic_store(&v->refused, n + 1);
}

// Where the peer's QP should be: its process's region, NULL when that is not on this host.
struct other_side {
    bool local; // the destination address is this host's
    const struct wf_region *region;
    int32_t pid;
    bool died;
};

static bool same_host(struct wf_hca *h, const struct wf_path *path)
{
    for (int i = 0; i < WF_GIDS; i++)
        if (memcmp(&h->gids.gids[i].gid, &path->dgid, sizeof(path->dgid)) == 0)
            return true;
    return false;
}

static struct other_side find_peer(struct wf_qp *qp)
{
    struct wf_hca *h = wf_hca_of(qp);
    struct other_side o = {0};
    uint32_t slot = qp->attr.dest_qp_num >> 16;
    if (!qp->path || !(o.local = same_host(h, qp->path)))
        return o;
    struct wf_peer *peer = qp->path->peer;
    if (slot == h->slot) {
        o.region = h->region;
        o.pid = getpid();
    } else if (peer || (h->fabric && wf_fabric_peer(h->fabric, slot, &peer) == 0)) {
        o.region = peer->region;
        o.pid = peer->pid;
        o.died = !peer->alive;
    }
    return o;
}

static enum wf_reason refusal_of(struct wf_qp *qp, enum wf_reason why, char *text, size_t len)
{
    struct other_side o = find_peer(qp);
    if (!o.region)
        return why;
    const struct wf_view *v = &o.region->view;
    uint32_t n = atomic_load(&v->refused);
    for (uint32_t i = 1; i <= WF_REFUSALS && i <= n; i++) {
        const struct wf_refusal *r = &v->refusals[(n - i) % WF_REFUSALS];
        struct wf_refusal copy;
        uint32_t seq = atomic_load(&r->seq);
        memcpy((void *)&copy, (const void *)r, sizeof(copy));
        if (copy.qpn != qp->attr.dest_qp_num || seq & 1 || atomic_load(&r->seq) != seq)
            continue;
        copy.text[sizeof(copy.text) - 1] = 0;
        snprintf(text, len, "; the responder (QP 0x%06x, pid %d) says: %s", copy.qpn, o.pid,
                 copy.text);
        bool known = strcmp(wf_reason_name((enum wf_reason)copy.reason), "?") != 0;
        return known ? (enum wf_reason)copy.reason : why;
    }
    return why;
}

static bool interface_down(const struct wf_path *path, char name[IF_NAMESIZE])
{
    struct ifreq ifr = {0};
    if (path->ifindex <= 1 || !if_indextoname(path->ifindex, name))
        return false;
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0)
        return false;
    memcpy(ifr.ifr_name, name, IF_NAMESIZE);
    bool down = ioctl(s, SIOCGIFFLAGS, &ifr) == 0 &&
                (ifr.ifr_flags & (IFF_UP | IFF_RUNNING)) != (IFF_UP | IFF_RUNNING);
    close(s);
    return down;
}

static enum wf_reason link_state(struct wf_qp *qp, enum wf_reason why, char *text, size_t len)
{
    struct wf_hca *h = wf_hca_of(qp);
    char name[IF_NAMESIZE] = "";
    if (!h->gids.port_active) {
        snprintf(text, len, "; port 1 is DOWN");
        return WF_R_LINK_DOWN;
    }
    if (qp->path && !qp->path->local && interface_down(qp->path, name)) {
        snprintf(text, len, "; interface %s is down", name);
        return WF_R_LINK_DOWN;
    }
    return why;
}

// Which packets the peer's QP waits for, against those that are outstanding here.
static enum wf_reason compare_psn(struct wf_qp *qp, const struct wf_qp_entry *d, char *text,
                                  size_t len)
{
    uint32_t epsn = atomic_load_explicit(&d->epsn, memory_order_relaxed) & WF_PSN_MASK;
    uint32_t damaged = atomic_load_explicit(&d->damaged, memory_order_relaxed);
    uint32_t una = qp->req.una_psn;
    if (wf_psn_diff(epsn, una) > 0 && wf_psn_diff(epsn, qp->req.psn) <= 0) {
        snprintf(text, len, "; the peer's QP has executed it and waits for PSN %u: %s", epsn,
                 "its answers are lost");
        return WF_R_ANSWERS_LOST;
    }
    if (epsn != una) {
        snprintf(text, len, "; the oldest packet has PSN %u, the peer's QP waits for PSN %u", una,
                 epsn);
        return WF_R_PEER_PSN;
    }
    if (damaged) {
        snprintf(text, len, "; %u packets came there with a wrong ICRC", damaged);
        return WF_R_ONLY_DAMAGED;
    }
    snprintf(text, len, "; the peer's QP is ready and still waits for PSN %u: %s", epsn,
             "every packet was lost on the way");
    return WF_R_ALL_LOST;
}

static enum wf_reason peer_state(struct wf_qp *qp, const struct other_side *o, char *text,
                                 size_t len)
{
    uint32_t dqpn = qp->attr.dest_qp_num;
    const struct wf_qp_entry *d = &o->region->qps[dqpn % WF_QP_PER_PROCESS];
    uint32_t state = atomic_load_explicit(&d->state, memory_order_relaxed);
    if (!state) {
        snprintf(text, len, "; the process of its number, pid %d, has no QP 0x%06x", o->pid, dqpn);
        return WF_R_PEER_NO_QP;
    }
    const char *name = wf_qp_state_name((enum ibv_qp_state)(state - 1));
    snprintf(text, len, "; QP 0x%06x of pid %d is in %s", dqpn, o->pid, name);
    if (state - 1 < IBV_QPS_RTR)
        return WF_R_PEER_NOT_READY;
    if (state - 1 == IBV_QPS_ERR)
        return WF_R_PEER_IN_ERROR;
    uint32_t remote = d->remote_qpn;
    if (remote != qp->qpn) {
        snprintf(text, len, "; QP 0x%06x of pid %d is connected to QP 0x%06x", dqpn, o->pid,
                 remote);
        return WF_R_PEER_OTHER_QP;
    }
    return compare_psn(qp, d, text, len);
}

static enum wf_reason unanswered(struct wf_qp *qp, enum wf_reason why, char *text, size_t len)
{
    enum wf_reason link = link_state(qp, why, text, len);
    if (link != why)
        return link;
    struct other_side o = find_peer(qp);
    if (o.died || why == WF_R_PEER_DIED) {
        if (o.pid)
            snprintf(text, len, "; pid %d ended", o.pid);
        return WF_R_PEER_DIED;
    }
    if (o.region)
        return peer_state(qp, &o, text, len);
    if (o.local) {
        snprintf(text, len, "; no process has the QP numbers from 0x%02x0000",
                 qp->attr.dest_qp_num >> 16);
        return WF_R_NO_PEER;
    }
    snprintf(text, len, "; tried %u times with a timeout of %llu us, heard %s",
             qp->attr.retry_cnt + 1u, (unsigned long long)(4096ull << qp->attr.timeout) / 1000,
             why == WF_R_SEQUENCE_RETRIES ? "requests to send packets again" : "nothing");
    return why;
}

enum wf_reason wf_diagnose(struct wf_qp *qp, enum wf_reason why, char *text, size_t len)
{
    switch (why) {
    case WF_R_REMOTE_NAK:
        return refusal_of(qp, why, text, len);
    case WF_R_NO_ANSWER:
    case WF_R_SEQUENCE_RETRIES:
    case WF_R_PEER_DIED:
        return unanswered(qp, why, text, len);
    case WF_R_RNR_RETRIES:
        snprintf(text, len, "; rnr_retry is %u", qp->attr.rnr_retry);
        return why;
    default:
        return why;
    }
}
