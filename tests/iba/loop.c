// SPDX-License-Identifier: BSD-2-Clause
// A client of the verbs API and one of the async verbs in one process, on one engine: RC, UC and UD
// messages both ways over the loop link.
#include <infiniband/verbs.h>
#include <weft/iba_cb.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QKEY  0x1234567
#define SIZE  4000
#define ROUND 20

static void need(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "failed: %s\n", what);
    exit(1);
}

// ---- the verbs side -----------------------------------------------------------------------------

static struct {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct ibv_ah *ah;
    union ibv_gid gid;
    char mem[SIZE + 40];
} v;

static void verbs_open(enum ibv_qp_type type)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && list[0], "a device");
    v.ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    v.pd = ibv_alloc_pd(v.ctx);
    v.cq = ibv_create_cq(v.ctx, 64, NULL, NULL, 0);
    v.mr = ibv_reg_mr(v.pd, v.mem, sizeof(v.mem), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp_init_attr init = {.send_cq = v.cq,
                                    .recv_cq = v.cq,
                                    .cap = {16, 16, 1, 1, 0},
                                    .qp_type = type,
                                    .sq_sig_all = 1};
    v.qp = ibv_create_qp(v.pd, &init);
    need(v.qp != NULL, "ibv_create_qp");
    need(ibv_query_gid(v.ctx, 1, 0, &v.gid) == 0, "ibv_query_gid");
}

static void verbs_connect(ULONG peer)
{
    bool ud = v.qp->qp_type == IBV_QPT_UD, rc = v.qp->qp_type == IBV_QPT_RC;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    need(!ibv_modify_qp(v.qp, &a, mask | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)), "INIT");
    a.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
    a.ah_attr.grh.dgid = v.gid;
    a.ah_attr.grh.hop_limit = 64;
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = peer;
    a.rq_psn = a.sq_psn = 5;
    a.max_dest_rd_atomic = a.max_rd_atomic = 1;
    a.min_rnr_timer = 12;
    a.timeout = 14;
    a.retry_cnt = a.rnr_retry = 7;
    mask = IBV_QP_STATE;
    if (!ud)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (rc)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    need(!ibv_modify_qp(v.qp, &a, mask), "RTR");
    a.qp_state = IBV_QPS_RTS;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (rc)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    need(!ibv_modify_qp(v.qp, &a, mask), "RTS");
    v.ah = ud ? ibv_create_ah(v.pd, &a.ah_attr) : NULL;
}

static void verbs_recv(void)
{
    struct ibv_sge sge = {(uintptr_t)v.mem, sizeof(v.mem), v.mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    need(!ibv_post_recv(v.qp, &wr, &bad), "ibv_post_recv");
}

static void verbs_send(uint32_t len, ULONG peer)
{
    struct ibv_sge sge = {(uintptr_t)v.mem, len, v.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    if (v.ah) {
        wr.wr.ud.ah = v.ah;
        wr.wr.ud.remote_qpn = peer;
        wr.wr.ud.remote_qkey = QKEY;
    }
    need(!ibv_post_send(v.qp, &wr, &bad), "ibv_post_send");
}

static void verbs_poll(enum ibv_wc_opcode opcode, uint32_t len)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(v.cq, 1, &wc) == 0) {
    }
    need(wc.status == IBV_WC_SUCCESS && wc.opcode == opcode, "a verbs completion");
    need(opcode != IBV_WC_RECV || wc.byte_len == len, "its length");
}

static void verbs_close(void)
{
    if (v.ah)
        ibv_destroy_ah(v.ah);
    need(!ibv_destroy_qp(v.qp) && !ibv_dereg_mr(v.mr) && !ibv_destroy_cq(v.cq) &&
             !ibv_dealloc_pd(v.pd) && !ibv_close_device(v.ctx),
         "closing the verbs side");
}

// ---- the async side: plain callbacks, which come before the calls return at PASSIVE_LEVEL
// --------

static IB_VERBS_INTERFACE_STANDARD verbs;
static struct {
    IB_CA *ca;
    IB_PD *pd;
    IB_CQ *cq;
    IB_QP *qp;
    IB_MR *mr;
    IB_AH *ah;
    char mem[SIZE + 40];
} a;

static VOID store(PVOID context, NTSTATUS status, ULONG_PTR info)
{
    need(NT_SUCCESS(status), "an async verb");
    *(ULONG_PTR *)context = info;
}

static void async_open(IB_QP_TYPE type)
{
    IB_QP_CREATE c = {.Type = type, .SqDepth = 16, .RqDepth = 16, .SqSge = 1, .RqSge = 1};
    PMDL mdl = IoAllocateMdl(a.mem, sizeof(a.mem), FALSE, FALSE, NULL);
    need(!weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 1, (PINTERFACE)&verbs), "interface");
    weft_iba_set_path_mtu(IB_MTU_1024);
    weft_cb_open_ca(&verbs, NULL, NULL, store, &a.ca);
    weft_cb_create_pd(&verbs, a.ca, store, &a.pd);
    weft_cb_create_cq(&verbs, a.ca, 64, NULL, NULL, NULL, store, &a.cq);
    c.pSendCq = c.pRecvCq = a.cq;
    weft_cb_create_qp(&verbs, a.pd, &c, NULL, NULL, store, &a.qp);
    MmBuildMdlForNonPagedPool(mdl);
    weft_cb_reg_mdl(&verbs, a.pd, mdl, IB_AC_LOCAL_WRITE, store, &a.mr);
}

static void async_connect(ULONG peer)
{
    ULONG_PTR none;
    IB_QP_MODIFY init = {.ReqState = IbQpsInit}, rtr = {.ReqState = IbQpsRtr},
                 rts = {.ReqState = IbQpsRts};
    IB_AH_ATTR path = {.PortNumber = 1, .Flags = IB_AH_FLAG_GRH};
    memcpy(&path.Grh.SGid, &v.gid, sizeof(v.gid));
    memcpy(&path.Grh.DGid, &v.gid, sizeof(v.gid));
    path.Grh.HopLimit = 64;
    init.state.Init.PrimaryPort = 1;
    init.state.Init.Qkey = QKEY;
    rtr.state.rtr.DestQp = peer;
    rtr.state.rtr.RqPsn = rts.state.rts.SqPsn = 5;
    rtr.state.rtr.PrimaryAh = path;
    rtr.state.rtr.RespRes = rts.state.rts.InitDepth = 1;
    rtr.state.rtr.RnrNakTimeout = 12;
    rts.state.rts.LocalAckTimeout = 14;
    rts.state.rts.RetryCnt = rts.state.rts.RnrRetryCnt = 7;
    weft_cb_modify_qp(&verbs, a.qp, &init, store, &none);
    weft_cb_modify_qp(&verbs, a.qp, &rtr, store, &none);
    weft_cb_modify_qp(&verbs, a.qp, &rts, store, &none);
    a.ah = NULL;
    if (a.qp->Type == IbQpTypeUnreliableDgrm)
        need(!verbs.CreateAh(a.pd, &path, &a.ah), "CreateAh");
}

static void async_recv(void)
{
    union {
        IB_RECV_WR wr;
        char room[WEFT_IBA_RECV_WR_SIZE(1)];
    } u;
    IB_SGE sge = {a.mem, sizeof(a.mem), a.mr->LKey};
    memset(&u, 0, sizeof(u));
    u.wr.SgeCount = 1;
    u.wr.Sge[0] = &sge;
    need(!verbs.PostRecv(a.qp, &u.wr, NULL), "PostRecv");
}

static void async_send(ULONG len)
{
    union {
        IB_SEND_WR wr;
        char room[WEFT_IBA_SEND_WR_SIZE(1)];
    } u;
    IB_SGE sge = {a.mem, len, a.mr->LKey};
    memset(&u, 0, sizeof(u));
    u.wr.Type = IbSend;
    u.wr.Flags = IB_WR_FLAG_SIGNALED;
    u.wr.SgeCount = 1;
    u.wr.Sge[0] = &sge;
    u.wr.u.Ud.pAh = a.ah;
    u.wr.u.Ud.RemoteQpn = v.qp->qp_num;
    u.wr.u.Ud.RemoteQkey = QKEY;
    need(!verbs.PostSend(a.qp, &u.wr, NULL), "PostSend");
}

static void async_poll(IB_OP_TYPE type, ULONG len)
{
    IB_WC wc;
    LONG n;
    do {
        n = 1;
        weft_iba_poll_flat(&verbs, a.cq, &n, &wc);
    } while (n == 0);
    need(wc.Status == IbWcSuccess && wc.Type == type, "an async completion");
    need(type != IbRecv || wc.Length == len, "its length");
}

static void async_close(void)
{
    ULONG_PTR mdl, none;
    if (a.ah)
        verbs.DestroyAh(a.ah);
    weft_cb_destroy_qp(&verbs, a.qp, store, &none);
    weft_cb_dereg_mr(&verbs, a.mr, store, &mdl);
    IoFreeMdl((PMDL)mdl);
    weft_cb_destroy_cq(&verbs, a.cq, store, &none);
    weft_cb_destroy_pd(&verbs, a.pd, store, &none);
    weft_cb_close_ca(&verbs, a.ca, store, &none);
    verbs.InterfaceDereference(verbs.Context);
}

// ---- traffic ------------------------------------------------------------------------------------

static void exchange(bool ud)
{
    uint32_t skip = ud ? 40 : 0, len = ud ? 900 : SIZE;
    for (int i = 0; i < ROUND; i++) {
        memset(a.mem, 'a' + i, len);
        memset(v.mem, 0, sizeof(v.mem));
        verbs_recv();
        async_send(len);
        async_poll(IbSend, 0);
        verbs_poll(IBV_WC_RECV, len + skip);
        need(memcmp(v.mem + skip, a.mem, len) == 0, "data from the async side");
        memset(v.mem, 'A' + i, len);
        memset(a.mem, 0, sizeof(a.mem));
        async_recv();
        verbs_send(len, a.qp->Qpn);
        verbs_poll(IBV_WC_SEND, 0);
        async_poll(IbRecv, len + skip);
        need(memcmp(a.mem + skip, v.mem, len) == 0, "data from the verbs side");
    }
}

int main(void)
{
    static const enum ibv_qp_type vt[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    static const IB_QP_TYPE at[] = {IbQpTypeReliableConn, IbQpTypeUnreliableConn,
                                    IbQpTypeUnreliableDgrm};
    for (int i = 0; i < 3; i++) {
        verbs_open(vt[i]);
        async_open(at[i]);
        need(v.qp->qp_num >> 16 == a.qp->Qpn >> 16, "one engine for both");
        verbs_connect(a.qp->Qpn);
        async_connect(v.qp->qp_num);
        exchange(vt[i] == IBV_QPT_UD);
        async_close();
        verbs_close();
    }
    printf("exchanged\n");
    return 0;
}
