// SPDX-License-Identifier: BSD-2-Clause
// What each verb costs through the async verbs and through the verbs API, on one engine. Prints
// microseconds of both and their difference for one verb of each row, and last the largest.
#include <infiniband/verbs.h>
#include <weft/iba_cb.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 9

static struct {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    union ibv_gid gid;
} v;

static IB_VERBS_INTERFACE_STANDARD verbs;
static struct {
    IB_CA *ca;
    IB_PD *pd;
    IB_CQ *cq;
    IB_QP *qp;
    IB_MR *mr;
    PMDL mdl;
    IB_AH_ATTR path;
} a;
static char mem[4096] __attribute__((aligned(4096)));
static char block[4096] __attribute__((aligned(8)));
static KEVENT done;

static void need(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "failed: %s\n", what);
    exit(1);
}

// A destroy verb may pend for the moment that the engine's thread still has the object.
static VOID store(PVOID context, NTSTATUS status, ULONG_PTR info)
{
    need(NT_SUCCESS(status) || status == STATUS_BUFFER_OVERFLOW, "an async verb");
    *(ULONG_PTR *)context = info;
    KeSetEvent(&done, 0, FALSE);
}

static void settled(NTSTATUS status)
{
    KeWaitForSingleObject(&done, Executive, KernelMode, FALSE, NULL);
    (void)status;
}

// ---- setting up ---------------------------------------------------------------------------------

static struct ibv_qp *verbs_qp(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = v.cq, .recv_cq = v.cq, .cap = {16, 16, 1, 1, 64}, .qp_type = IBV_QPT_RC};
    return ibv_create_qp(v.pd, &init);
}

static IB_QP *async_qp(void)
{
    IB_QP *qp = NULL;
    IB_QP_CREATE c = {.SqDepth = 16, .RqDepth = 16, .SqSge = 1, .RqSge = 1, .SqMaxInline = 64};
    c.pSendCq = c.pRecvCq = a.cq;
    settled(weft_cb_create_qp(&verbs, a.pd, &c, NULL, NULL, store, &qp));
    return qp;
}

static void verbs_connect(void)
{
    struct ibv_qp_attr at = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    at.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    need(!ibv_modify_qp(v.qp, &at,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "INIT");
    at.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
    at.ah_attr.grh.dgid = v.gid;
    at.qp_state = IBV_QPS_RTR;
    at.path_mtu = IBV_MTU_1024;
    at.dest_qp_num = v.qp->qp_num;
    at.max_rd_atomic = at.max_dest_rd_atomic = 1;
    at.timeout = 14;
    need(!ibv_modify_qp(v.qp, &at,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "RTR");
    at.qp_state = IBV_QPS_RTS;
    need(!ibv_modify_qp(v.qp, &at,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
         "RTS");
}

static void async_modify(IB_QP_MODIFY *m)
{
    ULONG_PTR none;
    settled(weft_cb_modify_qp(&verbs, a.qp, m, store, &none));
}

static void async_connect(void)
{
    IB_QP_MODIFY init = {.ReqState = IbQpsInit}, rtr = {.ReqState = IbQpsRtr},
                 rts = {.ReqState = IbQpsRts};
    init.state.Init.PrimaryPort = 1;
    init.state.Init.AccessMask = IB_AC_RDMA_WRITE;
    rtr.state.rtr.DestQp = a.qp->Qpn;
    rtr.state.rtr.PrimaryAh = a.path;
    rtr.state.rtr.RespRes = rts.state.rts.InitDepth = 1;
    rts.state.rts.LocalAckTimeout = 14;
    async_modify(&init);
    async_modify(&rtr);
    async_modify(&rts);
}

static void open_both(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && list[0], "a device");
    v.ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    v.pd = ibv_alloc_pd(v.ctx);
    v.cq = ibv_create_cq(v.ctx, 64, NULL, NULL, 0);
    v.mr = ibv_reg_mr(v.pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    v.qp = verbs_qp();
    need(v.qp && !ibv_query_gid(v.ctx, 1, 0, &v.gid), "the verbs side");
    verbs_connect();
    need(!weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 1, (PINTERFACE)&verbs), "interface");
    a.path = (IB_AH_ATTR){.PortNumber = 1, .Flags = IB_AH_FLAG_GRH};
    memcpy(&a.path.Grh.SGid, &v.gid, sizeof(v.gid));
    memcpy(&a.path.Grh.DGid, &v.gid, sizeof(v.gid));
    settled(weft_cb_open_ca(&verbs, NULL, NULL, store, &a.ca));
    settled(weft_cb_create_pd(&verbs, a.ca, store, &a.pd));
    settled(weft_cb_create_cq(&verbs, a.ca, 64, NULL, NULL, NULL, store, &a.cq));
    a.mdl = IoAllocateMdl(mem, sizeof(mem), FALSE, FALSE, NULL);
    MmBuildMdlForNonPagedPool(a.mdl);
    settled(
        weft_cb_reg_mdl(&verbs, a.pd, a.mdl, IB_AC_LOCAL_WRITE | IB_AC_RDMA_WRITE, store, &a.mr));
    a.qp = async_qp();
    async_connect();
}

static void close_both(void)
{
    ULONG_PTR none;
    settled(weft_cb_destroy_qp(&verbs, a.qp, store, &none));
    settled(weft_cb_dereg_mr(&verbs, a.mr, store, &none));
    settled(weft_cb_destroy_cq(&verbs, a.cq, store, &none));
    settled(weft_cb_destroy_pd(&verbs, a.pd, store, &none));
    settled(weft_cb_close_ca(&verbs, a.ca, store, &none));
    verbs.InterfaceDereference(verbs.Context);
    IoFreeMdl(a.mdl);
    ibv_destroy_qp(v.qp);
    ibv_dereg_mr(v.mr);
    ibv_destroy_cq(v.cq);
    ibv_dealloc_pd(v.pd);
    ibv_close_device(v.ctx);
}

// ---- pairs of the same work ---------------------------------------------------------------------

static void verbs_open_close(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    ibv_close_device(ibv_open_device(list[0]));
    ibv_free_device_list(list);
}

static void async_open_close(void)
{
    IB_CA *ca;
    ULONG_PTR none;
    settled(weft_cb_open_ca(&verbs, NULL, NULL, store, &ca));
    settled(weft_cb_close_ca(&verbs, ca, store, &none));
}

static void verbs_query_ca(void)
{
    struct ibv_device_attr d;
    struct ibv_port_attr p;
    struct ibv_gid_entry g[32];
    ibv_query_device(v.ctx, &d);
    ibv_query_port(v.ctx, 1, &p);
    ibv_query_gid_table(v.ctx, g, 32, 0);
}

static void async_query_ca(void)
{
    ULONG_PTR n;
    settled(weft_cb_query_ca(&verbs, sizeof(block), (IB_CA_ATTR *)block, store, &n));
}

static void verbs_pd(void)
{
    ibv_dealloc_pd(ibv_alloc_pd(v.ctx));
}

static void async_pd(void)
{
    IB_PD *pd;
    ULONG_PTR none;
    settled(weft_cb_create_pd(&verbs, a.ca, store, &pd));
    settled(weft_cb_destroy_pd(&verbs, pd, store, &none));
}

static void verbs_cq(void)
{
    ibv_destroy_cq(ibv_create_cq(v.ctx, 64, NULL, NULL, 0));
}

static void async_cq(void)
{
    IB_CQ *cq;
    ULONG_PTR none;
    settled(weft_cb_create_cq(&verbs, a.ca, 64, NULL, NULL, NULL, store, &cq));
    settled(weft_cb_destroy_cq(&verbs, cq, store, &none));
}

static void verbs_make_qp(void)
{
    ibv_destroy_qp(verbs_qp());
}

static void async_make_qp(void)
{
    ULONG_PTR none;
    settled(weft_cb_destroy_qp(&verbs, async_qp(), store, &none));
}

static void verbs_mr(void)
{
    ibv_dereg_mr(ibv_reg_mr(v.pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE));
}

static void async_mr(void)
{
    IB_MR *mr;
    ULONG_PTR none;
    settled(weft_cb_reg_mdl(&verbs, a.pd, a.mdl, IB_AC_LOCAL_WRITE, store, &mr));
    settled(weft_cb_dereg_mr(&verbs, mr, store, &none));
}

static void verbs_mw(void)
{
    ibv_dealloc_mw(ibv_alloc_mw(v.pd, IBV_MW_TYPE_1));
}

static void async_mw(void)
{
    IB_MW *mw;
    ULONG_PTR none;
    settled(weft_cb_create_mw(&verbs, a.pd, store, &mw));
    settled(weft_cb_destroy_mw(&verbs, mw, store, &none));
}

static void verbs_ah(void)
{
    struct ibv_ah_attr at = {.is_global = 1, .port_num = 1};
    at.grh.dgid = v.gid;
    ibv_destroy_ah(ibv_create_ah(v.pd, &at));
}

static void async_ah(void)
{
    IB_AH *ah;
    need(!verbs.CreateAh(a.pd, &a.path, &ah), "CreateAh");
    verbs.DestroyAh(ah);
}

static void verbs_connect_again(void)
{
    struct ibv_qp_attr at = {.qp_state = IBV_QPS_RESET};
    ibv_modify_qp(v.qp, &at, IBV_QP_STATE);
    verbs_connect();
}

static void async_connect_again(void)
{
    IB_QP_MODIFY m = {.ReqState = IbQpsReset};
    async_modify(&m);
    async_connect();
}

static void verbs_query_qp(void)
{
    struct ibv_qp_attr at;
    struct ibv_qp_init_attr init;
    ibv_query_qp(v.qp, &at, IBV_QP_STATE, &init);
}

static void async_query_qp(void)
{
    ULONG_PTR none;
    settled(weft_cb_query_qp(&verbs, a.qp, (IB_QP_ATTR *)block, store, &none));
}

static void verbs_arm(void)
{
    ibv_req_notify_cq(v.cq, 0);
}

static void async_arm(void)
{
    verbs.RearmCq(a.cq, FALSE);
}

static void verbs_empty_poll(void)
{
    struct ibv_wc wc;
    ibv_poll_cq(v.cq, 1, &wc);
}

static void async_empty_poll(void)
{
    IB_WC wc;
    LONG n = 1;
    weft_iba_poll_flat(&verbs, a.cq, &n, &wc);
}

static void verbs_write(void)
{
    struct ibv_sge sge = {(uintptr_t)mem, 8, v.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    struct ibv_wc wc;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = (uintptr_t)mem + 64;
    wr.wr.rdma.rkey = v.mr->rkey;
    need(!ibv_post_send(v.qp, &wr, &bad), "ibv_post_send");
    while (ibv_poll_cq(v.cq, 1, &wc) == 0) {
    }
    need(wc.status == 0, "a verbs completion");
}

static void async_write(void)
{
    union {
        IB_SEND_WR wr;
        char room[WEFT_IBA_SEND_WR_SIZE(1)];
    } u;
    IB_SGE sge = {mem, 8, a.mr->LKey};
    IB_WC wc;
    LONG n;
    memset(&u, 0, sizeof(u));
    u.wr.Type = IbRdmaWrite;
    u.wr.Flags = IB_WR_FLAG_SIGNALED;
    u.wr.SgeCount = 1;
    u.wr.Sge[0] = &sge;
    u.wr.u.Rdma.Address = mem + 64;
    u.wr.u.Rdma.RKey = a.mr->RKey;
    need(!verbs.PostSend(a.qp, &u.wr, NULL), "PostSend");
    do {
        n = 1;
        weft_iba_poll_flat(&verbs, a.cq, &n, &wc);
    } while (n == 0);
    need(wc.Status == IbWcSuccess, "an async completion");
}

static const struct {
    const char *name;
    int calls; // verbs in one run
    void (*verbs)(void), (*async)(void);
} rows[] = {
    {"open, close CA", 2, verbs_open_close, async_open_close},
    {"query CA, port, GIDs", 1, verbs_query_ca, async_query_ca},
    {"create, destroy PD", 2, verbs_pd, async_pd},
    {"create, destroy CQ", 2, verbs_cq, async_cq},
    {"create, destroy QP", 2, verbs_make_qp, async_make_qp},
    {"register, deregister", 2, verbs_mr, async_mr},
    {"create, destroy window", 2, verbs_mw, async_mw},
    {"create, destroy AH", 2, verbs_ah, async_ah},
    {"RESET to RTS, four verbs", 4, verbs_connect_again, async_connect_again},
    {"query QP", 1, verbs_query_qp, async_query_qp},
    {"RDMA write, post and poll", 2, verbs_write, async_write},
    {"poll an empty CQ", 1, verbs_empty_poll, async_empty_poll},
    {"arm CQ", 1, verbs_arm, async_arm}, // last: from here the engine's thread works too
};

// ---- measuring ----------------------------------------------------------------------------------

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double run(void (*work)(void), int n)
{
    double start = now();
    for (int i = 0; i < n; i++)
        work();
    return (now() - start) / n;
}

// Both in turn, so that what else the machine does meets both.
static void best(size_t row, int n, double *theirs, double *ours)
{
    *theirs = *ours = 1e9;
    for (int r = 0; r < ROUNDS; r++) {
        double t = run(rows[row].verbs, n) / rows[row].calls;
        double o = run(rows[row].async, n) / rows[row].calls;
        *theirs = t < *theirs ? t : *theirs;
        *ours = o < *ours ? o : *ours;
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 2000;
    double worst = 0;
    KeInitializeEvent(&done, SynchronizationEvent, FALSE);
    open_both();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double theirs, ours;
        best(i, n, &theirs, &ours);
        printf("%-26s verbs %8.3f us, async %8.3f us, more %7.3f us\n", rows[i].name, theirs, ours,
               ours - theirs);
        worst = ours - theirs > worst ? ours - theirs : worst;
    }
    close_both();
    printf("largest difference, microseconds: %.3f\n", worst);
    return 0;
}
