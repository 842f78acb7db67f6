// SPDX-License-Identifier: BSD-2-Clause
// mistakes NAME: makes one mistake that programs make, and waits until it shows. mistakes --list:
// name, number of the reason and words that its line must have, for tests/apps/mistakes.sh.
#include <infiniband/verbs.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE 4096u

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t *buf;
static int gid_index;
static bool patient; // wait for receives for ever

static void need(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "mistakes: %s failed\n", what);
    exit(3);
}

#define ALL                                                                                        \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

static void open_all(void)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    need(list && n, "device list");
    ctx = ibv_open_device(list[0]);
    need(ctx, "open");
    pd = ibv_alloc_pd(ctx);
    cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
    buf = mmap(NULL, 4 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mr = ibv_reg_mr(pd, buf, SIZE, ALL);
    need(pd && cq && mr, "objects");
}

static struct ibv_qp *new_qp(enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = type,
                                    .cap = {.max_send_wr = 8,
                                            .max_recv_wr = 8,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = 16}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    need(qp, "create_qp");
    return qp;
}

static int to_init(struct ibv_qp *qp, unsigned access)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access, .qkey = 7};
    int last = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last);
}

static int to_rtr(struct ibv_qp *qp, uint32_t dest, uint32_t psn)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = IBV_MTU_1024,
                            .dest_qp_num = dest,
                            .rq_psn = psn,
                            .max_dest_rd_atomic = 1,
                            .min_rnr_timer = 1,
                            .ah_attr = {.is_global = 1, .port_num = 1}};
    need(ibv_query_gid(ctx, 1, gid_index, &a.ah_attr.grh.dgid) == 0, "query_gid");
    a.ah_attr.grh.sgid_index = (uint8_t)gid_index;
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return ibv_modify_qp(qp, &a, qp->qp_type == IBV_QPT_UD ? IBV_QP_STATE : mask);
}

static int to_rts(struct ibv_qp *qp, uint32_t psn, uint8_t reads)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .timeout = 8,
                            .retry_cnt = 2,
                            .rnr_retry = patient ? 7 : 1,
                            .sq_psn = psn,
                            .max_rd_atomic = reads};
    int mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC;
    return ibv_modify_qp(qp, &a, qp->qp_type == IBV_QPT_UD ? IBV_QP_STATE | IBV_QP_SQ_PSN : mask);
}

struct pair {
    struct ibv_qp *a, *b; // a sends, b receives
};

static struct pair connected(unsigned access, uint8_t reads)
{
    struct pair p = {new_qp(IBV_QPT_RC), new_qp(IBV_QPT_RC)};
    need(!to_init(p.a, access) && !to_init(p.b, access), "INIT");
    need(!to_rtr(p.a, p.b->qp_num, 5) && !to_rtr(p.b, p.a->qp_num, 5), "RTR");
    need(!to_rts(p.a, 5, reads) && !to_rts(p.b, 5, reads), "RTS");
    return p;
}

static int recv_into(struct ibv_qp *qp, void *at, uint32_t len, uint32_t lkey)
{
    struct ibv_sge sge = {.addr = (uintptr_t)at, .length = len, .lkey = lkey};
    struct ibv_recv_wr wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_recv(qp, &wr, &bad);
}

static struct ibv_sge sge;
static struct ibv_send_wr wr;

static struct ibv_send_wr *request(enum ibv_wr_opcode op, void *at, uint32_t len, uint32_t lkey)
{
    sge = (struct ibv_sge){.addr = (uintptr_t)at, .length = len, .lkey = lkey};
    wr = (struct ibv_send_wr){
        .wr_id = 42, .sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED};
    return &wr;
}

static struct ibv_send_wr *rdma(enum ibv_wr_opcode op, void *remote, uint32_t len, uint32_t rkey)
{
    struct ibv_send_wr *w = request(op, buf + 2048, len, mr->lkey);
    w->wr.rdma.remote_addr = (uintptr_t)remote;
    w->wr.rdma.rkey = rkey;
    return w;
}

static int post(struct ibv_qp *qp, struct ibv_send_wr *w)
{
    struct ibv_send_wr *bad;
    return ibv_post_send(qp, w, &bad);
}

// Until a completion failed, or `ms` went by.
static void wait_failure(int ms)
{
    struct timespec ts = {0, 100000};
    struct ibv_wc wc;
    for (int i = 0; i < ms * 10; i++) {
        int n = ibv_poll_cq(cq, 1, &wc);
        if (n < 0 || (n > 0 && wc.status != IBV_WC_SUCCESS))
            return;
        if (!n)
            nanosleep(&ts, NULL);
    }
}

static void send_and_wait(struct ibv_qp *qp, struct ibv_send_wr *w)
{
    need(!post(qp, w), "post_send");
    wait_failure(3000);
}

// ---- refused calls ------------------------------------------------------------------------------

static void send_in_init(void)
{
    struct ibv_qp *qp = new_qp(IBV_QPT_RC);
    to_init(qp, ALL);
    post(qp, request(IBV_WR_SEND, buf, 8, mr->lkey));
}

static void reset_to_rts(void)
{
    to_rts(new_qp(IBV_QPT_RC), 0, 1);
}

static void rtr_lacks_av(void)
{
    struct ibv_qp *qp = new_qp(IBV_QPT_RC);
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024};
    to_init(qp, ALL);
    ibv_modify_qp(qp, &a,
                  IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static void init_with_timeout(void)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .timeout = 14};
    ibv_modify_qp(new_qp(IBV_QPT_RC), &a,
                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS |
                      IBV_QP_TIMEOUT);
}

static void port_nine(void)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 9};
    ibv_modify_qp(new_qp(IBV_QPT_RC), &a,
                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void send_queue_full(void)
{
    struct pair p = connected(ALL, 1);
    for (int i = 0; i < 1000; i++)
        if (post(p.a, request(IBV_WR_SEND, buf, 8, mr->lkey)))
            return;
}

static void receive_queue_full(void)
{
    struct ibv_qp *qp = new_qp(IBV_QPT_RC);
    to_init(qp, ALL);
    for (int i = 0; i < 1000; i++)
        if (recv_into(qp, buf, 8, mr->lkey))
            return;
}

static void two_sges(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_sge two[40] = {{(uintptr_t)buf, 8, mr->lkey}, {(uintptr_t)buf, 8, mr->lkey}};
    struct ibv_send_wr *w = request(IBV_WR_SEND, buf, 8, mr->lkey);
    w->sg_list = two;
    w->num_sge = 33;
    post(p.a, w);
}

static void inline_too_long(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_send_wr *w = request(IBV_WR_SEND, buf, 2000, mr->lkey);
    w->send_flags |= IBV_SEND_INLINE;
    post(p.a, w);
}

static struct ibv_qp *datagram_qp(void)
{
    struct ibv_qp *qp = new_qp(IBV_QPT_UD);
    need(!to_init(qp, 0) && !to_rtr(qp, 0, 0) && !to_rts(qp, 0, 0), "UD");
    return qp;
}

static struct ibv_ah *handle(void)
{
    struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};
    ibv_query_gid(ctx, 1, gid_index, &a.grh.dgid);
    a.grh.sgid_index = (uint8_t)gid_index;
    struct ibv_ah *ah = ibv_create_ah(pd, &a);
    need(ah, "create_ah");
    return ah;
}

static struct ibv_send_wr *datagram(struct ibv_qp *to, uint32_t len, uint32_t qkey)
{
    struct ibv_send_wr *w = request(IBV_WR_SEND, buf, len, mr->lkey);
    w->wr.ud.ah = handle();
    w->wr.ud.remote_qpn = to->qp_num;
    w->wr.ud.remote_qkey = qkey;
    return w;
}

static void read_on_ud(void)
{
    struct ibv_qp *qp = datagram_qp();
    struct ibv_send_wr *w = datagram(qp, 8, 7);
    w->opcode = IBV_WR_RDMA_READ;
    post(qp, w);
}

static void datagram_too_long(void)
{
    struct ibv_qp *qp = datagram_qp();
    struct ibv_mr *big = ibv_reg_mr(pd, buf, 4 * SIZE, ALL);
    struct ibv_send_wr *w = datagram(qp, 3 * SIZE, 7);
    w->sg_list->lkey = big->lkey;
    post(qp, w);
}

static void receive_beside_srq(void)
{
    struct ibv_srq_init_attr s = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .srq = ibv_create_srq(pd, &s),
                                    .cap = {.max_send_wr = 4, .max_send_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    need(qp, "QP with SRQ");
    to_init(qp, ALL);
    recv_into(qp, buf, 8, mr->lkey);
}

static void queue_overruns(void)
{
    struct ibv_cq *small = ibv_create_cq(ctx, 1, NULL, NULL, 0), *saved = cq;
    cq = small;
    struct pair p = connected(ALL, 1);
    cq = saved;
    struct timespec ts = {0, 1000000};
    for (int i = 0; i < 4000; i++) {
        if (post(p.a, rdma(IBV_WR_RDMA_WRITE, buf, 8, mr->rkey)))
            return;
        struct ibv_qp_attr a;
        struct ibv_qp_init_attr init;
        if (i % 4 == 3) {
            nanosleep(&ts, NULL);
            ibv_query_qp(p.a, &a, IBV_QP_STATE, &init);
            if (a.qp_state == IBV_QPS_ERR)
                return;
        }
    }
}

static void remote_without_local(void)
{
    ibv_reg_mr(pd, buf, SIZE, IBV_ACCESS_REMOTE_WRITE);
}

static void no_read_depth(void)
{
    struct pair p = connected(ALL, 0);
    send_and_wait(p.a, rdma(IBV_WR_RDMA_READ, buf, 8, mr->rkey));
}

static void acknowledge_twice(void)
{
    ibv_ack_cq_events(cq, 3);
}

static void pd_in_use(void)
{
    ibv_dealloc_pd(pd);
}

static void cq_in_use(void)
{
    new_qp(IBV_QPT_RC);
    ibv_destroy_cq(cq);
}

static void handle_without_grh(void)
{
    struct ibv_ah_attr a = {.dlid = 1, .port_num = 1};
    ibv_create_ah(pd, &a);
}

static void empty_gid(void)
{
    struct ibv_ah_attr a = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 30}};
    ibv_query_gid(ctx, 1, gid_index, &a.grh.dgid);
    ibv_create_ah(pd, &a);
}

static void cq_too_large(void)
{
    ibv_create_cq(ctx, 1 << 30, NULL, NULL, 0);
}

static void raw_qp(void)
{
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RAW_PACKET,
                                    .cap = {.max_send_wr = 1, .max_send_sge = 1}};
    ibv_create_qp(pd, &init);
}

static void region_wraps(void)
{
    ibv_reg_mr(pd, (void *)(uintptr_t)-4096, 8192, ALL);
}

static void too_many_requests(void)
{
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 1 << 20, .max_send_sge = 1}};
    ibv_create_qp(pd, &init);
}

// ---- memory of this side ------------------------------------------------------------------------

static void lkey_never_existed(void)
{
    struct pair p = connected(ALL, 1);
    send_and_wait(p.a, request(IBV_WR_SEND, buf, 8, 0x00ffff01));
}

static void lkey_deregistered(void)
{
    struct pair p = connected(ALL, 1);
    uint32_t key = mr->lkey;
    need(!ibv_dereg_mr(mr), "dereg");
    send_and_wait(p.a, request(IBV_WR_SEND, buf, 8, key));
}

static void lkey_of_other_pd(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_mr *other = ibv_reg_mr(ibv_alloc_pd(ctx), buf, SIZE, ALL);
    send_and_wait(p.a, request(IBV_WR_SEND, buf, 8, other->lkey));
}

static void sge_past_the_end(void)
{
    struct pair p = connected(ALL, 1);
    send_and_wait(p.a, request(IBV_WR_SEND, buf, SIZE + 12, mr->lkey));
}

static void receive_without_local_write(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_mr *ro = ibv_reg_mr(pd, buf + SIZE, SIZE, 0);
    recv_into(p.b, buf + SIZE, 64, ro->lkey);
    send_and_wait(p.a, request(IBV_WR_SEND, buf, 8, mr->lkey));
}

static void receive_too_short(void)
{
    struct pair p = connected(ALL, 1);
    recv_into(p.b, buf, 8, mr->lkey);
    send_and_wait(p.a, request(IBV_WR_SEND, buf, 64, mr->lkey));
}

// ---- refused by the responder -------------------------------------------------------------------

static void rkey_never_existed(void)
{
    struct pair p = connected(ALL, 1);
    send_and_wait(p.a, rdma(IBV_WR_RDMA_WRITE, buf, 8, 0x00fffe01));
}

static void rkey_deregistered(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_mr *gone = ibv_reg_mr(pd, buf + SIZE, SIZE, ALL);
    uint32_t key = gone->rkey;
    need(!ibv_dereg_mr(gone), "dereg");
    send_and_wait(p.a, rdma(IBV_WR_RDMA_WRITE, buf + SIZE, 8, key));
}

static void rkey_of_other_pd(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_mr *other = ibv_reg_mr(ibv_alloc_pd(ctx), buf, SIZE, ALL);
    send_and_wait(p.a, rdma(IBV_WR_RDMA_WRITE, buf, 8, other->rkey));
}

static void write_past_the_end(void)
{
    struct pair p = connected(ALL, 1);
    send_and_wait(p.a, rdma(IBV_WR_RDMA_WRITE, buf + SIZE - 52, 64, mr->rkey));
}

static void read_before_the_start(void)
{
    struct pair p = connected(ALL, 1);
    send_and_wait(p.a, rdma(IBV_WR_RDMA_READ, buf - 8, 64, mr->rkey));
}

static void region_lacks_remote_write(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_mr *m = ibv_reg_mr(pd, buf, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    send_and_wait(p.a, rdma(IBV_WR_RDMA_WRITE, buf, 8, m->rkey));
}

static void region_lacks_remote_read(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_mr *m = ibv_reg_mr(pd, buf, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    send_and_wait(p.a, rdma(IBV_WR_RDMA_READ, buf, 8, m->rkey));
}

static struct ibv_send_wr *add(void *remote, uint32_t rkey)
{
    struct ibv_send_wr *w = request(IBV_WR_ATOMIC_FETCH_AND_ADD, buf + 2048, 8, mr->lkey);
    w->wr.atomic.remote_addr = (uintptr_t)remote;
    w->wr.atomic.rkey = rkey;
    return w;
}

static void region_lacks_atomic(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_mr *m = ibv_reg_mr(pd, buf, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    send_and_wait(p.a, add(buf, m->rkey));
}

static void qp_lacks_remote_write(void)
{
    struct pair p = connected(IBV_ACCESS_LOCAL_WRITE, 1);
    send_and_wait(p.a, rdma(IBV_WR_RDMA_WRITE, buf, 8, mr->rkey));
}

static void qp_lacks_remote_read(void)
{
    struct pair p = connected(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 1);
    send_and_wait(p.a, rdma(IBV_WR_RDMA_READ, buf, 8, mr->rkey));
}

static void qp_lacks_atomic(void)
{
    struct pair p = connected(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 1);
    send_and_wait(p.a, add(buf, mr->rkey));
}

static void atomic_not_aligned(void)
{
    struct pair p = connected(ALL, 1);
    send_and_wait(p.a, add(buf + 4, mr->rkey));
}

static void window_without_bind_right(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_mr *m = ibv_reg_mr(pd, buf, SIZE, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    struct ibv_send_wr w = {.wr_id = 42, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
    w.bind_mw.mw = mw;
    w.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    w.bind_mw.bind_info = (struct ibv_mw_bind_info){
        .mr = m, .addr = (uintptr_t)buf, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_READ};
    send_and_wait(p.a, &w);
}

static void region_under_a_window(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    struct ibv_send_wr w = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
    w.bind_mw.mw = mw;
    w.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    w.bind_mw.bind_info = (struct ibv_mw_bind_info){
        .mr = mr, .addr = (uintptr_t)buf, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_READ};
    need(!post(p.a, &w), "bind");
    wait_failure(20);
    ibv_dereg_mr(mr);
}

// ---- no answer ----------------------------------------------------------------------------------

static void no_receive_posted(void)
{
    struct pair p = connected(ALL, 1);
    send_and_wait(p.a, request(IBV_WR_SEND, buf, 8, mr->lkey));
}

static struct ibv_qp *alone(uint32_t dest, uint32_t psn)
{
    struct ibv_qp *qp = new_qp(IBV_QPT_RC);
    need(!to_init(qp, ALL) && !to_rtr(qp, dest, 5) && !to_rts(qp, psn, 1), "RTS");
    return qp;
}

static void no_such_qp(void)
{
    struct ibv_qp *gone = new_qp(IBV_QPT_RC);
    uint32_t number = gone->qp_num;
    ibv_destroy_qp(gone);
    send_and_wait(alone(number, 5), request(IBV_WR_SEND, buf, 8, mr->lkey));
}

static void peer_in_reset(void)
{
    send_and_wait(alone(new_qp(IBV_QPT_RC)->qp_num, 5), request(IBV_WR_SEND, buf, 8, mr->lkey));
}

static void peer_in_error(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    need(!ibv_modify_qp(p.b, &a, IBV_QP_STATE), "ERR");
    send_and_wait(p.a, request(IBV_WR_SEND, buf, 8, mr->lkey));
}

static void wrong_psn(void)
{
    struct ibv_qp *b = new_qp(IBV_QPT_RC);
    struct ibv_qp *a = alone(b->qp_num, 2000);
    need(!to_init(b, ALL) && !to_rtr(b, a->qp_num, 5), "RTR");
    recv_into(b, buf, 64, mr->lkey);
    send_and_wait(a, request(IBV_WR_SEND, buf, 8, mr->lkey));
}

static void peer_of_somebody_else(void)
{
    struct pair p = connected(ALL, 1);
    send_and_wait(alone(p.b->qp_num, 5), request(IBV_WR_SEND, buf, 8, mr->lkey));
}

static void no_process(void)
{
    send_and_wait(alone(0xf00005, 5), request(IBV_WR_SEND, buf, 8, mr->lkey));
}

static void wrong_qkey(void)
{
    struct ibv_qp *a = datagram_qp(), *b = datagram_qp();
    recv_into(b, buf, 256, mr->lkey);
    need(!post(a, datagram(b, 8, 99)), "post_send");
    wait_failure(100); // nothing fails here: the datagram is dropped
}

// No mistake: for tests that break the network under it.
static void plain_send(void)
{
    struct pair p = connected(ALL, 1);
    recv_into(p.b, buf, 64, mr->lkey);
    send_and_wait(p.a, request(IBV_WR_SEND, buf, 8, mr->lkey));
}

// ---- programs that hang, for weft why -----------------------------------------------------------

static void hang_without_receive(void)
{
    patient = true;
    struct pair p = connected(ALL, 1);
    for (int i = 0; i < 3; i++)
        post(p.a, request(IBV_WR_SEND, buf, 8, mr->lkey));
    pause();
}

static void hang_unsignalled(void)
{
    struct pair p = connected(ALL, 1);
    struct ibv_wc wc;
    for (;;) {
        struct ibv_send_wr *w = rdma(IBV_WR_RDMA_WRITE, buf, 8, mr->rkey);
        w->send_flags = 0;
        if (post(p.a, w))
            for (int i = 0; i < 100000; i++)
                ibv_poll_cq(cq, 1, &wc), usleep(1000);
    }
}

static void hang_unpolled(void)
{
    struct pair p = connected(ALL, 1);
    post(p.a, rdma(IBV_WR_RDMA_WRITE, buf, 8, mr->rkey));
    pause();
}

static void hang_unacknowledged(void)
{
    struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
    struct ibv_cq *got, *mine = ibv_create_cq(ctx, 16, NULL, ch, 0);
    void *context;
    cq = mine;
    struct pair p = connected(ALL, 1);
    need(!ibv_req_notify_cq(mine, 0), "arm");
    post(p.a, rdma(IBV_WR_RDMA_WRITE, buf, 8, mr->rkey));
    need(!ibv_get_cq_event(ch, &got, &context), "event");
    ibv_destroy_qp(p.a);
    ibv_destroy_qp(p.b);
    ibv_destroy_cq(mine);
}

// The peer is another process, and is killed before the send.
static void peer_killed(void)
{
    int down[2], up[2];
    struct {
        uint32_t qpn;
    } msg;
    need(!pipe(down) && !pipe(up), "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        open_all();
        struct ibv_qp *b = new_qp(IBV_QPT_RC);
        msg.qpn = b->qp_num;
        need(write(up[1], &msg, sizeof(msg)) == sizeof(msg), "write");
        need(read(down[0], &msg, sizeof(msg)) == sizeof(msg), "read");
        need(!to_init(b, ALL) && !to_rtr(b, msg.qpn, 5), "RTR");
        need(write(up[1], &msg, sizeof(msg)) == sizeof(msg), "write");
        pause();
    }
    open_all();
    need(read(up[0], &msg, sizeof(msg)) == sizeof(msg), "read");
    struct ibv_qp *a = alone(msg.qpn, 5);
    msg.qpn = a->qp_num;
    need(write(down[1], &msg, sizeof(msg)) == sizeof(msg), "write");
    need(read(up[0], &msg, sizeof(msg)) == sizeof(msg), "read");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    send_and_wait(a, request(IBV_WR_SEND, buf, 8, mr->lkey));
}

static const struct {
    const char *name;
    int number;
    const char *says;
    void (*make)(void);
} mistakes[] = {
    {"plain_send", 0, "", plain_send},
    {"hang_without_receive", 0, "", hang_without_receive},
    {"hang_unsignalled", 0, "", hang_unsignalled},
    {"hang_unpolled", 0, "", hang_unpolled},
    {"hang_unacknowledged", 0, "", hang_unacknowledged},
    {"peer_killed", 402, "ended", peer_killed},
    {"send_in_init", 104, "in INIT", send_in_init},
    {"reset_to_rts", 104, "RESET to RTS", reset_to_rts},
    {"rtr_lacks_av", 105, "needs IBV_QP_AV", rtr_lacks_av},
    {"init_with_timeout", 106, "takes no IBV_QP_TIMEOUT", init_with_timeout},
    {"port_nine", 107, "port_num 9", port_nine},
    {"send_queue_full", 110, "requests", send_queue_full},
    {"receive_queue_full", 111, "receives", receive_queue_full},
    {"two_sges", 112, "max_send_sge", two_sges},
    {"inline_too_long", 113, "2000 bytes", inline_too_long},
    {"read_on_ud", 114, "opcode", read_on_ud},
    {"datagram_too_long", 115, "12288 bytes", datagram_too_long},
    {"receive_beside_srq", 116, "SRQ", receive_beside_srq},
    {"queue_overruns", 117, "CQ of", queue_overruns},
    {"remote_without_local", 118, "IBV_ACCESS_LOCAL_WRITE", remote_without_local},
    {"no_read_depth", 119, "max_rd_atomic", no_read_depth},
    {"acknowledge_twice", 121, "3 events acknowledged, 0 were", acknowledge_twice},
    {"pd_in_use", 103, "PD", pd_in_use},
    {"cq_in_use", 103, "CQ", cq_in_use},
    {"region_under_a_window", 103, "window is bound", region_under_a_window},
    {"handle_without_grh", 101, "is_global", handle_without_grh},
    {"empty_gid", 606, "GID index 30", empty_gid},
    {"cq_too_large", 101, "CQ of 1073741824", cq_too_large},
    {"raw_qp", 102, "QP type", raw_qp},
    {"region_wraps", 101, "wraps around", region_wraps},
    {"too_many_requests", 101, "max_send_wr 1048576", too_many_requests},
    {"lkey_never_existed", 201, "never existed; the address lies in key", lkey_never_existed},
    {"lkey_deregistered", 201, "was deregistered", lkey_deregistered},
    {"lkey_of_other_pd", 202, "the QP of PD", lkey_of_other_pd},
    {"sge_past_the_end", 203, "12 bytes past its end", sge_past_the_end},
    {"receive_without_local_write", 204, "lacks IBV_ACCESS_LOCAL_WRITE",
     receive_without_local_write},
    {"receive_too_short", 205, "longer than 8 bytes", receive_too_short},
    {"rkey_never_existed", 301, "never existed", rkey_never_existed},
    {"rkey_deregistered", 301, " ms ago by ", rkey_deregistered},
    {"rkey_of_other_pd", 302, "the QP of PD", rkey_of_other_pd},
    {"write_past_the_end", 303, "12 bytes past its end", write_past_the_end},
    {"read_before_the_start", 303, "8 bytes before its start", read_before_the_start},
    {"region_lacks_remote_write", 304, "lacks IBV_ACCESS_REMOTE_WRITE", region_lacks_remote_write},
    {"region_lacks_remote_read", 304, "lacks IBV_ACCESS_REMOTE_READ", region_lacks_remote_read},
    {"region_lacks_atomic", 304, "lacks IBV_ACCESS_REMOTE_ATOMIC", region_lacks_atomic},
    {"qp_lacks_remote_write", 305, "lack IBV_ACCESS_REMOTE_WRITE", qp_lacks_remote_write},
    {"qp_lacks_remote_read", 305, "lack IBV_ACCESS_REMOTE_READ", qp_lacks_remote_read},
    {"qp_lacks_atomic", 305, "lack IBV_ACCESS_REMOTE_ATOMIC", qp_lacks_atomic},
    {"atomic_not_aligned", 306, "at address", atomic_not_aligned},
    {"window_without_bind_right", 311, "wr_id 0x2a", window_without_bind_right},
    {"no_receive_posted", 403, "rnr_retry is 1", no_receive_posted},
    {"no_such_qp", 406, "has no QP", no_such_qp},
    {"peer_in_reset", 407, "is in RESET", peer_in_reset},
    {"peer_in_error", 408, "is in ERR", peer_in_error},
    {"wrong_psn", 409, "has PSN 2000, the peer's QP waits for PSN 5", wrong_psn},
    {"peer_of_somebody_else", 410, "is connected to QP", peer_of_somebody_else},
    {"no_process", 415, "no process has the QP numbers", no_process},
    {"wrong_qkey", 504, "Q_Key 0x00000007", wrong_qkey},
};

int main(int argc, char **argv)
{
    size_t n = sizeof(mistakes) / sizeof(mistakes[0]);
    bool list = argc == 2 && strcmp(argv[1], "--list") == 0;
    for (size_t i = 0; i < n; i++) {
        if (list) {
            if (mistakes[i].number)
                printf("%s\t%d\t%s\n", mistakes[i].name, mistakes[i].number, mistakes[i].says);
        } else if (argc >= 2 && strcmp(argv[1], mistakes[i].name) == 0) {
            gid_index = argc > 2 ? atoi(argv[2]) : 0;
            if (mistakes[i].make != peer_killed)
                open_all();
            mistakes[i].make();
            _exit(0); // no destructors: only the mistake is to be explained
        }
    }
    return list ? 0 : 2;
}
