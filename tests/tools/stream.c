// SPDX-License-Identifier: BSD-2-Clause
// stream [HOST] [options]: traffic between two processes with every byte checked. Without HOST it
// is the server. Exit status: 0 all right, 1 wrong data, 2 set-up failed or time is up, 3 an error
// completion (its status is printed).
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum op { OP_SEND, OP_WRITE, OP_READ, OP_ATOMIC };

struct options {
    const char *host, *port;
    enum op op;
    int gid;
    uint32_t size, depth;
    uint64_t count;
    int seconds, timeout, retry;
    bool both, events;
};

// What the sides tell each other over TCP, in network order but for gid.
struct hello {
    union ibv_gid gid;
    uint32_t qpn, psn, rkey, reserved;
    uint64_t addr;
};

struct stream {
    struct options o;
    int tcp;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *mem; // depth slots to send from, depth slots to receive into or to be written
    struct hello me, peer;
    unsigned long polls;
    time_t end, last; // when time is up; when something last completed
};

__attribute__((noreturn, format(printf, 2, 3))) static void die(int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("stream: ");
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
    exit(status);
}

static uint8_t *out_slot(struct stream *s, uint64_t i)
{
    return s->mem + i % s->o.depth * s->o.size;
}

static uint8_t *in_slot(struct stream *s, uint64_t i)
{
    return s->mem + (s->o.depth + i % s->o.depth) * (size_t)s->o.size;
}

// Byte k of message i. A constant or repeating buffer would hide a message in a wrong place.
static uint8_t pattern(uint64_t i, uint32_t k)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull + k * 0xbf58476d1ce4e5b9ull;
    return (uint8_t)(x >> 56 ^ x >> 29);
}

static void fill(uint8_t *p, uint32_t size, uint64_t i)
{
    for (uint32_t k = 0; k < size; k++)
        p[k] = pattern(i, k);
}

static void check(const uint8_t *p, uint32_t size, uint64_t i)
{
    for (uint32_t k = 0; k < size; k++)
        if (p[k] != pattern(i, k))
            die(1, "message %llu: byte %u of %u is %02x, not %02x", (unsigned long long)i, k, size,
                p[k], pattern(i, k));
}

// ---- set-up -------------------------------------------------------------------------------------

static int tcp_server(const struct options *o)
{
    int one = 1, zero = 0, fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(o->port))};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 || listen(fd, 1) != 0)
        die(2, "TCP port %s: %s", o->port, strerror(errno));
    int conn = accept(fd, NULL, NULL);
    close(fd);
    return conn;
}

static int tcp_client(const struct options *o)
{
    struct addrinfo *ai, hints = {.ai_socktype = SOCK_STREAM};
    int r = getaddrinfo(o->host, o->port, &hints, &ai);
    if (r)
        die(2, "%s: %s", o->host, gai_strerror(r));
    for (struct addrinfo *a = ai; a; a = a->ai_next) {
        int fd = socket(a->ai_family, a->ai_socktype, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
            freeaddrinfo(ai);
            return fd;
        }
        close(fd);
    }
    die(2, "no TCP connection to %s", o->host);
}

static void exchange(struct stream *s)
{
    if (write(s->tcp, &s->me, sizeof(s->me)) != sizeof(s->me) ||
        recv(s->tcp, &s->peer, sizeof(s->peer), MSG_WAITALL) != sizeof(s->peer))
        die(2, "the peer went away during set-up");
}

static void open_device(struct stream *s)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    if (!list || !n)
        die(2, "no device");
    s->ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    if (!s->ctx || !(s->pd = ibv_alloc_pd(s->ctx)))
        die(2, "open: %s", strerror(errno));
    if (s->o.events && !(s->channel = ibv_create_comp_channel(s->ctx)))
        die(2, "completion channel: %s", strerror(errno));
    size_t bytes = 2 * (size_t)s->o.depth * s->o.size;
    s->mem = aligned_alloc(4096, (bytes + 4095) & ~4095ul);
    memset(s->mem, 0, bytes);
    s->mr = ibv_reg_mr(s->pd, s->mem, bytes,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC);
    s->cq = ibv_create_cq(s->ctx, (int)(4 * s->o.depth), NULL, s->channel, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = s->cq,
        .recv_cq = s->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {2 * s->o.depth, 2 * s->o.depth, 1, 1, 0},
    };
    if (!s->mr || !s->cq || !(s->qp = ibv_create_qp(s->pd, &init)))
        die(2, "objects: %s", strerror(errno));
    if (s->channel && ibv_req_notify_cq(s->cq, 0) != 0)
        die(2, "arm: %s", strerror(errno));
}

static void modify(struct stream *s, struct ibv_qp_attr *attr, int mask)
{
    int r = ibv_modify_qp(s->qp, attr, mask);
    if (r)
        die(2, "modify to state %d: %s", attr->qp_state, strerror(r));
}

static void connect_qp(struct stream *s)
{
    struct ibv_port_attr port;
    if (ibv_query_port(s->ctx, 1, &port) || ibv_query_gid(s->ctx, 1, s->o.gid, &s->me.gid))
        die(2, "port or GID");
    srandom((unsigned)(getpid() ^ time(NULL)));
    uint32_t psn = (uint32_t)random() & 0xffffff;
    s->me.qpn = htonl(s->qp->qp_num);
    s->me.psn = htonl(psn);
    s->me.rkey = htonl(s->mr->rkey);
    s->me.addr = (uint64_t)(uintptr_t)in_slot(s, 0);
    modify(s,
           &(struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
                                 .port_num = 1,
                                 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
                                                    IBV_ACCESS_REMOTE_READ |
                                                    IBV_ACCESS_REMOTE_ATOMIC},
           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    exchange(s);
    modify(s,
           &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                 .path_mtu = port.active_mtu,
                                 .dest_qp_num = ntohl(s->peer.qpn),
                                 .rq_psn = ntohl(s->peer.psn),
                                 .max_dest_rd_atomic = 16,
                                 .min_rnr_timer = 12,
                                 .ah_attr = {.is_global = 1,
                                             .port_num = 1,
                                             .grh = {.dgid = s->peer.gid,
                                                     .sgid_index = (uint8_t)s->o.gid,
                                                     .hop_limit = 64}}},
           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    modify(s,
           &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                 .sq_psn = psn,
                                 .timeout = (uint8_t)s->o.timeout,
                                 .retry_cnt = (uint8_t)s->o.retry,
                                 .rnr_retry = 7,
                                 .max_rd_atomic = 16},
           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_MAX_QP_RD_ATOMIC);
}

// ---- traffic ------------------------------------------------------------------------------------

static void post_recv(struct stream *s, uint64_t i)
{
    struct ibv_sge sge = {(uintptr_t)in_slot(s, i), s->o.size, s->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
    int r = ibv_post_recv(s->qp, &wr, &bad);
    if (r)
        die(2, "post_recv: %s", strerror(r));
}

static void post(struct stream *s, enum ibv_wr_opcode opcode, uint64_t i, uint8_t *local,
                 uint32_t len, uint64_t remote)
{
    struct ibv_sge sge = {(uintptr_t)local, len, s->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = i,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = IBV_SEND_SIGNALED};
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = remote;
        wr.wr.atomic.rkey = ntohl(s->peer.rkey);
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = remote;
        wr.wr.rdma.rkey = ntohl(s->peer.rkey);
    }
    int r = ibv_post_send(s->qp, &wr, &bad);
    if (r)
        die(2, "post_send: %s", strerror(r));
}

static void sleep_until_event(struct stream *s)
{
    struct ibv_cq *cq;
    void *context;
    if (ibv_get_cq_event(s->channel, &cq, &context) != 0)
        die(2, "get_cq_event: %s", strerror(errno));
    ibv_ack_cq_events(cq, 1);
    if (ibv_req_notify_cq(cq, 0) != 0)
        die(2, "arm: %s", strerror(errno));
}

// The next completion; ends the program when it is an error or time is up.
static void next_completion(struct stream *s, struct ibv_wc *wc)
{
    for (;;) {
        int n = ibv_poll_cq(s->cq, 1, wc);
        if (n < 0)
            die(2, "poll_cq: %d", n);
        if ((s->polls++ & 0xff) == 0xff && time(NULL) > s->end)
            die(2, "time is up, last completion %ld s ago", (long)(time(NULL) - s->last));
        if (n == 1 && wc->status != IBV_WC_SUCCESS)
            die(3, "completion: %s", ibv_wc_status_str(wc->status));
        if (n == 1) {
            if ((wc->wr_id & 0xf) == 0)
                s->last = time(NULL);
            return;
        }
        if (s->o.events)
            sleep_until_event(s);
    }
}

// SENDs one way or both, each checked where it arrives, in order.
static void run_send(struct stream *s)
{
    bool sender = s->o.host || s->o.both, receiver = !s->o.host || s->o.both;
    uint64_t posted = 0, sent = 0, got = 0, count = s->o.count;
    while ((sender && sent < count) || (receiver && got < count)) {
        for (; sender && posted < count && posted - sent < s->o.depth; posted++) {
            fill(out_slot(s, posted), s->o.size, posted);
            post(s, IBV_WR_SEND, posted, out_slot(s, posted), s->o.size, 0);
        }
        struct ibv_wc wc;
        next_completion(s, &wc);
        if (wc.opcode & IBV_WC_RECV) {
            if (wc.wr_id != got || wc.byte_len != s->o.size)
                die(1, "receive %llu of %u bytes came as number %llu", (unsigned long long)wc.wr_id,
                    wc.byte_len, (unsigned long long)got);
            check(in_slot(s, got), s->o.size, got);
            post_recv(s, s->o.depth + got++);
        } else if (wc.wr_id != sent++) {
            die(1, "send completions out of order");
        }
    }
}

static uint64_t remote_slot(struct stream *s, uint64_t i)
{
    return s->peer.addr + i % s->o.depth * s->o.size;
}

// Rounds of `depth` WRITEs, read back and checked: the server's program takes no part.
static void run_write(struct stream *s)
{
    struct ibv_wc wc;
    for (uint64_t i = 0; i < s->o.count; i += s->o.depth) {
        for (uint64_t k = 0; k < s->o.depth; k++) {
            fill(out_slot(s, k), s->o.size, i + k);
            post(s, IBV_WR_RDMA_WRITE, k, out_slot(s, k), s->o.size, remote_slot(s, k));
        }
        for (uint64_t k = 0; k < s->o.depth; k++)
            post(s, IBV_WR_RDMA_READ, k, in_slot(s, k), s->o.size, remote_slot(s, k));
        for (uint64_t k = 0; k < 2 * s->o.depth; k++) {
            next_completion(s, &wc);
            if (wc.wr_id != k % s->o.depth)
                die(1, "completions out of order");
        }
        for (uint64_t k = 0; k < s->o.depth; k++)
            check(in_slot(s, k), s->o.size, i + k);
    }
}

static void run_read(struct stream *s)
{
    struct ibv_wc wc;
    for (uint64_t i = 0; i < s->o.count; i += s->o.depth) {
        memset(s->mem, 0, (size_t)s->o.depth * s->o.size);
        for (uint64_t k = 0; k < s->o.depth; k++)
            post(s, IBV_WR_RDMA_READ, k, out_slot(s, k), s->o.size, remote_slot(s, k));
        for (uint64_t k = 0; k < s->o.depth; k++)
            next_completion(s, &wc);
        for (uint64_t k = 0; k < s->o.depth; k++)
            check(out_slot(s, k), s->o.size, k);
    }
}

// Each fetched value is one more than the last: nothing lost, nothing done twice.
static void run_atomic(struct stream *s)
{
    struct ibv_wc wc;
    uint64_t first = 0;
    for (uint64_t i = 0; i < s->o.count; i++) {
        post(s, IBV_WR_ATOMIC_FETCH_AND_ADD, i, s->mem, 8, s->peer.addr);
        next_completion(s, &wc);
        uint64_t v;
        memcpy(&v, s->mem, sizeof(v));
        if (i == 0)
            first = v;
        if (v != first + i)
            die(1, "atomic %llu fetched %llu, not %llu", (unsigned long long)i,
                (unsigned long long)v, (unsigned long long)(first + i));
    }
}

static void run(struct stream *s)
{
    if (s->o.op == OP_SEND)
        run_send(s);
    else if (s->o.host)
        (s->o.op == OP_WRITE ? run_write : s->o.op == OP_READ ? run_read : run_atomic)(s);
}

// The end is told over TCP, so that a side's queue pair lives until the other one needs it no more.
static void finish(struct stream *s)
{
    char c = 'Q';
    if (write(s->tcp, &c, 1) != 1 || recv(s->tcp, &c, 1, 0) != 1)
        die(2, "the peer went away before the end");
    ibv_destroy_qp(s->qp);
    ibv_destroy_cq(s->cq);
    if (s->channel)
        ibv_destroy_comp_channel(s->channel);
    ibv_dereg_mr(s->mr);
    ibv_dealloc_pd(s->pd);
    if (ibv_close_device(s->ctx) != 0)
        die(2, "close: %s", strerror(errno));
    free(s->mem);
}

static enum op op_of(const char *name)
{
    static const char *const names[] = {"send", "write", "read", "atomic"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum op)i;
    die(2, "operation %s?", name);
}

static struct options parse(int argc, char **argv)
{
    struct options o = {.port = "18515",
                        .size = 4096,
                        .depth = 16,
                        .count = 1000,
                        .seconds = 60,
                        .timeout = 14,
                        .retry = 7};
    int c;
    while ((c = getopt(argc, argv, "o:g:s:d:n:T:t:r:p:be")) != -1) {
        switch (c) {
        case 'o':
            o.op = op_of(optarg);
            break;
        case 'g':
            o.gid = atoi(optarg);
            break;
        case 's':
            o.size = (uint32_t)atoi(optarg);
            break;
        case 'd':
            o.depth = (uint32_t)atoi(optarg);
            break;
        case 'n':
            o.count = strtoull(optarg, NULL, 0);
            break;
        case 'T':
            o.seconds = atoi(optarg);
            break;
        case 't':
            o.timeout = atoi(optarg);
            break;
        case 'r':
            o.retry = atoi(optarg);
            break;
        case 'p':
            o.port = optarg;
            break;
        case 'b':
            o.both = true;
            break;
        case 'e':
            o.events = true;
            break;
        default:
            fputs("stream [HOST] [-o send|write|read|atomic] [-g GID] [-s SIZE] [-d DEPTH] [-n "
                  "COUNT]\n"
                  "       [-T SECONDS] [-t TIMEOUT] [-r RETRIES] [-p PORT] [-b both ways] [-e "
                  "events]\n",
                  stderr);
            exit(2);
        }
    }
    o.host = argv[optind];
    if (o.size < 8 || !o.depth)
        die(2, "size at least 8, depth at least 1");
    return o;
}

int main(int argc, char **argv)
{
    struct stream s = {.o = parse(argc, argv)};
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_device(&s);
    s.tcp = s.o.host ? tcp_client(&s.o) : tcp_server(&s.o);
    connect_qp(&s);
    for (uint64_t i = 0; s.o.op == OP_SEND && i < s.o.depth; i++)
        post_recv(&s, i);
    if (s.o.op == OP_READ)
        for (uint64_t i = 0; i < s.o.depth; i++)
            fill(in_slot(&s, i), s.o.size, i);
    exchange(&s); // both are ready to receive
    printf("stream: started\n");
    s.end = time(NULL) + s.o.seconds;
    run(&s);
    finish(&s);
    printf("stream: %llu done\n", (unsigned long long)s.o.count);
    return 0;
}
