// SPDX-License-Identifier: BSD-2-Clause
// A driver-style client in C++ that knows the RFC's headers and the driver kit's names only: the
// table by IRP_MN_QUERY_INTERFACE, IRPs that the I/O manager ends (UserIosb, UserEvent),
// completions polled through the declared array of pointers. The one thing from Weft is where the
// adapter's device is.
#include <initguid.h>
#include <ntddk.h>

#include <iba/ibverbs.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" PDEVICE_OBJECT weft_iba_device_object(VOID);

static IB_VERBS_INTERFACE_STANDARD ifc;
static IO_STATUS_BLOCK iosb;
static KEVENT event;

// An IRP that ends by itself.
static PIRP irp()
{
    PIRP p = IoAllocateIrp(1, FALSE);
    KeClearEvent(&event);
    p->RequestorMode = KernelMode;
    p->UserIosb = &iosb;
    p->UserEvent = &event;
    IoGetNextIrpStackLocation(p)->MajorFunction = IRP_MJ_INTERNAL_DEVICE_CONTROL;
    return p;
}

template <class T> static T *wait(const char *verb)
{
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    if (!NT_SUCCESS(iosb.Status)) {
        std::fprintf(stderr, "%s: 0x%08x\n", verb, (unsigned)iosb.Status);
        std::exit(1);
    }
    return reinterpret_cast<T *>(iosb.Information);
}

static void check(NTSTATUS status, const char *verb)
{
    if (NT_SUCCESS(status))
        return;
    std::fprintf(stderr, "%s: 0x%08x\n", verb, (unsigned)status);
    std::exit(1);
}

static void get_table()
{
    PIRP p = irp();
    PIO_STACK_LOCATION next = IoGetNextIrpStackLocation(p);
    next->MajorFunction = IRP_MJ_PNP;
    next->MinorFunction = IRP_MN_QUERY_INTERFACE;
    next->Parameters.QueryInterface.InterfaceType = &GUID_IB_VERBS_INTERFACE;
    next->Parameters.QueryInterface.Size = sizeof(ifc);
    next->Parameters.QueryInterface.Version = IB_VERBS_INTERFACE_VERSION;
    next->Parameters.QueryInterface.Interface = reinterpret_cast<PINTERFACE>(&ifc);
    IoCallDriver(weft_iba_device_object(), p);
    wait<void>("IRP_MN_QUERY_INTERFACE");
}

static IB_GID first_gid()
{
    static union {
        IB_PORT_ATTR attr;
        char room[4096];
    } port;
    ifc.QueryPort(ifc.Context, 1, sizeof(port), &port.attr, irp());
    wait<void>("QueryPort");
    return *reinterpret_cast<IB_GID *>(port.room + port.attr.GidTblOffset);
}

static void connect(IB_QP *qp, const IB_GID &gid)
{
    IB_QP_MODIFY m;
    std::memset(&m, 0, sizeof(m));
    m.ReqState = IbQpsInit;
    m.state.Init.PrimaryPort = 1;
    ifc.ModifyQp(qp, &m, NULL, irp());
    wait<void>("ModifyQp to Init");
    std::memset(&m, 0, sizeof(m));
    m.ReqState = IbQpsRtr;
    m.state.rtr.DestQp = qp->Qpn;
    m.state.rtr.PrimaryAh.PortNumber = 1;
    m.state.rtr.PrimaryAh.Flags = IB_AH_FLAG_GRH;
    m.state.rtr.PrimaryAh.Grh.SGid = m.state.rtr.PrimaryAh.Grh.DGid = gid;
    ifc.ModifyQp(qp, &m, NULL, irp());
    wait<void>("ModifyQp to Rtr");
    std::memset(&m, 0, sizeof(m));
    m.ReqState = IbQpsRts;
    m.state.rts.LocalAckTimeout = 14;
    ifc.ModifyQp(qp, &m, NULL, irp());
    wait<void>("ModifyQp to Rts");
}

// A request with its one pointer to an SGE behind it, as the headers declare it.
static void send(IB_QP *qp, IB_SGE *sge)
{
    IB_SEND_WR *wr = static_cast<IB_SEND_WR *>(
        ExAllocatePoolWithTag(NonPagedPool, sizeof(IB_SEND_WR) + sizeof(IB_SGE *), 0));
    std::memset(wr, 0, sizeof(*wr));
    wr->WrId = 1;
    wr->Type = IbSend;
    wr->Flags = IB_WR_FLAG_SIGNALED;
    wr->SgeCount = 1;
    wr->Sge[0] = sge;
    check(ifc.PostSend(qp, wr, NULL), "PostSend");
    ExFreePool(wr);
}

static void receive(IB_QP *qp, IB_SGE *sge)
{
    IB_RECV_WR *wr = static_cast<IB_RECV_WR *>(
        ExAllocatePoolWithTag(NonPagedPool, sizeof(IB_RECV_WR) + sizeof(IB_SGE *), 0));
    std::memset(wr, 0, sizeof(*wr));
    wr->WrId = 2;
    wr->SgeCount = 1;
    wr->Sge[0] = sge;
    check(ifc.PostRecv(qp, wr, NULL), "PostRecv");
    ExFreePool(wr);
}

static void poll_both(IB_CQ *cq)
{
    IB_WC one, two, *wc[] = {&one, &two};
    int seen = 0;
    while (seen < 2) {
        LONG n = 2;
        NTSTATUS status = ifc.PollCq(cq, &n, wc);
        if (status != STATUS_NO_MORE_ENTRIES)
            check(status, "PollCq");
        for (LONG i = 0; i < n; i++, seen++)
            if (wc[i]->Status != IbWcSuccess || (wc[i]->WrId == 2) != !!(wc[i]->Type & IB_WC_RECV))
                check(STATUS_UNSUCCESSFUL, "a completion");
    }
}

int main()
{
    static char from[64] = "in C++", to[64];
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    get_table();
    ifc.OpenCa(ifc.Context, NULL, NULL, NULL, irp());
    IB_CA *ca = wait<IB_CA>("OpenCa");
    IB_GID gid = first_gid();
    ifc.CreatePd(ca, NULL, irp());
    IB_PD *pd = wait<IB_PD>("CreatePd");
    ifc.CreateCq(ca, 8, NULL, NULL, NULL, NULL, irp());
    IB_CQ *cq = wait<IB_CQ>("CreateCq");
    IB_QP_CREATE create = {IbQpTypeReliableConn, 4, 4, 1, 1, 0, cq, cq, NULL, FALSE};
    ifc.CreateQp(pd, &create, NULL, NULL, NULL, irp());
    IB_QP *qp = wait<IB_QP>("CreateQp");
    ifc.GetDmaMr(pd, IB_AC_LOCAL_WRITE, irp());
    IB_MR *mr = wait<IB_MR>("GetDmaMr");
    connect(qp, gid);
    IB_SGE source = {from, sizeof(from), mr->LKey}, target = {to, sizeof(to), mr->LKey};
    receive(qp, &target);
    send(qp, &source);
    poll_both(cq);
    ifc.CreateMw(pd, NULL, irp());
    IB_MW *mw = wait<IB_MW>("CreateMw");
    ifc.DestroyMw(reinterpret_cast<IB_MR *>(mw), irp()); // as the RFC declares it
    wait<void>("DestroyMw");
    ifc.DestroyQp(qp, NULL, irp());
    wait<void>("DestroyQp");
    ifc.DeregMr(mr, irp());
    wait<void>("DeregMr");
    ifc.DestroyCq(cq, NULL, irp());
    wait<void>("DestroyCq");
    ifc.DestroyPd(pd, NULL, irp());
    wait<void>("DestroyPd");
    ifc.CloseCa(ca, NULL, irp());
    wait<void>("CloseCa");
    ifc.InterfaceDereference(ifc.Context);
    std::printf("%s\n", to);
    return 0;
}
