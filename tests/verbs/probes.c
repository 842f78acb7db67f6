// SPDX-License-Identifier: BSD-2-Clause
// Bug reports of users of RDMA stacks as small scenarios, between two QPs of one process: over the
// loop, and over UDP with WEFT_PATH=udp. Each test names its probe.
#include "pair.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct node node;

static struct ibv_send_wr send_of(struct ibv_sge *sge, int n)
{
    return (struct ibv_send_wr){.wr_id = 5,
                                .sg_list = sge,
                                .num_sge = n,
                                .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_SIGNALED};
}

static void expect_pair(struct end e[2], uint32_t len)
{
    struct ibv_wc wc = next_wc(e[1].rcq);
    must(wc.status == IBV_WC_SUCCESS && wc.byte_len == len);
    must(next_wc(e[0].scq).status == IBV_WC_SUCCESS);
}

static void test_p07_scatter_list_of_builder_has_each_length(void)
{
    struct end e[2] = {0};
    struct pair_opts o = {.type = IBV_QPT_RC, .send_ops = IBV_QP_EX_WITH_SEND};
    pair_make(&node, e, &o);
    struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(e[0].qp);
    struct ibv_sge sge[3] = {sge_of(&e[0], 0, 1), sge_of(&e[0], 100, 4097),
                             sge_of(&e[0], 9000, 13)};
    uint8_t *got = e[1].mem + END_MEM / 2;
    for (unsigned i = 0; i < 10000; i++)
        e[0].mem[i] = (uint8_t)(i * 7 + i / 255);
    post_recv(&e[1], 1, 8192);
    ibv_wr_start(qpx);
    qpx->wr_id = 5;
    qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(qpx);
    ibv_wr_set_sge_list(qpx, 3, sge);
    must(ibv_wr_complete(qpx) == 0);
    expect_pair(e, 4111);
    must(got[0] == e[0].mem[0] && !memcmp(got + 1, e[0].mem + 100, 4097));
    must(!memcmp(got + 4098, e[0].mem + 9000, 13));
    pair_free(e);
}

static void test_p09_post_send_says_why_and_where(void)
{
    struct end e[2] = {0};
    struct pair_opts o = {.type = IBV_QPT_RC, .max_wr = 8};
    pair_make(&node, e, &o);
    struct ibv_sge sge = sge_of(&e[0], 0, 4000), many[33];
    struct ibv_send_wr *bad = NULL, wr = send_of(&sge, 1), chain[5];
    wr.send_flags |= IBV_SEND_INLINE;
    must(ibv_post_send(e[0].qp, &wr, &bad) == EINVAL && bad == &wr);
    for (int i = 0; i < 33; i++)
        many[i] = sge_of(&e[0], 0, 1);
    wr = send_of(many, 33);
    must(ibv_post_send(e[0].qp, &wr, &bad) == EINVAL && bad == &wr);
    sge.length = 8;
    for (int i = 0; i < 5; i++) {
        post_recv(&e[1], 1, 64);
        chain[i] = send_of(&sge, i == 2 ? 33 : 1);
        chain[i].sg_list = i == 2 ? many : &sge;
        chain[i].next = i < 4 ? &chain[i + 1] : NULL;
    }
    must(ibv_post_send(e[0].qp, chain, &bad) == EINVAL && bad == &chain[2]);
    expect_pair(e, 8);
    expect_pair(e, 8);
    int n = 0, err = 0;
    for (wr = send_of(&sge, 1); n < 1000 && !(err = ibv_post_send(e[0].qp, &wr, &bad)); n++)
        ;
    must(err == ENOMEM && bad == &wr && n >= 8);
    pair_free(e);
}

static void test_p11_nothing_is_sent_and_arrives(void)
{
    struct end e[2] = {0};
    struct pair_opts o = {.type = IBV_QPT_RC};
    pair_make(&node, e, &o);
    struct ibv_sge none = {0, 0, 0};
    struct ibv_send_wr wr = send_of(NULL, 0);
    for (int i = 0; i < 4; i++) {
        post_recv(&e[1], 1, 64);
        if (i == 1)
            wr = send_of(&none, 1);
        if (i == 2)
            wr.send_flags |= IBV_SEND_INLINE;
        if (i == 3)
            wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        must(post(&e[0], &wr) == 0);
        expect_pair(e, 0);
    }
    pair_free(e);
}

static void test_p13_longest_message_works_and_one_byte_more_fails_at_the_requester(void)
{
    struct end e[2] = {0};
    struct pair_opts o = {.type = IBV_QPT_RC};
    struct ibv_port_attr port;
    must(ibv_query_port(node.ctx, 1, &port) == 0);
    size_t max = port.max_msg_sz;
    void *mem = mmap(NULL, max + 4096, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct ibv_mr *mr = mem == MAP_FAILED ? NULL : ibv_reg_mr(node.pd, mem, max + 4096, PAIR_ALL);
    must(mr);
    pair_make(&node, e, &o);
    // A null region takes it: no memory is filled.
    struct ibv_mr *null = ibv_alloc_null_mr(node.pd);
    must(null);
    struct ibv_sge to = {0, (uint32_t)max, null->lkey},
                   sge = {(uintptr_t)mem, (uint32_t)max, mr->lkey};
    struct ibv_recv_wr rwr = {.sg_list = &to, .num_sge = 1}, *bad;
    must(ibv_post_recv(e[1].qp, &rwr, &bad) == 0);
    struct ibv_send_wr wr = send_of(&sge, 1);
    must(post(&e[0], &wr) == 0);
    uint64_t end = now_ms() + 60000;
    struct ibv_wc wc;
    while (ibv_poll_cq(e[1].rcq, 1, &wc) == 0)
        must(now_ms() < end);
    must(wc.status == IBV_WC_SUCCESS && wc.byte_len == max);
    must(next_wc(e[0].scq).status == IBV_WC_SUCCESS);
    sge.length++;
    must(post(&e[0], &wr) == EINVAL);
    must(ibv_dereg_mr(null) == 0 && ibv_dereg_mr(mr) == 0);
    munmap(mem, max + 4096);
    pair_free(e);
}

static void test_p31_region_dropped_in_flight_fails_or_works_but_nothing_crashes(void)
{
    for (int i = 0; i < 20; i++) {
        struct end e[2] = {0};
        struct pair_opts o = {.type = IBV_QPT_RC};
        size_t len = 1u << 20;
        void *src = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uint8_t *dst = malloc(len);
        memset(src, 1, len);
        struct ibv_mr *mr = ibv_reg_mr(node.pd, src, len, PAIR_ALL);
        struct ibv_mr *to = ibv_reg_mr(node.pd, dst, len, PAIR_ALL);
        must(mr && to);
        pair_make(&node, e, &o);
        struct ibv_sge sge = {(uintptr_t)src, (uint32_t)len, mr->lkey};
        struct ibv_send_wr wr = send_of(&sge, 1);
        wr.opcode = IBV_WR_RDMA_WRITE;
        wr.wr.rdma.remote_addr = (uintptr_t)dst;
        wr.wr.rdma.rkey = to->rkey;
        must(post(&e[0], &wr) == 0);
        must(ibv_dereg_mr(mr) == 0);
        munmap(src, len);
        enum ibv_wc_status status = next_wc(e[0].scq).status;
        must(status == IBV_WC_SUCCESS || status == IBV_WC_LOC_PROT_ERR);
        pair_free(e);
        must(ibv_dereg_mr(to) == 0);
        free(dst);
    }
}

static void test_p33_objects_in_use_are_not_destroyed(void)
{
    struct ibv_comp_channel *ch = ibv_create_comp_channel(node.ctx);
    struct ibv_cq *cq = ibv_create_cq(node.ctx, 4, NULL, ch, 0);
    struct ibv_pd *pd = ibv_alloc_pd(node.ctx);
    struct ibv_srq_init_attr si = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &si);
    // P39: the receive sizes of a QP with an SRQ are not looked at.
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .srq = srq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {4, 1000000000, 1, 1000000, 0}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    must(ch && cq && pd && srq && qp);
    struct ibv_recv_wr wr = {0}, *bad;
    must(ibv_post_recv(qp, &wr, &bad) != 0);
    struct ibv_ah_attr av = {.is_global = 1,
                             .port_num = 1,
                             .grh = {.dgid = node.gid, .sgid_index = (uint8_t)node.gid_index}};
    struct ibv_ah *ah = ibv_create_ah(pd, &av);
    must(ah);
    must(ibv_destroy_srq(srq) == EBUSY);
    must(ibv_destroy_cq(cq) == EBUSY);
    must(ibv_destroy_comp_channel(ch) == EBUSY);
    must(ibv_dealloc_pd(pd) == EBUSY);
    must(ibv_req_notify_cq(cq, 0) == 0 && ibv_post_srq_recv(srq, &wr, &bad) == 0);
    must(ibv_destroy_qp(qp) == 0 && ibv_destroy_srq(srq) == 0 && ibv_destroy_cq(cq) == 0);
    must(ibv_dealloc_pd(pd) == EBUSY);
    must(ibv_destroy_ah(ah) == 0 && ibv_dealloc_pd(pd) == 0);
    must(ibv_destroy_comp_channel(ch) == 0);
}

static void test_p35_child_of_fork_may_write_beside_a_region(void)
{
    struct end e[2] = {0};
    struct pair_opts o = {.type = IBV_QPT_RC};
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(node.pd, page + 2048, 2048, PAIR_ALL);
    must(mr);
    pair_make(&node, e, &o);
    memset(page, 3, 4096);
    pid_t child = fork();
    if (child == 0) {
        memset(page, 9, 2048);
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    for (int i = 0; i < 500; i++) {
        struct ibv_sge sge = {(uintptr_t)(page + 2048), 2048, mr->lkey};
        struct ibv_send_wr wr = send_of(&sge, 1);
        page[2048] = (uint8_t)i;
        post_recv(&e[1], 1, 2048);
        must(post(&e[0], &wr) == 0);
        expect_pair(e, 2048);
        must(e[1].mem[END_MEM / 2] == (uint8_t)i && e[1].mem[END_MEM / 2 + 2047] == 3);
    }
    int status = 1;
    must(waitpid(child, &status, 0) == child && status == 0 && page[0] == 3);
    pair_free(e);
    must(ibv_dereg_mr(mr) == 0);
    munmap(page, 4096);
}

static void *destroy(void *cq)
{
    must(ibv_destroy_cq(cq) == 0);
    return NULL;
}

static void test_p03_destroy_waits_for_the_acknowledgements_of_its_own_cq(void)
{
    struct ibv_comp_channel *ch = ibv_create_comp_channel(node.ctx);
    struct end e[2] = {0};
    struct pair_opts o = {.type = IBV_QPT_RC};
    for (int i = 0; i < 2; i++) {
        must(e[i].scq = ibv_create_cq(node.ctx, 16, NULL, ch, 0));
        must(e[i].rcq = ibv_create_cq(node.ctx, 16, NULL, NULL, 0));
        must(ibv_req_notify_cq(e[i].scq, 0) == 0);
    }
    pair_make(&node, e, &o);
    for (int i = 0; i < 2; i++) {
        struct ibv_sge sge = sge_of(&e[i], 0, 8);
        struct ibv_send_wr wr = send_of(&sge, 1);
        post_recv(&e[!i], 1, 8);
        must(post(&e[i], &wr) == 0);
    }
    for (int i = 0; i < 2; i++) {
        struct ibv_cq *cq;
        void *ctx;
        must(ibv_get_cq_event(ch, &cq, &ctx) == 0);
    }
    ibv_ack_cq_events(e[1].scq, 2); // one of them was the other's
    must(ibv_destroy_qp(e[0].qp) == 0 && ibv_destroy_qp(e[1].qp) == 0);
    pthread_t t;
    must(pthread_create(&t, NULL, destroy, e[0].scq) == 0);
    usleep(100000);
    must(pthread_tryjoin_np(t, NULL) == EBUSY);
    ibv_ack_cq_events(e[0].scq, 1);
    must(pthread_join(t, NULL) == 0);
    must(ibv_destroy_cq(e[1].scq) == 0);
    must(ibv_destroy_cq(e[0].rcq) == 0 && ibv_destroy_cq(e[1].rcq) == 0);
    must(ibv_destroy_comp_channel(ch) == 0);
}

static void test_p37_region_with_a_bound_window_stays(void)
{
    struct end e[2] = {0};
    struct pair_opts o = {.type = IBV_QPT_RC};
    pair_make(&node, e, &o);
    for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
        static uint8_t buf[4096];
        struct ibv_mr *mr = ibv_reg_mr(node.pd, buf, sizeof(buf), PAIR_ALL);
        struct ibv_mw *mw = ibv_alloc_mw(node.pd, (enum ibv_mw_type)type);
        must(mr && mw);
        struct ibv_mw_bind_info info = {mr, (uintptr_t)buf, 64, IBV_ACCESS_REMOTE_WRITE};
        struct ibv_mw_bind one = {.wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
        struct ibv_send_wr wr = send_of(NULL, 0);
        wr.opcode = IBV_WR_BIND_MW;
        wr.bind_mw.mw = mw;
        wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
        wr.bind_mw.bind_info = info;
        must((type == IBV_MW_TYPE_1 ? ibv_bind_mw(e[0].qp, mw, &one) : post(&e[0], &wr)) == 0);
        must(next_wc(e[0].scq).status == IBV_WC_SUCCESS);
        must(ibv_dereg_mr(mr) == EBUSY);
        one.bind_info.length = 0;
        wr.opcode = IBV_WR_LOCAL_INV;
        wr.invalidate_rkey = ibv_inc_rkey(mw->rkey);
        must((type == IBV_MW_TYPE_1 ? ibv_bind_mw(e[0].qp, mw, &one) : post(&e[0], &wr)) == 0);
        must(next_wc(e[0].scq).status == IBV_WC_SUCCESS);
        must(ibv_dereg_mr(mr) == 0 && ibv_dealloc_mw(mw) == 0);
    }
    pair_free(e);
}

static void test_p41_receive_sizes_of_an_xrc_sender_and_send_sizes_of_a_receiver(void)
{
    struct ibv_xrcd_init_attr xi = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                    .fd = -1,
                                    .oflags = 0100 /* O_CREAT */};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(node.ctx, &xi);
    struct ibv_cq *cq = ibv_create_cq(node.ctx, 4, NULL, NULL, 0);
    must(xrcd && cq);
    struct ibv_qp_init_attr_ex s = {.qp_type = IBV_QPT_XRC_SEND,
                                    .comp_mask = IBV_QP_INIT_ATTR_PD,
                                    .pd = node.pd,
                                    .send_cq = cq,
                                    .cap = {4, 0, 1, 0, 0}};
    struct ibv_qp_init_attr_ex r = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    struct ibv_qp *send = ibv_create_qp_ex(node.ctx, &s), *recv = ibv_create_qp_ex(node.ctx, &r);
    must(send && recv);
    must(ibv_destroy_qp(send) == 0 && ibv_destroy_qp(recv) == 0);
    must(ibv_destroy_cq(cq) == 0 && ibv_close_xrcd(xrcd) == 0);
}

static void test_p51_gid_table_has_valid_entries_and_holes_refuse(void)
{
    struct ibv_gid_entry t[64], one;
    struct ibv_port_attr port;
    struct ibv_device_attr dev;
    must(ibv_query_port(node.ctx, 1, &port) == 0 && ibv_query_device(node.ctx, &dev) == 0);
    must(dev.node_guid && dev.sys_image_guid);
    ssize_t n = ibv_query_gid_table(node.ctx, t, 64, 0);
    must(n > 0);
    for (ssize_t i = 0; i < n; i++) {
        must(t[i].gid_type == IBV_GID_TYPE_ROCE_V2 && t[i].port_num == 1 && t[i].ndev_ifindex);
        must(ibv_query_gid_ex(node.ctx, 1, t[i].gid_index, &one, 0) == 0);
        must(!memcmp(&one, &t[i], sizeof(one)));
    }
    int found = 0;
    for (int i = 0; i < port.gid_tbl_len; i++)
        found += ibv_query_gid_ex(node.ctx, 1, (uint32_t)i, &one, 0) == 0;
    must(found == n);
    must(ibv_query_gid_ex(node.ctx, 1, (uint32_t)port.gid_tbl_len, &one, 0) != 0);
}

// P63: 16 threads with a QP pair each, one CQ for all sends and one for all receives.
#define THREADS 16
static struct end many[THREADS][2];
static _Atomic int posted[THREADS];

static void *sender(void *arg)
{
    struct end *e = arg;
    long self = (e - &many[0][0]) / 2;
    struct ibv_sge sge = sge_of(e, 0, 4);
    for (uint32_t i = 0; i < 200;) {
        struct ibv_send_wr wr = send_of(&sge, 1);
        wr.opcode = IBV_WR_SEND_WITH_IMM;
        wr.imm_data = i;
        if (i % 50 == 49)
            usleep(2000);
        if (post(e, &wr) == 0)
            i++, posted[self]++;
        else
            sched_yield(); // full: never blocked
    }
    return NULL;
}

static void test_p63_threads_that_share_cqs_finish_in_order(void)
{
    struct pair_opts o = {.type = IBV_QPT_RC};
    struct ibv_cq *scq = ibv_create_cq(node.ctx, 4096, NULL, NULL, 0);
    struct ibv_cq *rcq = ibv_create_cq(node.ctx, 4096, NULL, NULL, 0);
    uint32_t next[THREADS] = {0};
    pthread_t t[THREADS];
    struct ibv_wc wc;
    for (int i = 0; i < THREADS; i++) {
        for (int k = 0; k < 2; k++)
            many[i][k].scq = scq, many[i][k].rcq = rcq;
        pair_make(&node, many[i], &o);
        post_recv(&many[i][1], (uint64_t)i, 4); // the others come late: RNR, without end
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, sender, many[i]);
    int sent = 0, got = 0;
    for (uint64_t end = now_ms() + 100000; got < THREADS * 200 || sent < THREADS * 200;) {
        must(now_ms() < end);
        if (ibv_poll_cq(rcq, 1, &wc) == 1) {
            must(wc.status == IBV_WC_SUCCESS && wc.imm_data == next[wc.wr_id]++);
            post_recv(&many[wc.wr_id][1], wc.wr_id, 4);
            got++;
        }
        if (ibv_poll_cq(scq, 1, &wc) == 1) {
            must(wc.status == IBV_WC_SUCCESS);
            sent++;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        must(ibv_destroy_qp(many[i][0].qp) == 0 && ibv_destroy_qp(many[i][1].qp) == 0);
    }
    must(ibv_destroy_cq(scq) == 0 && ibv_destroy_cq(rcq) == 0);
}

#define RUN(test)                                                                                  \
    do {                                                                                           \
        test();                                                                                    \
        puts(#test);                                                                               \
        fflush(stdout);                                                                            \
    } while (0)

int main(void)
{
    node_open(&node);
    RUN(test_p07_scatter_list_of_builder_has_each_length);
    RUN(test_p09_post_send_says_why_and_where);
    RUN(test_p11_nothing_is_sent_and_arrives);
    RUN(test_p13_longest_message_works_and_one_byte_more_fails_at_the_requester);
    RUN(test_p31_region_dropped_in_flight_fails_or_works_but_nothing_crashes);
    RUN(test_p33_objects_in_use_are_not_destroyed);
    RUN(test_p35_child_of_fork_may_write_beside_a_region);
    RUN(test_p03_destroy_waits_for_the_acknowledgements_of_its_own_cq);
    RUN(test_p37_region_with_a_bound_window_stays);
    RUN(test_p41_receive_sizes_of_an_xrc_sender_and_send_sizes_of_a_receiver);
    RUN(test_p51_gid_table_has_valid_entries_and_holes_refuse);
    RUN(test_p63_threads_that_share_cqs_finish_in_order);
    node_close(&node);
    return 0;
}
