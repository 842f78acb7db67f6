// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tap.h"

#include "base/clock.h"
#include "base/guard.h"
#include "link/remote.h"
#include "wire/opcode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOP_BUDGET 64
#define STUCK_NS    50000u // look again for room in a full link

struct wf_tap *wf_tap_get(struct wf_hca *h)
{
    if (!h->tap) {
        struct wf_tap *t = calloc(1, sizeof(*t));
        if (!t)
            return NULL;
        t->h = h;
        wf_now(h);
        t->started = h->env.now;
        __atomic_store_n(&h->tap, t, __ATOMIC_RELEASE);
    }
    return h->tap;
}

void wf_tap_destroy(struct wf_hca *h)
{
    struct wf_tap *t = h->tap;
    if (!t)
        return;
    wf_capture_free(t);
    wf_faults_free(t->faults);
    while (t->held) {
        struct wf_held *next = t->held->next;
        free(t->held);
        t->held = next;
    }
    free(t);
    h->tap = NULL;
}

static void enqueue(struct wf_tap *t, struct wf_held *held)
{
    struct wf_held **p = &t->held;
    while (*p && (*p)->due <= held->due)
        p = &(*p)->next;
    held->next = *p;
    *p = held;
}

static int copy_payload(struct wf_hca *h, uint8_t *to, const struct wf_pkt *pkt)
{
    if (pkt->remote) {
        struct iovec iov = {to, pkt->len};
        return wf_fetch_remote(h, pkt, 0, &iov, 1);
    }
    for (int i = 0; i < pkt->niov; to += pkt->iov[i].iov_len, i++) {
        if (!pkt->iov[i].iov_base)
            memset(to, 0, pkt->iov[i].iov_len);
        else if (wf_guard_copy(to, pkt->iov[i].iov_base, pkt->iov[i].iov_len))
            return -EFAULT;
    }
    return 0;
}

int wf_tap_hold(struct wf_tap *t, bool rx, uint32_t qpn, const struct wf_path *path,
                const struct wf_pkt *pkt, uint64_t due, uint32_t overtake)
{
    struct wf_held *held = calloc(1, sizeof(*held) + pkt->len);
    if (!held)
        return -ENOMEM;
    held->due = due;
    held->overtake = overtake;
    held->qpn = qpn;
    held->rx = rx;
    if (path)
        held->path = *path;
    held->pkt = *pkt;
    if (pkt->len && copy_payload(t->h, held->data, pkt)) {
        free(held);
        return -EFAULT;
    }
    held->iov = (struct iovec){held->data, pkt->len};
    held->pkt.iov = &held->iov;
    held->pkt.niov = pkt->len ? 1 : 0;
    held->pkt.remote = NULL;
    if (pkt->sgid) {
        held->sgid = *pkt->sgid;
        held->pkt.sgid = &held->sgid;
    }
    if (pkt->dgid) {
        held->dgid = *pkt->dgid;
        held->pkt.dgid = &held->dgid;
    }
    enqueue(t, held);
    return 0;
}

int wf_tap_hold_mad(struct wf_tap *t, bool rx, const union ibv_gid *sgid, const union ibv_gid *dgid,
                    uint32_t sgid_index, const uint8_t mad[256], uint64_t due)
{
    struct wf_held *held = calloc(1, sizeof(*held) + 256);
    if (!held)
        return -ENOMEM;
    held->due = due;
    held->rx = rx;
    held->mad = 256;
    held->sgid_index = sgid_index;
    held->sgid = *sgid;
    held->dgid = *dgid;
    memcpy(held->data, mad, 256);
    enqueue(t, held);
    return 0;
}

static void release_mad(struct wf_tap *t, struct wf_held *held)
{
    struct wf_hca *h = t->h;
    if (!held->rx) {
        if (h->fabric)
            wf_fabric_send_mad(h->fabric, &held->dgid, held->sgid_index, held->data);
        return;
    }
    struct wf_mad mad = {.sgid = held->sgid, .dgid = held->dgid, .sqpn = 1, .pkey = 0xffff};
    memcpy(mad.data, held->data, 256);
    wf_mad_deliver_now(h, &mad);
}

// False: the link has no room, keep it.
static bool release(struct wf_tap *t, struct wf_held *held)
{
    if (held->mad)
        release_mad(t, held);
    else if (held->rx)
        wf_deliver_now(t->h, &held->pkt);
    else
        return held->path.link->ops->send(held->path.link, &held->path, &held->pkt) != -EAGAIN;
    return true;
}

// Links may read payload until they are flushed, the loop until it has delivered: only then do the
// copies go away.
static void settle(struct wf_hca *h, struct wf_held *spent)
{
    if (h->shm)
        h->shm->ops->flush(h->shm);
    if (h->udp)
        h->udp->ops->flush(h->udp);
    while (h->loop && h->loop->ops->poll(h->loop, LOOP_BUDGET))
        ;
    while (spent) {
        struct wf_held *next = spent->next;
        free(spent);
        spent = next;
    }
}

void wf_tap_poll(struct wf_hca *h)
{
    struct wf_tap *t = h->tap;
    struct wf_held *spent = NULL;
    if (!t->held && !t->faults)
        return;
    if (!h->fresh)
        wf_now(h);
    if (t->faults)
        wf_faults_tick(t);
    t->stuck = false;
    while (t->held && t->held->due <= h->env.now) {
        struct wf_held *held = t->held;
        t->held = held->next;
        if (!release(t, held)) {
            held->next = t->held;
            t->held = held;
            t->stuck = true;
            break;
        }
        held->next = spent;
        spent = held;
    }
    if (spent)
        settle(h, spent);
}

uint64_t wf_tap_next(const struct wf_hca *h)
{
    const struct wf_tap *t = h->tap;
    uint64_t next = t->faults ? wf_faults_next(t) : WF_NEVER;
    if (t->stuck)
        return h->env.now + STUCK_NS;
    if (t->held && t->held->due < next)
        next = t->held->due;
    return next;
}

// A packet of the QP went: those that wait for others to overtake them count it.
static void overtaken(struct wf_tap *t, uint32_t qpn)
{
    for (struct wf_held **p = &t->held; *p; p = &(*p)->next) {
        struct wf_held *held = *p;
        if (held->qpn != qpn || !held->overtake || --held->overtake)
            continue;
        *p = held->next;
        held->due = 0;
        held->next = t->held;
        t->held = held;
        return;
    }
}

static uint32_t path_bit(const struct wf_hca *h, const struct wf_link *link)
{
    if (link == h->loop)
        return WF_FAULT_LOOP;
    return link == h->shm ? WF_FAULT_SHM : WF_FAULT_UDP;
}

// One bit of a copy of the payload changes, before anybody protects it.
static int send_damaged(struct wf_tap *t, struct wf_qp *qp, const struct wf_path *to,
                        const struct wf_pkt *pkt, uint64_t due)
{
    int err = wf_tap_hold(t, false, qp->qpn, to, pkt, due, 0);
    for (struct wf_held *held = t->held; !err && held; held = held->next)
        if (held->due == due && held->pkt.psn == pkt->psn && held->qpn == qp->qpn &&
            held->pkt.len) {
            held->data[held->pkt.len / 2] ^= 0x10;
            return 0;
        }
    return 0;
}

// Beyond this time a reordered packet goes even if nothing came to overtake it.
#define REORDER_NS 20000000u

static int carry_out(struct wf_tap *t, struct wf_qp *qp, const struct wf_path *to,
                     struct wf_pkt *pkt, const struct wf_verdict *v)
{
    uint64_t now = t->h->env.now;
    struct wf_link *link = to->link;
    if (v->drop)
        return 0;
    if (v->ecn)
        pkt->flags |= WF_PKT_CE;
    if (v->damage_icrc)
        pkt->flags |= WF_PKT_DAMAGED;
    if (v->damage_payload && pkt->len)
        return send_damaged(t, qp, to, pkt, now + v->delay);
    if (v->overtake)
        wf_tap_hold(t, false, qp->qpn, to, pkt, now + REORDER_NS, v->overtake);
    else if (v->delay || t->stuck || link->ops->send(link, to, pkt) == -EAGAIN) {
        t->stuck |= !v->delay;
        wf_tap_hold(t, false, qp->qpn, to, pkt, now + v->delay, 0);
    }
    for (uint32_t i = 0; i < v->copies; i++)
        if (t->stuck || link->ops->send(link, to, pkt) == -EAGAIN)
            wf_tap_hold(t, false, qp->qpn, to, pkt, now, 0);
    return 0;
}

int wf_tap_send(struct wf_qp *qp, struct wf_link *link, const struct wf_path *path,
                struct wf_pkt *pkt)
{
    struct wf_tap *t = wf_hca_of(qp)->tap;
    struct wf_path to = *path;
    struct wf_verdict v = {0};
    to.link = link;
    if (!t->faults) {
        int ret = link->ops->send(link, path, pkt);
        if (t->capture && ret != -EAGAIN)
            wf_capture_packet(t, qp, false, &to, pkt, NULL);
        return ret;
    }
    struct wf_packet_facts facts = {.qp = qp, .pkt = pkt, .path = path_bit(t->h, link)};
    wf_faults_judge(t, &facts, &v);
    if (t->capture)
        wf_capture_packet(t, qp, false, &to, pkt, v.note);
    int ret = carry_out(t, qp, &to, pkt, &v);
    if (!v.overtake)
        overtaken(t, qp->qpn);
    if (t->held && t->h->threaded && t->h->mode == WF_THREAD_DOZE)
        wf_thread_kick(t->h);
    return ret;
}

static uint32_t came_over(const struct wf_hca *h, const struct wf_pkt *pkt)
{
    if (pkt->ifindex)
        return WF_FAULT_UDP;
    return pkt->sqpn >> 16 == h->slot ? WF_FAULT_LOOP : WF_FAULT_SHM;
}

bool wf_tap_receive(struct wf_hca *h, const struct wf_pkt *pkt)
{
    struct wf_tap *t = h->tap;
    struct wf_qp *qp = wf_qp_find(h, pkt->dqpn);
    struct wf_verdict v = {0};
    if (!qp)
        return false;
    if (t->faults) {
        struct wf_packet_facts facts = {
            .qp = qp, .pkt = pkt, .rx = true, .path = came_over(h, pkt)};
        wf_faults_judge(t, &facts, &v);
    }
    if (t->capture)
        wf_capture_packet(t, qp, true, qp->path, pkt, v.note);
    if (v.nak && wf_qp_reliable(qp)) {
        // As the responder itself would: only the request that is its turn gets this answer.
        uint32_t epsn = atomic_load_explicit(&qp->dir->epsn, memory_order_relaxed);
        if (pkt->psn == epsn && qp->state >= IBV_QPS_RTR && qp->state != IBV_QPS_ERR)
            wf_resp_nak(qp, v.nak, pkt->psn);
        qp->resp.nak_sent = true;
        return true;
    }
    if (v.drop || v.damage_icrc)
        return true;
    uint64_t due = h->env.now + (v.overtake ? REORDER_NS : v.delay);
    bool wait = v.delay || v.overtake || v.damage_payload;
    for (uint32_t i = 0; i < v.copies + wait; i++)
        wf_tap_hold(t, true, qp->qpn, NULL, pkt, due, v.overtake);
    if (v.damage_payload && t->held && t->held->pkt.len)
        t->held->data[t->held->pkt.len / 2] ^= 0x10;
    if (t->faults && !v.overtake)
        overtaken(t, qp->qpn);
    return wait;
}

bool wf_tap_no_onesided(const struct wf_hca *h)
{
    return h->tap->faults != NULL;
}

void wf_tap_onesided(struct wf_qp *qp, const struct wf_swqe *w, const struct iovec *iov, int niov,
                     uint32_t off, uint32_t len)
{
    struct wf_tap *t = wf_hca_of(qp)->tap;
    if (t->capture)
        wf_capture_onesided(t, qp, w, iov, niov, off, len);
}

bool wf_tap_mad(struct wf_hca *h, bool rx, const union ibv_gid *sgid, const union ibv_gid *dgid,
                uint32_t sgid_index, const uint8_t mad[256])
{
    struct wf_tap *t = h->tap;
    struct wf_verdict v = {0};
    if (t->faults)
        wf_faults_judge_mad(t, rx, mad, &v);
    if (t->capture)
        wf_capture_mad(t, rx, sgid, dgid, mad, v.note);
    if (v.drop)
        return true;
    for (uint32_t i = 0; i < v.copies + (v.delay ? 1 : 0); i++)
        wf_tap_hold_mad(t, rx, sgid, dgid, sgid_index, mad, h->env.now + v.delay);
    if (t->held && h->threaded)
        wf_thread_kick(h);
    return v.delay != 0;
}

int wf_tap_verb(struct wf_hca *h, const char *verb)
{
    int err = 0;
    wf_enter(h);
    if (h->tap->faults)
        err = wf_faults_verb(h->tap, verb);
    wf_exit(h);
    return err;
}
