// SPDX-License-Identifier: BSD-2-Clause
// Connect an async-verbs queue pair with the InfiniBand connection manager and send a line over it.
// The peer may be this program or examples/ib_cm/connect.c, which does the same with verbs.
//
//     iba_connect             waits for one client
//     iba_connect ADDRESS     connects to it there
#include "call.h"
#include "cm.h"

#include <string.h>

static IB_VERBS_INTERFACE_STANDARD verbs;
static struct call call;
static IB_CA *ca;
static IB_PD *pd;
static IB_CQ *cq;
static IB_QP *qp;
static IB_MR *mr;
static char buffer[64];

static void open_all(void)
{
    IB_QP_CREATE c = {.SqDepth = 4, .RqDepth = 4, .SqSge = 1, .RqSge = 1};
    check(weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 1, (PINTERFACE)&verbs), "interface");
    verbs.OpenCa(verbs.Context, NULL, NULL, NULL, call_irp(&call));
    ca = (IB_CA *)call_wait(&call, "OpenCa");
    verbs.CreatePd(ca, NULL, call_irp(&call));
    pd = (IB_PD *)call_wait(&call, "CreatePd");
    verbs.CreateCq(ca, 8, NULL, NULL, NULL, NULL, call_irp(&call));
    cq = (IB_CQ *)call_wait(&call, "CreateCq");
    c.pSendCq = c.pRecvCq = cq;
    verbs.CreateQp(pd, &c, NULL, NULL, NULL, call_irp(&call));
    qp = (IB_QP *)call_wait(&call, "CreateQp");
    PMDL mdl = IoAllocateMdl(buffer, sizeof(buffer), FALSE, FALSE, NULL);
    MmBuildMdlForNonPagedPool(mdl);
    verbs.RegMdl(pd, mdl, IB_AC_LOCAL_WRITE, call_irp(&call));
    mr = (IB_MR *)call_wait(&call, "RegMdl");
}

static void modify(IB_QP_MODIFY *m)
{
    verbs.ModifyQp(qp, m, NULL, call_irp(&call));
    call_wait(&call, "ModifyQp");
}

static void to_init(void)
{
    IB_QP_MODIFY m = {.ReqState = IbQpsInit};
    m.state.Init.PrimaryPort = 1;
    modify(&m);
}

static void to_rts(const struct connection *c)
{
    IB_QP_MODIFY rtr = {.ReqState = IbQpsRtr}, rts = {.ReqState = IbQpsRts};
    IB_AH_ATTR *path = &rtr.state.rtr.PrimaryAh;
    weft_iba_set_path_mtu((IB_MTU)c->mtu); // the connection decides it, the RFC has no field for it
    path->PortNumber = 1;
    path->Flags = IB_AH_FLAG_GRH;
    path->Grh.HopLimit = c->hop_limit;
    memcpy(&path->Grh.SGid, c->sgid, sizeof(c->sgid));
    memcpy(&path->Grh.DGid, c->dgid, sizeof(c->dgid));
    rtr.state.rtr.DestQp = c->dest_qpn;
    rtr.state.rtr.RqPsn = c->rq_psn;
    rtr.state.rtr.RespRes = c->responder_resources;
    rtr.state.rtr.RnrNakTimeout = c->rnr_timer;
    rts.state.rts.SqPsn = c->sq_psn;
    rts.state.rts.InitDepth = c->initiator_depth;
    rts.state.rts.LocalAckTimeout = c->ack_timeout;
    rts.state.rts.RetryCnt = c->retry_count;
    rts.state.rts.RnrRetryCnt = c->rnr_retry_count;
    modify(&rtr);
    modify(&rts);
}

static void complete(void)
{
    IB_WC wc;
    LONG n;
    do {
        n = 1;
        weft_iba_poll_flat(&verbs, cq, &n, &wc);
    } while (n == 0);
    if (wc.Status != IbWcSuccess) {
        fprintf(stderr, "completion: status %d, reason %u\n", (int)wc.Status, wc.VendorError);
        exit(1);
    }
}

static void serve(void)
{
    struct connection c;
    union {
        IB_RECV_WR wr;
        char room[WEFT_IBA_RECV_WR_SIZE(1)];
    } u;
    IB_SGE sge = {buffer, sizeof(buffer), mr->LKey};
    memset(&u, 0, sizeof(u));
    u.wr.SgeCount = 1;
    u.wr.Sge[0] = &sge;
    cm_wait(qp->Qpn, &c);
    to_init();
    check(verbs.PostRecv(qp, &u.wr, NULL), "PostRecv");
    to_rts(&c);
    cm_accept();
    complete();
    printf("received: %s\n", buffer);
    cm_wait_disconnect();
}

static void client(const char *address)
{
    struct connection c;
    union {
        IB_SEND_WR wr;
        char room[WEFT_IBA_SEND_WR_SIZE(1)];
    } u;
    IB_SGE sge = {buffer, sizeof(buffer), mr->LKey};
    memset(&u, 0, sizeof(u));
    u.wr.Flags = IB_WR_FLAG_SIGNALED;
    u.wr.SgeCount = 1;
    u.wr.Sge[0] = &sge;
    cm_call(address, qp->Qpn, &c);
    to_init();
    to_rts(&c);
    cm_ready();
    snprintf(buffer, sizeof(buffer), "a line from async verbs");
    check(verbs.PostSend(qp, &u.wr, NULL), "PostSend");
    complete();
    cm_disconnect();
    printf("disconnected\n");
}

static void close_all(void)
{
    verbs.DestroyQp(qp, NULL, call_irp(&call));
    call_wait(&call, "DestroyQp");
    verbs.DeregMr(mr, call_irp(&call));
    IoFreeMdl((PMDL)call_wait(&call, "DeregMr"));
    verbs.DestroyCq(cq, NULL, call_irp(&call));
    call_wait(&call, "DestroyCq");
    verbs.DestroyPd(pd, NULL, call_irp(&call));
    call_wait(&call, "DestroyPd");
    verbs.CloseCa(ca, NULL, call_irp(&call));
    call_wait(&call, "CloseCa");
    verbs.InterfaceDereference(verbs.Context);
}

int main(int argc, char **argv)
{
    call_init(&call);
    open_all();
    if (argc > 1)
        client(argv[1]);
    else
        serve();
    close_all();
    call_free(&call);
    return 0;
}
