// SPDX-License-Identifier: BSD-2-Clause
#include "pair.h"
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void die_at(const char *file, int line, const char *what)
{
    printf("%s:%d: not true: %s (errno %d, %s)\n", file, line, what, errno, strerror(errno));
    exit(1);
}

uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

// A GID with an address of its own: IPv4 when there is one.
static int pick_gid(struct ibv_context *ctx, union ibv_gid *gid)
{
    struct ibv_gid_entry entries[64];
    ssize_t n = ibv_query_gid_table(ctx, entries, 64, 0);
    ssize_t best = 0;

    must(n > 0);
    for (ssize_t i = 0; i < n; i++)
        if (entries[i].gid.raw[10] == 0xff && entries[i].gid.raw[11] == 0xff)
            best = i;
    *gid = entries[best].gid;
    return (int)entries[best].gid_index;
}

void node_open(struct node *n)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    must(list && list[0]);
    must(n->ctx = ibv_open_device(list[0]));
    ibv_free_device_list(list);
    must(n->pd = ibv_alloc_pd(n->ctx));
    must(n->mem = aligned_alloc(4096, 2 * END_MEM));
    memset(n->mem, 0, 2 * END_MEM);
    must(n->mr = ibv_reg_mr(n->pd, n->mem, 2 * END_MEM, PAIR_ALL));
    n->gid_index = pick_gid(n->ctx, &n->gid);
}

void node_close(struct node *n)
{
    must(ibv_dereg_mr(n->mr) == 0);
    must(ibv_dealloc_pd(n->pd) == 0);
    must(ibv_close_device(n->ctx) == 0);
    free(n->mem);
}

static void make_qp(struct end *e, const struct pair_opts *o)
{
    uint32_t wr = o->max_wr ? o->max_wr : 16, sge = o->max_sge ? o->max_sge : 4;
    struct ibv_qp_init_attr_ex init = {
        .send_cq = e->scq,
        .recv_cq = e->rcq,
        .cap = {wr, wr, sge, sge, 64},
        .qp_type = o->type,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = e->node->pd,
        .send_ops_flags = o->send_ops,
    };

    if (o->send_ops)
        init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    must(e->qp = ibv_create_qp_ex(e->node->ctx, &init));
}

static void to_init(struct end *e, const struct pair_opts *o)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qkey = 0x11111111,
                            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                               IBV_ACCESS_REMOTE_ATOMIC};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    if (o->type == IBV_QPT_UC)
        a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    mask |= o->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    must(ibv_modify_qp(e->qp, &a, mask) == 0);
}

static void to_rtr(struct end *e, const struct pair_opts *o, uint32_t dest)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = dest,
        .rq_psn = 0xfffff0,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {.grh = {.dgid = e->node->gid,
                            .sgid_index = (uint8_t)e->node->gid_index,
                            .hop_limit = 64},
                    .is_global = 1,
                    .port_num = 1},
    };
    int mask = IBV_QP_STATE;

    if (o->type != IBV_QPT_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (o->type == IBV_QPT_RC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    must(ibv_modify_qp(e->qp, &a, mask) == 0);
}

void to_rts(struct end *e, const struct pair_opts *o, uint32_t dest)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .sq_psn = 0xfffff0,
                            .timeout = o->timeout ? o->timeout : 14,
                            .retry_cnt = o->timeout ? o->retry : 7,
                            .rnr_retry = o->timeout ? o->rnr_retry : 7,
                            .max_rd_atomic = 4};
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

    to_init(e, o);
    to_rtr(e, o, dest);
    if (o->type == IBV_QPT_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    must(ibv_modify_qp(e->qp, &a, mask) == 0);
}

void pair_make(struct node *n, struct end e[2], const struct pair_opts *o)
{
    for (int i = 0; i < 2; i++) {
        e[i].node = n;
        e[i].mem = n->mem + (size_t)i * END_MEM;
        if (!e[i].scq)
            must(e[i].scq = ibv_create_cq(n->ctx, 64, NULL, NULL, 0));
        if (!e[i].rcq)
            must(e[i].rcq = ibv_create_cq(n->ctx, 64, NULL, NULL, 0));
        make_qp(&e[i], o);
    }
    for (int i = 0; i < 2; i++)
        to_rts(&e[i], o, o->dest ? o->dest : e[!i].qp->qp_num);
}

void pair_free(struct end e[2])
{
    for (int i = 0; i < 2; i++)
        must(ibv_destroy_qp(e[i].qp) == 0);
    for (int i = 0; i < 2; i++) {
        must(ibv_destroy_cq(e[i].scq) == 0);
        must(ibv_destroy_cq(e[i].rcq) == 0);
        e[i] = (struct end){0};
    }
}

struct ibv_sge sge_of(const struct end *e, size_t offset, uint32_t len)
{
    return (struct ibv_sge){(uintptr_t)(e->mem + offset), len, e->node->mr->lkey};
}

void post_recv(struct end *e, uint64_t id, uint32_t len)
{
    struct ibv_sge sge = sge_of(e, END_MEM / 2, len);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

    must(ibv_post_recv(e->qp, &wr, &bad) == 0);
}

int post(struct end *e, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    return ibv_post_send(e->qp, wr, &bad);
}

struct ibv_wc next_wc(struct ibv_cq *cq)
{
    uint64_t end = now_ms() + 10000;
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
        must(now_ms() < end);
        sched_yield();
    }
    must(n == 1);
    return wc;
}
