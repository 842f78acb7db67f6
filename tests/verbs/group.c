// SPDX-License-Identifier: BSD-2-Clause
// group ADDRESS GROUP listen|mute|twice SECONDS: a UD QP at the GID of ADDRESS, a member of GROUP
//   (mute: no member; twice: attached twice). Prints a line "NUMBER from ADDRESS" for each
//   datagram, with the address from its GRH; "leave" as a datagram makes it leave the group.
// group ADDRESS GROUP send TEXT...: sends each text as a datagram.
// P43.
#include "pair.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QKEY  0x11111111
#define SLOTS 32

static struct node node;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

static union ibv_gid gid_of(const char *text)
{
    union ibv_gid gid = {0};
    if (strchr(text, ':')) {
        must(inet_pton(AF_INET6, text, gid.raw) == 1);
    } else {
        gid.raw[10] = gid.raw[11] = 0xff;
        must(inet_pton(AF_INET, text, gid.raw + 12) == 1);
    }
    return gid;
}

// RoCE has no subnet manager: an IPv4 group is mapped as an address is (RFC 4291), as rdma_cm does.
static int index_of(const union ibv_gid *gid)
{
    struct ibv_gid_entry t[64];
    ssize_t n = ibv_query_gid_table(node.ctx, t, 64, 0);
    for (ssize_t i = 0; i < n; i++)
        if (!memcmp(&t[i].gid, gid, sizeof(*gid)))
            return (int)t[i].gid_index;
    return -1;
}

static void make_qp(void)
{
    must(cq = ibv_create_cq(node.ctx, 2 * SLOTS, NULL, NULL, 0));
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = {4, SLOTS, 1, 1, 0}};
    must(qp = ibv_create_qp(node.pd, &init));
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    a.qp_state = IBV_QPS_RTR;
    must(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
    a.qp_state = IBV_QPS_RTS;
    must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void post_slot(uint64_t i)
{
    struct ibv_sge sge = {(uintptr_t)(node.mem + i * 256), 256, node.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
    must(ibv_post_recv(qp, &wr, &bad) == 0);
}

static void show(const struct ibv_wc *wc, const union ibv_gid *group, const uint8_t *buf)
{
    char text[INET6_ADDRSTRLEN];
    bool v4 = group->raw[10] == 0xff && group->raw[11] == 0xff && !group->raw[0];
    must(wc->status == IBV_WC_SUCCESS && wc->wc_flags & IBV_WC_GRH && wc->byte_len > 40);
    // The group's address is where the header has its destination.
    must(!memcmp(v4 ? buf + 36 : buf + 24, v4 ? group->raw + 12 : group->raw, v4 ? 4 : 16));
    inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? buf + 32 : buf + 8, text, sizeof(text));
    printf("%s from %s\n", (const char *)buf + 40, text);
    fflush(stdout);
}

static void listen_to(const union ibv_gid *group, int times, int seconds)
{
    struct ibv_wc wc;
    for (uint64_t i = 0; i < SLOTS; i++)
        post_slot(i);
    for (int i = 0; i < times; i++)
        must(ibv_attach_mcast(qp, group, 0) == 0);
    puts("ready");
    fflush(stdout);
    for (uint64_t end = now_ms() + (uint64_t)seconds * 1000; now_ms() < end;) {
        if (ibv_poll_cq(cq, 1, &wc) != 1) {
            usleep(1000);
            continue;
        }
        const uint8_t *buf = node.mem + wc.wr_id * 256;
        show(&wc, group, buf);
        if (times && !strcmp((const char *)buf + 40, "leave"))
            must(ibv_detach_mcast(qp, group, 0) == 0 && !(times = 0));
        if (!strcmp((const char *)buf + 40, "end"))
            break;
        post_slot(wc.wr_id);
    }
    if (times)
        must(ibv_detach_mcast(qp, group, 0) == 0);
}

static void send_to(const union ibv_gid *group, int index, int count, char **text)
{
    struct ibv_ah_attr av = {.is_global = 1,
                             .port_num = 1,
                             .grh = {.dgid = *group, .sgid_index = (uint8_t)index, .hop_limit = 1}};
    struct ibv_ah *ah = ibv_create_ah(node.pd, &av);
    must(ah);
    for (int i = 0; i < count; i++) {
        uint8_t *buf = node.mem + SLOTS * 256;
        struct ibv_sge sge = {(uintptr_t)buf, (uint32_t)strlen(text[i]) + 1, node.mr->lkey};
        struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                       .num_sge = 1,
                                       .opcode = IBV_WR_SEND,
                                       .send_flags = IBV_SEND_SIGNALED};
        memcpy(buf, text[i], sge.length);
        wr.wr.ud.ah = ah;
        wr.wr.ud.remote_qpn = 0xffffff;
        wr.wr.ud.remote_qkey = QKEY;
        must(ibv_post_send(qp, &wr, &bad) == 0);
        must(next_wc(cq).status == IBV_WC_SUCCESS);
        usleep(20000);
    }
    must(ibv_destroy_ah(ah) == 0);
}

int main(int argc, char **argv)
{
    must(argc >= 5);
    node_open(&node);
    union ibv_gid self = gid_of(argv[1]), group = gid_of(argv[2]);
    int index = index_of(&self);
    must(index >= 0);
    make_qp();
    if (!strcmp(argv[3], "send"))
        send_to(&group, index, argc - 4, argv + 4);
    else
        listen_to(&group, !strcmp(argv[3], "twice") ? 2 : strcmp(argv[3], "mute") != 0,
                  atoi(argv[4]));
    must(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
    node_close(&node);
    return 0;
}
