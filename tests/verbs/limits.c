// SPDX-License-Identifier: BSD-2-Clause
// The limits that ibv_query_device advertises are true: as many are made, and used. Of QPs a share,
// by argument (default 10,000); of CQ entries a CQ of that size, of regions all.
#include "pair.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct node node;
static struct ibv_device_attr attr;

static void send_one(struct end e[2], uint64_t id, struct ibv_sge *from, int n, uint32_t len)
{
    struct ibv_send_wr wr = {.wr_id = id,
                             .sg_list = from,
                             .num_sge = n,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED};
    must(post(&e[0], &wr) == 0);
    struct ibv_wc wc = next_wc(e[1].rcq);
    must(wc.status == IBV_WC_SUCCESS && wc.byte_len == len);
    wc = next_wc(e[0].scq);
    must(wc.status == IBV_WC_SUCCESS && wc.wr_id == id);
}

// The first and the last of many connected pairs carry data.
static void test_many_qps_exist_and_work(int count)
{
    struct end(*pairs)[2] = calloc((size_t)count / 2, sizeof(*pairs));
    struct pair_opts o = {.type = IBV_QPT_RC};
    struct ibv_cq *cq[2];
    must(pairs && (int)count <= attr.max_qp);
    for (int i = 0; i < 2; i++)
        must(cq[i] = ibv_create_cq(node.ctx, 64, NULL, NULL, 0));
    for (int i = 0; i < count / 2; i++) {
        for (int k = 0; k < 2; k++) {
            pairs[i][k].scq = cq[0];
            pairs[i][k].rcq = cq[1];
        }
        pair_make(&node, pairs[i], &o);
    }
    for (int i = 0; i<count / 2; i += count / 2> 1 ? count / 2 - 1 : 1) {
        struct ibv_sge sge = sge_of(&pairs[i][0], 0, 100);
        post_recv(&pairs[i][1], 1, 100);
        send_one(pairs[i], 2, &sge, 1, 100);
    }
    for (int i = 0; i < count / 2; i++)
        for (int k = 0; k < 2; k++)
            must(ibv_destroy_qp(pairs[i][k].qp) == 0);
    for (int i = 0; i < 2; i++)
        must(ibv_destroy_cq(cq[i]) == 0);
    free(pairs);
}

static void test_cq_of_max_cqe_holds_completions_and_no_larger_one_exists(void)
{
    struct ibv_cq *cq = ibv_create_cq(node.ctx, attr.max_cqe, NULL, NULL, 0);
    must(cq && cq->cqe >= attr.max_cqe);
    must(!ibv_create_cq(node.ctx, attr.max_cqe + 1, NULL, NULL, 0));
    struct end e[2] = {{.scq = cq}};
    struct pair_opts o = {.type = IBV_QPT_RC};
    pair_make(&node, e, &o);
    struct ibv_sge sge = sge_of(&e[0], 0, 8);
    post_recv(&e[1], 1, 8);
    send_one(e, 2, &sge, 1, 8);
    pair_free(e);
}

static void test_max_sge_on_both_sides_moves_each_byte(void)
{
    struct end e[2] = {0};
    uint32_t n = (uint32_t)attr.max_sge;
    struct pair_opts o = {.type = IBV_QPT_RC, .max_sge = n};
    struct ibv_sge *sge = calloc(n, sizeof(*sge));
    pair_make(&node, e, &o);
    for (uint32_t i = 0; i < n; i++)
        sge[i] = sge_of(&e[1], i * 16, 3); // with gaps
    struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = (int)n}, *bad;
    must(ibv_post_recv(e[1].qp, &wr, &bad) == 0);
    memset(e[1].mem, 0, n * 16);
    for (uint32_t i = 0; i < n; i++) {
        sge[i] = sge_of(&e[0], i * 32, 3);
        memset(e[0].mem + i * 32, (int)i + 1, 3);
    }
    send_one(e, 7, sge, (int)n, 3 * n);
    for (uint32_t i = 0; i < n; i++) {
        must(e[1].mem[i * 16] == i + 1 && e[1].mem[i * 16 + 2] == i + 1);
        must(e[1].mem[i * 16 + 3] == 0);
    }
    free(sge);
    pair_free(e);
    struct ibv_qp_init_attr more = {
        .send_cq = NULL, .qp_type = IBV_QPT_RC, .cap = {1, 1, n + 1, 1, 0}};
    must(more.send_cq = more.recv_cq = ibv_create_cq(node.ctx, 4, NULL, NULL, 0));
    must(!ibv_create_qp(node.pd, &more));
    must(ibv_destroy_cq(more.send_cq) == 0);
}

static void test_max_mr_regions_exist_and_the_last_one_works(void)
{
    int count = attr.max_mr - 1; // the node has one
    struct ibv_mr **mr = calloc((size_t)attr.max_mr + 1, sizeof(struct ibv_mr *));
    static uint8_t buf[4096];
    int made = 0;
    while (made < count && (mr[made] = ibv_reg_mr(node.pd, buf, sizeof(buf), PAIR_ALL)))
        made++;
    printf("%d regions of max_mr %d\n", made + 1, attr.max_mr);
    must(made == count);
    struct end e[2] = {0};
    struct pair_opts o = {.type = IBV_QPT_RC};
    pair_make(&node, e, &o);
    memset(buf, 0x5a, sizeof(buf));
    struct ibv_sge sge = {(uintptr_t)buf, sizeof(buf), mr[made - 1]->lkey};
    post_recv(&e[1], 1, sizeof(buf));
    send_one(e, 9, &sge, 1, sizeof(buf));
    must(e[1].mem[END_MEM / 2 + 4095] == 0x5a);
    pair_free(e);
    for (int i = 0; i < made; i++)
        must(ibv_dereg_mr(mr[i]) == 0);
    free(mr);
}

int main(int argc, char **argv)
{
    node_open(&node);
    must(ibv_query_device(node.ctx, &attr) == 0);
    printf("max_qp %d max_cqe %d max_sge %d max_mr %d\n", attr.max_qp, attr.max_cqe, attr.max_sge,
           attr.max_mr);
    test_max_sge_on_both_sides_moves_each_byte();
    test_cq_of_max_cqe_holds_completions_and_no_larger_one_exists();
    test_max_mr_regions_exist_and_the_last_one_works();
    test_many_qps_exist_and_work(argc > 1 ? atoi(argv[1]) : 10000);
    node_close(&node);
    puts("limits: true");
    return 0;
}
