// SPDX-License-Identifier: BSD-2-Clause
#include "engine/sim.h"

#include "base/clock.h"
#include "base/guard.h"
#include "wire/opcode.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

struct sim_packet {
    struct sim_packet *next;
    struct wf_pkt pkt;
    struct iovec iov;
    union ibv_gid sgid, dgid;
    uint8_t payload[];
};

struct sim_link {
    struct wf_link link;
    struct sim *sim;
    unsigned host;
};

static uint32_t rnd(struct sim *s)
{
    s->rng ^= s->rng << 13;
    s->rng ^= s->rng >> 17;
    s->rng ^= s->rng << 5;
    return s->rng;
}

static bool chance(struct sim *s, unsigned per_thousand)
{
    return per_thousand && rnd(s) % 1000 < per_thousand;
}

// NULL when the payload's memory is gone: like a link that sends in batches, we tell nobody.
static struct sim_packet *copy_packet(const struct wf_pkt *pkt, const struct wf_path *path)
{
    struct sim_packet *p = calloc(1, sizeof(*p) + pkt->len);
    uint8_t *to = p->payload;
    p->pkt = *pkt;
    for (int i = 0; i < pkt->niov; to += pkt->iov[i].iov_len, i++)
        if (wf_guard_copy(to, pkt->iov[i].iov_base, pkt->iov[i].iov_len)) {
            free(p);
            return NULL;
        }
    assert_int_equal(to - p->payload, pkt->len);
    p->iov = (struct iovec){.iov_base = p->payload, .iov_len = pkt->len};
    p->sgid = path->sgid;
    p->dgid = path->dgid;
    p->pkt.iov = &p->iov;
    p->pkt.niov = pkt->len ? 1 : 0;
    p->pkt.sgid = &p->sgid;
    p->pkt.dgid = &p->dgid;
    p->pkt.ifindex = 1;
    p->pkt.hop_limit = path->hop_limit;
    // Only a datagram's DETH names its sender on the wire.
    if (WF_OPCODE_SVC(pkt->opcode) != WF_SVC_UD)
        p->pkt.sqpn = 0;
    return p;
}

static void enqueue(struct sim *s, unsigned to, struct sim_packet *p)
{
    struct sim_packet **at = &s->queue[to];
    if (!p)
        return;
    bool early = chance(s, s->faults.reorder);
    while (*at && !(early && !(*at)->next))
        at = &(*at)->next;
    p->next = *at;
    *at = p;
}

static int link_send(struct wf_link *l, const struct wf_path *path, const struct wf_pkt *pkt)
{
    struct sim_link *sl = (struct sim_link *)l;
    struct sim *s = sl->sim;
    unsigned to = path->dgid.raw[15] - 1u;
    s->sent++;
    assert_true(pkt->len <= 4096);
    if (to >= SIM_HOSTS || (s->filter && s->filter(s, sl->host, pkt)) ||
        chance(s, s->faults.drop)) {
        s->dropped++;
        return 0;
    }
    enqueue(s, to, copy_packet(pkt, path));
    if (chance(s, s->faults.dup))
        enqueue(s, to, copy_packet(pkt, path));
    return 0;
}

static void link_flush(struct wf_link *l)
{
    (void)l;
}

static int link_poll(struct wf_link *l, int budget)
{
    struct sim_link *sl = (struct sim_link *)l;
    struct sim *s = sl->sim;
    int n = 0;
    for (; n < budget && s->queue[sl->host]; n++) {
        struct sim_packet *p = s->queue[sl->host];
        s->queue[sl->host] = p->next;
        l->deliver(l->arg, &p->pkt);
        free(p);
    }
    return n;
}

static int link_fds(struct wf_link *l, int *fds, int max)
{
    (void)l, (void)fds, (void)max;
    return 0;
}

static void link_destroy(struct wf_link *l)
{
    free(l);
}

static uint64_t sim_clock(void *arg)
{
    return ((struct sim *)arg)->now;
}

static void on_async(void *user, enum ibv_event_type type, void *object, uint8_t port)
{
    struct sim_host *h = user;
    (void)port;
    if (h->nevents < 64)
        h->events[h->nevents++] = (struct sim_event){type, object};
}

static void on_comp(void *user)
{
    ((struct sim_host *)user)->comp_events++;
}

static void open_host(struct sim *s, unsigned i)
{
    static const struct wf_link_ops ops = {.name = "sim",
                                           .send = link_send,
                                           .flush = link_flush,
                                           .poll = link_poll,
                                           .fds = link_fds,
                                           .destroy = link_destroy};
    static const struct wf_ctx_ops ctx_ops = {.async = on_async};
    struct sim_host *h = &s->host[i];
    struct sim_link *l = calloc(1, sizeof(*l));
    *l = (struct sim_link){.link = {.ops = &ops}, .sim = s, .host = i};
    struct wf_gid_table gids = {.port_active = 1, .active_mtu = IBV_MTU_4096, .node_guid = i + 1};
    gids.gids[0] = (struct wf_gid_slot){.ifindex = 1, .ifmtu = 9000, .up = 1};
    memcpy(gids.gids[0].gid.raw, (uint8_t[16]){0xfd, [15] = (uint8_t)(i + 1)}, 16);
    struct wf_hca_parts parts = {
        .slot = i + 1, .udp = &l->link, .clock = sim_clock, .clock_arg = s, .gids = &gids};
    assert_int_equal(wf_loop_link_create(&parts.loop), 0);
    assert_int_equal(wf_hca_create(&parts, &h->hca), 0);
    h->sim = s;
    h->index = i;
    assert_int_equal(wf_ctx_open(h->hca, &ctx_ops, h, &h->ctx), 0);
    assert_int_equal(wf_pd_create(h->ctx, &h->pd), 0);
    struct wf_cq_init cq = {.cqe = 1024, .user = h, .on_comp = on_comp};
    assert_int_equal(wf_cq_create(h->ctx, &cq, &h->cq), 0);
    h->buf = calloc(1, SIM_BUF);
    assert_int_equal(wf_mr_reg(h->pd, h->buf, SIM_BUF, (uintptr_t)h->buf,
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                   IBV_ACCESS_MW_BIND,
                               &h->mr),
                     0);
}

void sim_open(struct sim *s)
{
    struct sim_wire_faults faults = s->faults;
    memset(s, 0, sizeof(*s));
    s->faults = faults;
    s->rng = faults.seed ? faults.seed : 1;
    s->now = 1000000;
    for (unsigned i = 0; i < SIM_HOSTS; i++)
        open_host(s, i);
}

void sim_close(struct sim *s)
{
    for (unsigned i = 0; i < SIM_HOSTS; i++) {
        wf_ctx_close(s->host[i].ctx);
        wf_hca_destroy(s->host[i].hca);
        free(s->host[i].buf);
        while (s->queue[i]) {
            struct sim_packet *p = s->queue[i];
            s->queue[i] = p->next;
            free(p);
        }
    }
}

void sim_settle(struct sim *s)
{
    for (int quiet = 0; quiet < 2;) {
        unsigned before = s->sent;
        for (unsigned i = 0; i < SIM_HOSTS; i++)
            for (unsigned k = 0; k < 8; k++)
                wf_hca_progress(s->host[i].hca);
        bool idle = before == s->sent && !s->queue[0] && !s->queue[1];
        quiet = idle ? quiet + 1 : 0;
    }
}

void sim_run(struct sim *s, uint64_t ns, bool (*done)(void *arg), void *arg)
{
    uint64_t end = s->now + ns;
    sim_settle(s);
    while (s->now < end && !(done && done(arg))) {
        uint64_t next = end;
        for (unsigned i = 0; i < SIM_HOSTS; i++) {
            uint64_t t = wf_heap_next(s->host[i].hca);
            if (t < next)
                next = t;
        }
        s->now = next > s->now ? next : s->now + 1;
        sim_settle(s);
    }
}

struct wf_qp *sim_qp_srq(struct sim *s, unsigned h, enum ibv_qp_type type, struct wf_srq *srq)
{
    struct wf_qp *qp;
    struct wf_qp_init init = {
        .type = type,
        .send_cq = s->host[h].cq,
        .recv_cq = s->host[h].cq,
        .srq = srq,
        .cap = {.max_send_wr = 128,
                .max_recv_wr = 128,
                .max_send_sge = 4,
                .max_recv_sge = 4,
                .max_inline_data = 64},
    };
    assert_int_equal(wf_qp_create(s->host[h].ctx, s->host[h].pd, &init, &qp), 0);
    return qp;
}

struct wf_qp *sim_qp(struct sim *s, unsigned h, enum ibv_qp_type type)
{
    return sim_qp_srq(s, h, type, NULL);
}

const struct sim_conn sim_defaults = {
    .timeout = 14,
    .retry_cnt = 7,
    .rnr_retry = 7,
    .min_rnr_timer = 12,
    .rd_atomic = 16,
    .dest_rd_atomic = 16,
    .mtu = IBV_MTU_1024,
    .sq_psn = 0xfffff0, // wraps soon
    .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};

void sim_av(struct sim *s, unsigned to, struct ibv_ah_attr *av)
{
    *av = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
    av->grh.dgid = s->host[to].hca->gids.gids[0].gid;
}

int sim_to_init(struct wf_qp *qp, unsigned access)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access, .qkey = 0x1234};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    return wf_qp_modify(qp, &a,
                        mask | (qp->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static void connect_one(struct sim *s, struct wf_qp *qp, struct wf_qp *peer, unsigned to,
                        const struct sim_conn *c)
{
    bool rc = qp->type == IBV_QPT_RC, ud = qp->type == IBV_QPT_UD;
    assert_int_equal(sim_to_init(qp, c->access), 0);
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = c->mtu,
                            .dest_qp_num = peer->qpn,
                            .rq_psn = c->sq_psn,
                            .max_dest_rd_atomic = c->dest_rd_atomic,
                            .min_rnr_timer = c->min_rnr_timer};
    sim_av(s, to, &a.ah_attr);
    int mask = IBV_QP_STATE;
    if (!ud)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (rc)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    assert_int_equal(wf_qp_modify(qp, &a, mask), 0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .sq_psn = c->sq_psn,
                             .timeout = c->timeout,
                             .retry_cnt = c->retry_cnt,
                             .rnr_retry = c->rnr_retry,
                             .max_rd_atomic = c->rd_atomic};
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (rc)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    assert_int_equal(wf_qp_modify(qp, &a, mask), 0);
}

void sim_connect(struct sim *s, struct wf_qp *a, unsigned ha, struct wf_qp *b, unsigned hb,
                 const struct sim_conn *c)
{
    connect_one(s, a, b, hb, c);
    connect_one(s, b, a, ha, c);
}

static struct ibv_sge sge_of(struct sim *s, unsigned h, uint32_t off, uint32_t len)
{
    return (struct ibv_sge){
        .addr = (uintptr_t)s->host[h].buf + off, .length = len, .lkey = wf_mr_lkey(s->host[h].mr)};
}

int sim_send(struct sim *s, unsigned h, struct wf_qp *qp, uint64_t wr_id, uint32_t off,
             uint32_t len)
{
    struct ibv_sge sge = sge_of(s, h, off, len);
    struct ibv_send_wr *bad, wr = {.wr_id = wr_id,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED};
    return wf_qp_post_send(qp, &wr, &bad);
}

int sim_recv(struct sim *s, unsigned h, struct wf_qp *qp, uint64_t wr_id, uint32_t off,
             uint32_t len)
{
    struct ibv_sge sge = sge_of(s, h, off, len);
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
    return wf_qp_post_recv(qp, &wr, &bad);
}

int sim_rdma(struct sim *s, unsigned h, struct wf_qp *qp, enum ibv_wr_opcode op, uint64_t wr_id,
             uint32_t off, uint32_t len, uint32_t roff)
{
    struct sim_host *peer = &s->host[!h];
    struct ibv_sge sge = sge_of(s, h, off, len);
    struct ibv_send_wr *bad, wr = {.wr_id = wr_id,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = op,
                                   .imm_data = 0x11223344,
                                   .send_flags = IBV_SEND_SIGNALED};
    uint64_t raddr = (uintptr_t)peer->buf + roff;
    if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = raddr;
        wr.wr.atomic.rkey = wf_mr_rkey(peer->mr);
        wr.wr.atomic.compare_add = 1;
        wr.wr.atomic.swap = 77;
    } else {
        wr.wr.rdma.remote_addr = raddr;
        wr.wr.rdma.rkey = wf_mr_rkey(peer->mr);
    }
    return wf_qp_post_send(qp, &wr, &bad);
}

struct ibv_wc sim_wc(struct sim *s, unsigned h)
{
    struct ibv_wc wc;
    if (wf_cq_poll(s->host[h].cq, 1, &wc) != 1)
        wc = (struct ibv_wc){.status = SIM_NO_WC};
    return wc;
}

unsigned sim_drain(struct sim *s, unsigned h, struct ibv_wc *wc, unsigned max)
{
    unsigned n = 0;
    while (n < max && wf_cq_poll(s->host[h].cq, 1, &wc[n]) == 1)
        n++;
    return n;
}

void sim_fill(struct sim *s, unsigned h, uint32_t off, uint32_t len, uint8_t seed)
{
    for (uint32_t i = 0; i < len; i++)
        s->host[h].buf[off + i] = (uint8_t)(seed + i * 7 + (i >> 8));
}
