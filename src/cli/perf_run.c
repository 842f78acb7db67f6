// SPDX-License-Identifier: BSD-2-Clause
// Both ends of the measurement. The client says what comes next over the stream between them.
#include "cli/perf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEPTH     64
#define MAX_SIZE  (1u << 20)
#define MAX_SHOTS 200000u
#define STALL_S   10.0

struct address {
    uint32_t qpn, psn, rkey;
    uint64_t va;
    union ibv_gid gid;
};

struct side {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *buf;
    struct address me, peer;
    int chan;
};

enum step { STEP_LATENCY, STEP_SEND, STEP_WRITE, STEP_READ, STEP_END };

struct order {
    uint32_t step, size, count;
};

static int failed(const char *what)
{
    fprintf(stderr, "weft perf: %s\n", what);
    return 1;
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool put(int fd, const void *data, size_t n)
{
    return write(fd, data, n) == (ssize_t)n;
}

static bool get(int fd, void *data, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t r = read(fd, (char *)data + at, n - at);
        if (r <= 0)
            return false;
        at += (size_t)r;
    }
    return true;
}

static bool to_rts(struct side *s, int gid)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                               IBV_ACCESS_LOCAL_WRITE};
    if (ibv_modify_qp(s->qp, &a,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return false;
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = s->peer.qpn,
                             .rq_psn = s->peer.psn,
                             .max_dest_rd_atomic = 16,
                             .min_rnr_timer = 1};
    struct ibv_port_attr port;
    if (ibv_query_port(s->ctx, 1, &port) == 0)
        a.path_mtu = port.active_mtu;
    a.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
    a.ah_attr.grh =
        (struct ibv_global_route){.dgid = s->peer.gid, .sgid_index = (uint8_t)gid, .hop_limit = 64};
    if (ibv_modify_qp(s->qp, &a,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return false;
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .timeout = 14,
                             .retry_cnt = 7,
                             .rnr_retry = 7,
                             .sq_psn = s->me.psn,
                             .max_rd_atomic = 16};
    return ibv_modify_qp(s->qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

static int open_side(struct side *s, const struct perf_options *o)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    s->ctx = list && n ? ibv_open_device(list[0]) : NULL;
    if (!s->ctx)
        return failed("the device cannot be opened; weft doctor tells more");
    s->pd = ibv_alloc_pd(s->ctx);
    s->cq = ibv_create_cq(s->ctx, 2 * DEPTH, NULL, NULL, 0);
    s->buf = aligned_alloc(4096, 2 * MAX_SIZE);
    if (!s->pd || !s->cq || !s->buf)
        return failed("out of memory");
    memset(s->buf, 1, 2 * MAX_SIZE);
    s->mr = ibv_reg_mr(s->pd, s->buf, 2 * MAX_SIZE,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    struct ibv_qp_init_attr init = {
        .send_cq = s->cq,
        .recv_cq = s->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1}};
    s->qp = s->mr ? ibv_create_qp(s->pd, &init) : NULL;
    if (!s->qp || ibv_query_gid(s->ctx, 1, o->gid, &s->me.gid))
        return failed("no queue pair, or no such GID");
    s->me.qpn = s->qp->qp_num;
    s->me.psn = s->qp->qp_num & 0xffff;
    s->me.rkey = s->mr->rkey;
    s->me.va = (uintptr_t)s->buf;
    if (!put(s->chan, &s->me, sizeof(s->me)) || !get(s->chan, &s->peer, sizeof(s->peer)))
        return failed("the other side is gone");
    char go = 1;
    if (!to_rts(s, o->gid) || !put(s->chan, &go, 1) || !get(s->chan, &go, 1))
        return failed("the queue pairs cannot be connected: is the GID one that reaches the peer?");
    return 0;
}

static bool post_recv(struct side *s)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)s->buf + MAX_SIZE, .length = MAX_SIZE, .lkey = s->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_recv(s->qp, &wr, &bad) == 0;
}

static bool post(struct side *s, enum ibv_wr_opcode op, uint32_t size)
{
    struct ibv_sge sge = {.addr = (uintptr_t)s->buf, .length = size, .lkey = s->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = op,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.rdma.remote_addr = s->peer.va;
    wr.wr.rdma.rkey = s->peer.rkey;
    return ibv_post_send(s->qp, &wr, &bad) == 0;
}

// Completions of the wanted kind, at least one; -1: an error, or nothing came for long.
static int reap(struct side *s, bool recv, int *others)
{
    struct ibv_wc wc[16];
    double until = 0;
    for (;;) {
        int hits = 0, n = ibv_poll_cq(s->cq, 16, wc);
        for (int i = 0; i < n; i++) {
            if (wc[i].status != IBV_WC_SUCCESS) {
                fprintf(stderr, "weft perf: a request ended with status %d; weft explain %u\n",
                        wc[i].status, wc[i].vendor_err);
                return -1;
            }
            if (recv == ((wc[i].opcode & IBV_WC_RECV) != 0))
                hits++;
            else
                ++*others;
        }
        if (n < 0 || hits)
            return n < 0 ? -1 : hits;
        if (!until)
            until = now_s() + STALL_S;
        else if (now_s() > until)
            return failed("nothing comes any more") ? -1 : -1;
    }
}

static bool ping_pong(struct side *s, uint32_t size, uint32_t count, bool client, float *shots)
{
    int sends = 0;
    for (uint32_t i = 0; i < count; i++) {
        double t = shots ? now_s() : 0;
        if (client && !post(s, IBV_WR_SEND, size))
            return false;
        if (reap(s, true, &sends) < 0 || !post_recv(s))
            return false;
        if (!client && !post(s, IBV_WR_SEND, size))
            return false;
        if (shots)
            shots[i] = (float)((now_s() - t) * 1e6 / 2);
    }
    // What was sent last is still to be completed.
    while (sends < (int)count) {
        int more = reap(s, false, &(int){0});
        if (more < 0)
            return false;
        sends += more;
    }
    return true;
}

static bool stream(struct side *s, enum ibv_wr_opcode op, uint32_t size, uint32_t count)
{
    uint32_t posted = 0, done = 0;
    while (done < count) {
        while (posted < count && posted - done < DEPTH - 1) {
            if (!post(s, op, size))
                return false;
            posted++;
        }
        int n = reap(s, false, &(int){0});
        if (n < 0)
            return false;
        done += (uint32_t)n;
    }
    return true;
}

static bool receive(struct side *s, uint32_t count)
{
    for (uint32_t got = 0; got < count;) {
        int n = reap(s, true, &(int){0});
        if (n < 0)
            return false;
        got += (uint32_t)n;
        for (int i = 0; i < n; i++)
            if (!post_recv(s))
                return false;
    }
    return true;
}

static int serve(struct side *s)
{
    struct order o;
    char done = 1;
    for (int i = 0; i < DEPTH; i++)
        if (!post_recv(s))
            return failed("receives cannot be posted");
    if (!put(s->chan, &done, 1))
        return 1;
    while (get(s->chan, &o, sizeof(o)) && o.step != STEP_END) {
        bool ok = true;
        if (o.step == STEP_LATENCY)
            ok = ping_pong(s, o.size, o.count, false, NULL);
        else if (o.step == STEP_SEND)
            ok = receive(s, o.count);
        if (!ok || !get(s->chan, &done, 1) || !put(s->chan, &done, 1))
            return 1;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static bool run_step(struct side *s, enum step step, uint32_t size, uint32_t count, float *shots)
{
    struct order o = {step, size, count};
    char done = 1;
    if (!put(s->chan, &o, sizeof(o)))
        return false;
    bool ok = true;
    if (step == STEP_LATENCY)
        ok = ping_pong(s, size, count, true, shots);
    else
        ok = stream(s,
                    step == STEP_SEND    ? IBV_WR_SEND
                    : step == STEP_WRITE ? IBV_WR_RDMA_WRITE
                                         : IBV_WR_RDMA_READ,
                    size, count);
    return ok && put(s->chan, &done, 1) && get(s->chan, &done, 1);
}

// As many as fill the time, from a short trial.
static uint32_t fitting(struct side *s, enum step step, uint32_t size, double seconds, float *shots)
{
    uint32_t trial = 100;
    double t = now_s();
    if (!run_step(s, step, size, trial, shots))
        return 0;
    double each = (now_s() - t) / trial;
    double n = seconds / (each > 1e-9 ? each : 1e-9);
    return n < 100 ? 100 : n > MAX_SHOTS ? MAX_SHOTS : (uint32_t)n;
}

static bool latency(struct side *s, uint32_t size, double seconds, float *shots,
                    struct perf_latency *l)
{
    uint32_t n = fitting(s, STEP_LATENCY, size, seconds, shots);
    if (!n || !run_step(s, STEP_LATENCY, size, n, shots))
        return false;
    qsort(shots, n, sizeof(*shots), compare);
    *l = (struct perf_latency){.size = size,
                               .min = shots[0],
                               .p50 = shots[n / 2],
                               .p90 = shots[(uint64_t)n * 90 / 100],
                               .p99 = shots[(uint64_t)n * 99 / 100],
                               .p999 = shots[(uint64_t)n * 999 / 1000],
                               .max = shots[n - 1]};
    return true;
}

static bool bandwidth(struct side *s, enum step step, uint32_t size, double seconds,
                      struct perf_bandwidth *b)
{
    uint32_t n = fitting(s, step, size, seconds, NULL);
    double t = now_s();
    if (!n || !run_step(s, step, size, n, NULL))
        return false;
    t = now_s() - t;
    *b = (struct perf_bandwidth){size, (double)size * n / t, n / t};
    return true;
}

static void progress(const char *what, uint32_t size)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%-40s\r%s, %u bytes ...", "", what, size);
}

static int measure(struct side *s, const struct perf_options *o, struct perf_results *r)
{
    static const uint32_t all[] = {8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576},
                          few[] = {8, 4096, 1048576};
    const uint32_t *sizes = o->quick ? few : all;
    unsigned n = o->quick ? 3 : 9;
    float *shots = malloc(MAX_SHOTS * sizeof(*shots));
    char ready;
    bool ok = shots && get(s->chan, &ready, 1);
    for (int i = 0; i < DEPTH && ok; i++)
        ok = post_recv(s);
    for (unsigned i = 0; i < n && ok; i++) {
        progress("latency", sizes[i]);
        ok = latency(s, sizes[i], o->seconds, shots, &r->lat[i]);
        r->nlat += ok;
    }
    for (unsigned i = 0; i < n && ok; i++) {
        progress("bandwidth", sizes[i]);
        ok = bandwidth(s, STEP_SEND, sizes[i], o->seconds, &r->send[i]) &&
             bandwidth(s, STEP_WRITE, sizes[i], o->seconds, &r->write[i]) &&
             bandwidth(s, STEP_READ, sizes[i], o->seconds, &r->read[i]);
        r->nbw += ok;
    }
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%-40s\r", "");
    free(shots);
    put(s->chan, &(struct order){STEP_END, 0, 0}, sizeof(struct order));
    return ok ? 0 : failed("the measurement broke off");
}

int perf_run(const struct perf_options *o, int chan, bool client, struct perf_results *r)
{
    struct side s = {.chan = chan};
    int status = open_side(&s, o);
    if (!status)
        status = client ? measure(&s, o, r) : serve(&s);
    if (s.qp)
        ibv_destroy_qp(s.qp);
    if (s.mr)
        ibv_dereg_mr(s.mr);
    if (s.cq)
        ibv_destroy_cq(s.cq);
    if (s.pd)
        ibv_dealloc_pd(s.pd);
    if (s.ctx)
        ibv_close_device(s.ctx);
    free(s.buf);
    return status;
}
