// SPDX-License-Identifier: BSD-2-Clause
// A tour of the async verbs in one process: open, query, create, connect two queue pairs, send,
// RDMA, atomics, a memory window, events, close.
#include "call.h"

#include <string.h>

static IB_VERBS_INTERFACE_STANDARD verbs;
static struct call call;
static IB_CA *ca;
static IB_PD *pd;
static IB_CQ *cq;
static IB_QP *left, *right;
static IB_MR *mr;
static IB_GID gid;
static char memory[8192] __attribute__((aligned(8)));

// ---- open and query -----------------------------------------------------------------------------

static void open_adapter(void)
{
    check(weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, IB_VERBS_INTERFACE_VERSION,
                                   (PINTERFACE)&verbs),
          "query interface");
    verbs.OpenCa(verbs.Context, NULL, NULL, NULL, call_irp(&call));
    ca = (IB_CA *)call_wait(&call, "OpenCa");
}

// Ask for the size first, then for everything. A partial result of QueryPort counts as success.
static void query(void)
{
    ULONG size;
    verbs.QueryPort(verbs.Context, 1, sizeof(size), (IB_PORT_ATTR *)&size, call_irp(&call));
    call_wait(&call, "QueryPort");
    IB_PORT_ATTR *port = calloc(1, size);
    verbs.QueryPort(verbs.Context, 1, size, port, call_irp(&call));
    call_wait(&call, "QueryPort");
    memcpy(&gid, (char *)port + port->GidTblOffset, sizeof(gid));
    printf("port 1: %u bytes of attributes, %u GIDs, MTU code %d, link %s\n", size, port->NumGids,
           (int)port->Mtu, port->LinkState == IB_LINK_ACTIVE ? "active" : "down");
    free(port);
}

// ---- create and connect -------------------------------------------------------------------------

static IB_QP *create_qp(void)
{
    IB_QP_CREATE c = {.Type = IbQpTypeReliableConn,
                      .SqDepth = 8,
                      .RqDepth = 8,
                      .SqSge = 1,
                      .RqSge = 1,
                      .pSendCq = cq,
                      .pRecvCq = cq};
    verbs.CreateQp(pd, &c, NULL, NULL, NULL, call_irp(&call));
    return (IB_QP *)call_wait(&call, "CreateQp");
}

static void create_objects(void)
{
    verbs.CreatePd(ca, NULL, call_irp(&call));
    pd = (IB_PD *)call_wait(&call, "CreatePd");
    verbs.CreateCq(ca, 32, NULL, NULL, NULL, NULL, call_irp(&call));
    cq = (IB_CQ *)call_wait(&call, "CreateCq");
    left = create_qp();
    right = create_qp();
    PMDL mdl = IoAllocateMdl(memory, sizeof(memory), FALSE, FALSE, NULL);
    MmBuildMdlForNonPagedPool(mdl);
    verbs.RegMdl(pd, mdl,
                 IB_AC_LOCAL_WRITE | IB_AC_RDMA_READ | IB_AC_RDMA_WRITE | IB_AC_ATOMIC |
                     IB_AC_MW_BIND,
                 call_irp(&call));
    mr = (IB_MR *)call_wait(&call, "RegMdl");
}

static void modify(IB_QP *qp, IB_QP_MODIFY *m)
{
    verbs.ModifyQp(qp, m, NULL, call_irp(&call));
    call_wait(&call, "ModifyQp");
}

static void connect(IB_QP *qp, ULONG peer)
{
    IB_QP_MODIFY init = {.ReqState = IbQpsInit}, rtr = {.ReqState = IbQpsRtr},
                 rts = {.ReqState = IbQpsRts};
    init.state.Init.PrimaryPort = 1;
    init.state.Init.AccessMask = IB_AC_RDMA_READ | IB_AC_RDMA_WRITE | IB_AC_ATOMIC;
    rtr.state.rtr.DestQp = peer;
    rtr.state.rtr.RespRes = 1;
    rtr.state.rtr.RnrNakTimeout = 12;
    rtr.state.rtr.PrimaryAh.PortNumber = 1;
    rtr.state.rtr.PrimaryAh.Flags = IB_AH_FLAG_GRH;
    rtr.state.rtr.PrimaryAh.Grh.SGid = gid;
    rtr.state.rtr.PrimaryAh.Grh.DGid = gid;
    rtr.state.rtr.PrimaryAh.Grh.HopLimit = 64;
    rts.state.rts.RetryCnt = 7;
    rts.state.rts.RnrRetryCnt = 7;
    rts.state.rts.LocalAckTimeout = 14;
    rts.state.rts.InitDepth = 1;
    modify(qp, &init);
    modify(qp, &rtr);
    modify(qp, &rts);
}

// ---- data ---------------------------------------------------------------------------------------

static void poll_one(IB_WC *wc)
{
    LONG n;
    do {
        n = 1;
        NTSTATUS status = weft_iba_poll_flat(&verbs, cq, &n, wc);
        if (status != STATUS_NO_MORE_ENTRIES)
            check(status, "PollCq");
    } while (n == 0);
    if (wc->Status != IbWcSuccess) {
        fprintf(stderr, "completion of type %d: status %d, reason %u\n", (int)wc->Type,
                (int)wc->Status, wc->VendorError);
        exit(1);
    }
}

// One request with one SGE; Sge is an array of pointers that follows the structure.
static IB_SEND_WR *request(IB_OP_TYPE type, IB_SGE *sge, void *address, ULONG length)
{
    static union {
        IB_SEND_WR wr;
        char room[WEFT_IBA_SEND_WR_SIZE(1)];
    } u;
    memset(&u, 0, sizeof(u));
    *sge = (IB_SGE){address, length, mr->LKey};
    u.wr.Type = type;
    u.wr.Flags = IB_WR_FLAG_SIGNALED;
    u.wr.SgeCount = 1;
    u.wr.Sge[0] = sge;
    return &u.wr;
}

static void post(IB_SEND_WR *wr)
{
    IB_WC wc;
    check(verbs.PostSend(left, wr, NULL), "PostSend");
    poll_one(&wc);
}

static void post_receive(void *address, ULONG length)
{
    union {
        IB_RECV_WR wr;
        char room[WEFT_IBA_RECV_WR_SIZE(1)];
    } u;
    IB_SGE sge = {address, length, mr->LKey};
    memset(&u, 0, sizeof(u));
    u.wr.SgeCount = 1;
    u.wr.Sge[0] = &sge;
    check(verbs.PostRecv(right, &u.wr, NULL), "PostRecv");
}

static void move_data(void)
{
    IB_SGE sge;
    UINT64 *counter = (UINT64 *)(memory + 4096);
    strcpy(memory, "written");
    IB_SEND_WR *wr = request(IbRdmaWrite, &sge, memory, 8);
    wr->u.Rdma.Address = memory + 1000;
    wr->u.Rdma.RKey = mr->RKey;
    post(wr);
    wr = request(IbRdmaRead, &sge, memory + 2000, 8);
    wr->u.Rdma.Address = memory + 1000;
    wr->u.Rdma.RKey = mr->RKey;
    post(wr);
    printf("RDMA: %s and read back %s\n", memory + 1000, memory + 2000);

    *counter = 40;
    wr = request(IbInterlockedAdd, &sge, memory + 3000, 8);
    wr->u.ExchangeAdd.Address = counter;
    wr->u.ExchangeAdd.Value = 2;
    wr->u.ExchangeAdd.RKey = mr->RKey;
    post(wr);
    wr = request(IbInterlockedCompareExchange, &sge, memory + 3008, 8);
    wr->u.CompareExchange.Address = counter;
    wr->u.CompareExchange.Comparand = 42;
    wr->u.CompareExchange.Exchange = 100;
    wr->u.CompareExchange.RKey = mr->RKey;
    post(wr);
    printf("atomics: %llu, then %llu, now %llu\n", *(unsigned long long *)(memory + 3000),
           *(unsigned long long *)(memory + 3008), (unsigned long long)*counter);
}

// A window over a few bytes of the region, with a key of its own, for writing only.
static void use_window(void)
{
    IB_SGE sge;
    IB_WC wc;
    verbs.CreateMw(pd, NULL, call_irp(&call));
    IB_MW *mw = (IB_MW *)call_wait(&call, "CreateMw");
    IB_BIND_WR bind = {.pMr = mr,
                       .Flags = IB_WR_FLAG_SIGNALED,
                       .AccessMask = IB_AC_RDMA_WRITE,
                       .Addr = memory + 5000,
                       .Length = 16};
    check(verbs.BindMw(right, mw, &bind), "BindMw");
    poll_one(&wc);
    IB_SEND_WR *wr = request(IbRdmaWrite, &sge, memory, 8);
    wr->u.Rdma.Address = memory + 5000;
    wr->u.Rdma.RKey = mw->RKey;
    post(wr);
    printf("window: %s through key 0x%08x\n", memory + 5000, mw->RKey);
    verbs.DestroyMw(mw, call_irp(&call));
    call_wait(&call, "DestroyMw");
}

// Arm the queue, wait for its event with an IRP, and let a message raise it.
static void use_events(void)
{
    IB_SGE sge;
    IB_WC wc;
    verbs.GetCqCompEvent(cq, call_irp(&call));
    check(verbs.RearmCq(cq, FALSE), "RearmCq");
    post_receive(memory + 6000, 64);
    strcpy(memory, "an event");
    check(verbs.PostSend(left, request(IbSend, &sge, memory, 9), NULL), "PostSend");
    call_wait(&call, "GetCqCompEvent");
    poll_one(&wc);
    poll_one(&wc);
    printf("event: completion, and the message was \"%s\"\n", memory + 6000);

    // A wait that nothing ends is cancelled.
    verbs.GetQpAsyncEvent(left, call_irp(&call));
    IoCancelIrp(call.irp);
    KeWaitForSingleObject(&call.done, Executive, KernelMode, FALSE, NULL);
    printf("cancelled: 0x%08x\n", (unsigned)call.irp->IoStatus.Status);
}

// ---- close --------------------------------------------------------------------------------------

// Destroy verbs may be called in any order: each ends when the last user of its object is gone.
static void close_all(void)
{
    struct call c[3];
    for (int i = 0; i < 3; i++)
        call_init(&c[i]);
    verbs.CloseCa(ca, NULL, call_irp(&c[0]));
    verbs.DestroyPd(pd, NULL, call_irp(&c[1]));
    verbs.DestroyCq(cq, NULL, call_irp(&c[2]));
    verbs.DestroyQp(left, NULL, call_irp(&call));
    call_wait(&call, "DestroyQp");
    verbs.DestroyQp(right, NULL, call_irp(&call));
    call_wait(&call, "DestroyQp");
    verbs.DeregMr(mr, call_irp(&call));
    IoFreeMdl((PMDL)call_wait(&call, "DeregMr"));
    call_wait(&c[2], "DestroyCq");
    call_wait(&c[1], "DestroyPd");
    call_wait(&c[0], "CloseCa");
    for (int i = 0; i < 3; i++)
        call_free(&c[i]);
    verbs.InterfaceDereference(verbs.Context);
    printf("closed\n");
}

int main(void)
{
    call_init(&call);
    open_adapter();
    query();
    create_objects();
    connect(left, right->Qpn);
    connect(right, left->Qpn);
    move_data();
    use_window();
    use_events();
    close_all();
    call_free(&call);
    return 0;
}
