// SPDX-License-Identifier: BSD-2-Clause
// Connections of rdma_cm without queue pairs, by the thousand: all open at once, or one after the
// other. The server accepts whatever comes.
//   cmload -s ADDRESS
//   cmload ADDRESS [-n CONNECTIONS open at once] [-k CYCLES of connect and disconnect] [-w]
// -w: then wait for the server to go, and say what was heard.
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct rdma_event_channel *channel;
static struct rdma_addrinfo *address;
static uint32_t next_qpn = 1;
static unsigned established, gone, refused;

static void check(int failed, const char *what)
{
    if (!failed)
        return;
    perror(what);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long resident(void)
{
    long size, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &size, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

// Each connection claims a queue pair of its own, as the manager takes a number that comes twice
// for a stale connection.
static struct rdma_conn_param parameters(void)
{
    return (struct rdma_conn_param){
        .qp_num = (uint32_t)getpid() % 200 << 16 | (next_qpn++ & 0xffff),
        .retry_count = 7,
        .rnr_retry_count = 7,
    };
}

static void connect_one(struct rdma_cm_id *id)
{
    struct rdma_conn_param p = parameters();
    check(rdma_connect(id, &p), "rdma_connect");
}

static void handle(struct rdma_cm_event *e)
{
    struct rdma_cm_id *id = e->id;
    struct rdma_conn_param p = parameters();
    enum rdma_cm_event_type type = e->event;
    int status = e->status;
    rdma_ack_cm_event(e);
    switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        check(rdma_resolve_route(id, 2000), "rdma_resolve_route");
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        connect_one(id);
        break;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        check(rdma_accept(id, &p), "rdma_accept");
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        check(rdma_establish(id), "rdma_establish");
        established++;
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        established++;
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        gone++;
        rdma_disconnect(id);
        rdma_destroy_id(id);
        break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break;
    default:
        fprintf(stderr, "%s, status %d\n", rdma_event_str(type), status);
        refused++;
        rdma_destroy_id(id);
    }
}

static void next_event(void)
{
    struct rdma_cm_event *e;
    check(rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
    handle(e);
}

static void serve(void)
{
    struct rdma_cm_id *id;
    check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(rdma_bind_addr(id, address->ai_src_addr), "rdma_bind_addr");
    check(rdma_listen(id, 0), "rdma_listen");
    printf("listening\n");
    fflush(stdout);
    for (unsigned n = 0;; n = established) {
        next_event();
        if (established != n && established % 10000 == 0)
            printf("%u connections, %ld KB resident\n", established, resident());
        fflush(stdout);
    }
}

static struct rdma_cm_id *start(void)
{
    struct rdma_cm_id *id;
    check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(rdma_resolve_addr(id, NULL, address->ai_dst_addr, 2000), "rdma_resolve_addr");
    return id;
}

static void open_at_once(unsigned n)
{
    struct rdma_cm_id **ids = calloc(n, sizeof(*ids));
    double began = now();
    for (unsigned i = 0; i < n; i++) {
        ids[i] = start();
        while (i + 1 - established - refused > 200)
            next_event();
    }
    while (established + refused < n)
        next_event();
    double took = now() - began;
    printf("%u connections open, %.0f a second, %ld KB resident\n", established, n / took,
           resident());
    check(refused != 0, "connections were refused");
    for (unsigned i = 0; i < n; i++)
        check(rdma_disconnect(ids[i]), "rdma_disconnect");
    while (gone < n)
        next_event();
    free(ids);
    printf("all closed\n");
}

static void cycle(unsigned n)
{
    long early = 0;
    double began = now();
    unsigned was = gone;
    for (unsigned i = 0; i < n; i++) {
        unsigned before = established;
        struct rdma_cm_id *id = start();
        while (established == before)
            next_event();
        check(rdma_disconnect(id), "rdma_disconnect");
        while (gone == was + i)
            next_event();
        if (i == n / 10)
            early = resident();
    }
    printf("%u cycles, %.0f a second, %ld KB resident after a tenth, %ld KB now\n", n,
           n / (now() - began), early, resident());
    if (resident() > early + 4096)
        exit(2);
}

static void wait_for_end(void)
{
    unsigned before = established;
    start();
    while (established == before)
        next_event();
    printf("connected\n");
    fflush(stdout);
    before = gone;
    while (gone == before)
        next_event();
    printf("disconnected\n");
}

int main(int argc, char **argv)
{
    unsigned n = 0, cycles = 0;
    int op, server = 0, wait = 0;
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP};
    while ((op = getopt(argc, argv, "sn:k:w")) != -1) {
        if (op == 's')
            server = 1;
        else if (op == 'n')
            n = (unsigned)atoi(optarg);
        else if (op == 'k')
            cycles = (unsigned)atoi(optarg);
        else if (op == 'w')
            wait = 1;
        else
            return 1;
    }
    if (optind >= argc)
        return 1;
    hints.ai_flags = server ? RAI_PASSIVE : 0;
    check(rdma_getaddrinfo(argv[optind], "7488", &hints, &address), "rdma_getaddrinfo");
    channel = rdma_create_event_channel();
    check(!channel, "rdma_create_event_channel");
    if (server)
        serve();
    if (n)
        open_at_once(n);
    if (cycles)
        cycle(cycles);
    if (wait)
        wait_for_end();
    return 0;
}
