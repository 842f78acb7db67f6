// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/rc.h"
#include "base/reason.h"
#include "ugni/rcconn.h"
#include "ugni/service.h"
#include "ugni/state.h"
#include "ugni/thread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUFFER_BYTES   (sizeof(struct wf_gni_am) + WF_GNI_AM_PAYLOAD)
#define RECEIVES       512u
#define SENDS          256u
#define DEVICE_TRIES   20
#define DEVICE_WAIT_US 100000u
#define SEND_MARK      (1ull << 32) // in wr_id, beside the buffer's number

struct wf_gni_rc wf_gni_rc;

static struct {
    char *memory; // receive buffers, then send buffers
    struct wf_mr *mr;
    uint32_t free[SENDS], n_free; // numbers of send buffers
} buffers;

static char *buffer(uint32_t i)
{
    return buffers.memory + (size_t)i * BUFFER_BYTES;
}

static void post_receive(uint32_t i)
{
    struct ibv_sge sge = {(uintptr_t)buffer(i), BUFFER_BYTES, wf_mr_lkey(buffers.mr)};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
    wf_srq_post(wf_gni_rc.srq, &wr, &bad);
}

// ---- starting -----------------------------------------------------------------------------------

// Under the engine's lock.
static void completion(void *user)
{
    (void)user;
    wf_gni_thread_kick();
}

static void asynchronous(void *user, enum ibv_event_type type, void *object, uint8_t port)
{
    (void)user, (void)type, (void)object, (void)port; // failures come as completions too
}

static int make_buffers(void)
{
    size_t size = (RECEIVES + SENDS) * BUFFER_BYTES;
    buffers.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffers.memory == MAP_FAILED)
        return -ENOMEM;
    int err = wf_mr_reg(wf_gni_rc.pd, buffers.memory, size, (uintptr_t)buffers.memory,
                        IBV_ACCESS_LOCAL_WRITE, &buffers.mr);
    if (err)
        return err;
    buffers.n_free = 0;
    for (uint32_t i = 0; i < SENDS; i++)
        buffers.free[buffers.n_free++] = RECEIVES + i;
    for (uint32_t i = 0; i < RECEIVES; i++)
        post_receive(i);
    return 0;
}

static int find_address(void)
{
    uint32_t host = htonl(wf_gni_host_address(WF_GNI_PE_HOST(wf_gni.pe)));
    struct wf_gni_rc *rc = &wf_gni_rc;
    struct ibv_port_attr port;
    memset(&rc->gid, 0, sizeof(rc->gid));
    rc->gid.raw[10] = rc->gid.raw[11] = 0xff;
    memcpy(rc->gid.raw + 12, &host, 4);
    if (wf_hca_query_port(rc->hca, 1, &port))
        return -ENODEV;
    rc->mtu = (uint8_t)port.active_mtu;
    return wf_cm_host_gid_index(rc->host, &rc->gid) < 0 ? -EADDRNOTAVAIL : 0;
}

// The daemon may just be going, or coming up: its table of addresses is filled a moment later.
static int reach_device(void)
{
    struct wf_gni_rc *rc = &wf_gni_rc;
    int err = -ENODEV;
    for (int tries = 0; err && tries < DEVICE_TRIES; tries++) {
        if (tries)
            usleep(DEVICE_WAIT_US);
        if (!rc->host && (err = wf_cm_host_get(&rc->host)))
            continue;
        rc->hca = wf_cm_host_hca(rc->host);
        err = find_address();
    }
    return err;
}

static int start(void)
{
    struct wf_gni_rc *rc = &wf_gni_rc;
    static const struct wf_ctx_ops ops = {asynchronous};
    struct wf_cq_init cq = {.cqe = 2 * (RECEIVES + SENDS), .on_comp = completion};
    struct wf_srq_init srq = {.type = IBV_SRQT_BASIC, .max_wr = RECEIVES, .max_sge = 1};
    int err = reach_device();
    if (!err)
        err = wf_ctx_open(rc->hca, &ops, NULL, &rc->ctx);
    if (!err)
        err = wf_pd_create(rc->ctx, &rc->pd);
    if (!err)
        err = wf_cq_create(rc->ctx, &cq, &rc->cq);
    if (!err)
        err = wf_srq_create(rc->pd, &srq, &rc->srq);
    if (!err)
        err = make_buffers();
    return err ? err : wf_gni_conn_listen();
}

void wf_gni_rc_start(void)
{
    const char *off = getenv("WEFT_GNI_ONE_HOST");
    bool alone = WF_GNI_PE_HOST(wf_gni.pe) == 0x000001; // 127.0.0.1: there is no other host
    int err = alone || (off && *off == '1') ? -ENETUNREACH : start();
    if (err && !alone && err != -ENETUNREACH)
        wf_explain(WF_R_GNI_NO_NETWORK, "%s", strerror(-err));
    wf_gni_lock();
    wf_gni_rc.up = !err;
    wf_gni_rc.failed = err != 0;
    wf_gni_unlock();
}

void wf_gni_rc_forget(void)
{
    memset(&wf_gni_rc, 0, sizeof(wf_gni_rc));
}

// ---- messages -----------------------------------------------------------------------------------

static int rc_send(struct wf_gni_peer *peer, const struct wf_gni_am *am, const void *payload)
{
    struct wf_gni_conn *c = peer->rc;
    if (c->state == WF_GNI_CONN_GONE)
        return -EPIPE;
    if (c->state != WF_GNI_CONN_READY || c->sends >= WF_GNI_RC_DEPTH || !buffers.n_free)
        return -EAGAIN;
    uint32_t i = buffers.free[buffers.n_free - 1];
    memcpy(buffer(i), am, sizeof(*am));
    if (am->len)
        memcpy(buffer(i) + sizeof(*am), payload, am->len);
    struct ibv_sge sge = {(uintptr_t)buffer(i), (uint32_t)sizeof(*am) + am->len,
                          wf_mr_lkey(buffers.mr)};
    struct ibv_send_wr wr = {.wr_id = SEND_MARK | i,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    int err = wf_qp_post_send(c->qp, &wr, &bad);
    if (err)
        return err == -ENOMEM ? -EAGAIN : -EPIPE;
    buffers.n_free--;
    c->sends++;
    return 0;
}

static void rc_close(struct wf_gni_peer *peer)
{
    for (struct wf_gni_conn *c = wf_gni_rc.conns; c; c = c->next)
        if (c->peer == peer)
            wf_gni_conn_close(c);
}

const struct wf_gni_link wf_gni_rc_link = {rc_send, rc_close};

static void received(struct wf_gni_conn *c, const struct wf_wc *w)
{
    uint32_t i = (uint32_t)w->wc.wr_id;
    struct wf_gni_am am;
    memcpy(&am, buffer(i), sizeof(am));
    bool whole = w->wc.byte_len >= sizeof(am) && am.len == w->wc.byte_len - sizeof(am);
    if (c && whole && c->state != WF_GNI_CONN_GONE) {
        wf_gni_conn_arrived(c);
        if (c->peer && !c->peer->dead)
            wf_gni_am_handle(c->peer, &am, buffer(i) + sizeof(am));
    }
    post_receive(i);
}

static void completed(const struct wf_wc *w)
{
    struct wf_gni_conn *c = w->qp_user;
    bool failed = w->wc.status != IBV_WC_SUCCESS;
    if (w->wc.wr_id & SEND_MARK) {
        buffers.free[buffers.n_free++] = (uint32_t)w->wc.wr_id;
        if (c)
            c->sends--;
    } else if (!failed) {
        received(c, w);
    } else {
        post_receive((uint32_t)w->wc.wr_id);
    }
    if (failed && c && c->peer && !c->peer->dead && c->state != WF_GNI_CONN_GONE)
        wf_gni_peer_died(c->peer);
}

void wf_gni_rc_poll(void)
{
    struct wf_wc w;
    if (!wf_gni_rc.up)
        return;
    if (wf_gni_conn_has_events())
        wf_gni_conn_events();
    if (!wf_gni_rc.conns)
        return;
    wf_gni_conn_timers(wf_gni_now());
    for (int i = 0; i < 64 && wf_cq_poll_ex(wf_gni_rc.cq, &w) == 1; i++)
        completed(&w);
}

bool wf_gni_rc_arm(void)
{
    if (!wf_gni_rc.up || !wf_gni_rc.conns)
        return false;
    wf_cq_arm(wf_gni_rc.cq, false);
    return wf_cq_pending(wf_gni_rc.cq) != 0;
}

uint64_t wf_gni_rc_next(void)
{
    return wf_gni_rc.up ? wf_gni_conn_next() : WF_GNI_INFINITE;
}
