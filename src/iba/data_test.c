// SPDX-License-Identifier: BSD-2-Clause
// Data through the verbs: two queue pairs in one process, every operation, and what the completions
// say about it.
#include "iba/rig.h"

#include <stdlib.h>
#include <string.h>

static struct rig rig;
static struct rig_set set;
static IB_QP *a, *b;
static IB_CQ *bcq; // of b's receives and sends
static char *mem;  // eight pages
static IB_MR *mr;

#define ALL (IB_AC_RDMA_READ | IB_AC_RDMA_WRITE | IB_AC_ATOMIC | IB_AC_LOCAL_WRITE | IB_AC_MW_BIND)

static IB_CQ *make_cq(void)
{
    struct rig_call c;
    PIRP irp = rig_begin(&rig, &c);
    return (IB_CQ *)rig_ok(&rig, &c, rig.v->CreateCq(set.ca, 64, NULL, NULL, NULL, NULL, irp));
}

static IB_QP *make_qp(IB_QP_TYPE type, IB_CQ *cq, IB_SRQ *srq)
{
    struct rig_set s = set;
    s.cq = cq;
    IB_QP *qp = rig_qp(&rig, &s, type, srq);
    rig_to_init(&rig, qp);
    return qp;
}

static void pair(IB_QP_TYPE type, IB_SRQ *srq)
{
    a = make_qp(type, set.cq, NULL);
    b = make_qp(type, bcq, srq);
    rig_connect(&rig, a, b->Qpn);
    rig_connect(&rig, b, a->Qpn);
}

static void unpair(void)
{
    rig_destroy_qp(&rig, a);
    rig_destroy_qp(&rig, b);
}

static int setup(void **state)
{
    rig_open(&rig);
    rig_make(&rig, &set);
    bcq = make_cq();
    mem = aligned_alloc(PAGE_SIZE, 8 * PAGE_SIZE);
    memset(mem, 0, 8 * PAGE_SIZE);
    mr = rig_reg(&rig, set.pd, mem, 8 * PAGE_SIZE, ALL);
    return 0;
}

static int teardown(void **state)
{
    struct rig_call c;
    rig.mode = RIG_PASSIVE;
    rig_dereg(&rig, mr);
    PIRP irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.v->DestroyCq(bcq, NULL, irp));
    rig_unmake(&rig, &set);
    rig_close(&rig);
    free(mem);
    return 0;
}

// ---- requests -----------------------------------------------------------------------------------

struct send {
    IB_SGE sge[3];
    union {
        IB_SEND_WR wr;
        char room[WEFT_IBA_SEND_WR_SIZE(3)];
    };
};

struct recv {
    IB_SGE sge;
    union {
        IB_RECV_WR wr;
        char room[WEFT_IBA_RECV_WR_SIZE(1)];
    };
};

static IB_SEND_WR *request(struct send *s, IB_OP_TYPE type, void *addr, ULONG len)
{
    memset(s, 0, sizeof(*s));
    s->wr.Type = type;
    s->wr.WrId = 0x1000 + type;
    s->wr.Flags = IB_WR_FLAG_SIGNALED;
    s->wr.SgeCount = 1;
    s->sge[0] = (IB_SGE){addr, len, mr->LKey};
    weft_iba_chain_sge(s->wr.Sge, s->sge, 1);
    return &s->wr;
}

static IB_RECV_WR *receive(struct recv *r, void *addr, ULONG len)
{
    memset(r, 0, sizeof(*r));
    r->wr.WrId = 0x2000;
    r->wr.SgeCount = 1;
    r->sge = (IB_SGE){addr, len, mr->LKey};
    weft_iba_chain_sge(r->wr.Sge, &r->sge, 1);
    return &r->wr;
}

static void post(IB_QP *qp, IB_SEND_WR *wr)
{
    assert_int_equal(rig.v->PostSend(qp, wr, NULL), STATUS_SUCCESS);
}

static void post_recv(IB_QP *qp, void *addr, ULONG len)
{
    struct recv r;
    assert_int_equal(rig.v->PostRecv(qp, receive(&r, addr, len), NULL), STATUS_SUCCESS);
}

static void expect(IB_CQ *cq, IB_QP *qp, IB_OP_TYPE type, IB_WC_STATUS status, IB_WC *wc)
{
    rig_poll(&rig, cq, wc);
    if (wc->Status != status)
        print_error("type %d: status %d, vendor error %u\n", (int)wc->Type, (int)wc->Status,
                    wc->VendorError);
    assert_int_equal(wc->Status, status);
    assert_int_equal(wc->Type, type);
    assert_ptr_equal(wc->hQp, qp);
}

// ---- connected ----------------------------------------------------------------------------------

static void send_and_check(ULONG flags)
{
    struct send s;
    IB_WC wc;
    memset(mem + PAGE_SIZE, 0, 64);
    strcpy(mem, "forty-two bytes");
    post_recv(b, mem + PAGE_SIZE, 64);
    IB_SEND_WR *wr = request(&s, IbSend, mem, 16);
    wr->Flags |= flags;
    wr->ImmediateData = 0x12345678;
    post(a, wr);
    if (flags & IB_WR_FLAG_INLINE)
        memset(mem, 0, 16); // inline data was taken by then
    expect(set.cq, a, IbSend, IbWcSuccess, &wc);
    assert_int_equal(wc.WrId, 0x1000);
    expect(bcq, b, IbRecv, IbWcSuccess, &wc);
    assert_true(wc.Type & IB_WC_RECV);
    assert_int_equal(wc.WrId, 0x2000);
    assert_int_equal(wc.Length, 16);
    assert_string_equal(mem + PAGE_SIZE, "forty-two bytes");
    assert_int_equal(wc.Flags & IB_WC_FLAG_IMMEDIATE, flags & IB_WR_FLAG_IMMEDIATE);
    if (flags & IB_WR_FLAG_IMMEDIATE)
        assert_int_equal(wc.ImmediateData, 0x12345678);
}

static void test_sends_on_rc_and_uc(void **state)
{
    static const IB_QP_TYPE types[] = {IbQpTypeReliableConn, IbQpTypeUnreliableConn};
    for (int t = 0; t < 2; t++) {
        pair(types[t], NULL);
        send_and_check(0);
        send_and_check(IB_WR_FLAG_IMMEDIATE);
        send_and_check(IB_WR_FLAG_INLINE);
        send_and_check(IB_WR_FLAG_SOLICITED | IB_WR_FLAG_FENCE);
        unpair();
    }
}

static void test_rdma_write_with_and_without_immediate(void **state)
{
    struct send s;
    IB_WC wc;
    pair(IbQpTypeReliableConn, NULL);
    memset(mem, 'w', 5000);
    IB_SEND_WR *wr = request(&s, IbRdmaWrite, mem, 5000);
    wr->u.Rdma.Address = mem + 2 * PAGE_SIZE + 3;
    wr->u.Rdma.RKey = mr->RKey;
    post(a, wr);
    expect(set.cq, a, IbRdmaWrite, IbWcSuccess, &wc);
    assert_int_equal(mem[2 * PAGE_SIZE + 2], 0);
    assert_memory_equal(mem + 2 * PAGE_SIZE + 3, mem, 5000);
    post_recv(b, mem, 0);
    wr->Flags |= IB_WR_FLAG_IMMEDIATE;
    wr->ImmediateData = 7;
    post(a, wr);
    expect(set.cq, a, IbRdmaWrite, IbWcSuccess, &wc);
    expect(bcq, b, IbRecvRdmaWrite, IbWcSuccess, &wc);
    assert_int_equal(wc.ImmediateData, 7);
    assert_int_equal(wc.Length, 5000);
    unpair();
}

static void test_rdma_read_and_atomics(void **state)
{
    struct send s;
    IB_WC wc;
    UINT64 *here = (UINT64 *)mem, *there = (UINT64 *)(mem + PAGE_SIZE);
    pair(IbQpTypeReliableConn, NULL);
    memset(there, 'r', 64);
    IB_SEND_WR *wr = request(&s, IbRdmaRead, mem, 64);
    wr->u.Rdma.Address = there;
    wr->u.Rdma.RKey = mr->RKey;
    post(a, wr);
    expect(set.cq, a, IbRdmaRead, IbWcSuccess, &wc);
    assert_memory_equal(mem, there, 64);

    *there = 40;
    wr = request(&s, IbInterlockedAdd, mem, 8);
    wr->u.ExchangeAdd.Address = there;
    wr->u.ExchangeAdd.Value = 2;
    wr->u.ExchangeAdd.RKey = mr->RKey;
    post(a, wr);
    expect(set.cq, a, IbInterlockedAdd, IbWcSuccess, &wc);
    assert_int_equal(*here, 40); // the old value, in host order
    assert_int_equal(*there, 42);

    wr = request(&s, IbInterlockedCompareExchange, mem, 8);
    wr->u.CompareExchange.Address = there;
    wr->u.CompareExchange.Comparand = 42;
    wr->u.CompareExchange.Exchange = 99;
    wr->u.CompareExchange.RKey = mr->RKey;
    post(a, wr);
    expect(set.cq, a, IbInterlockedCompareExchange, IbWcSuccess, &wc);
    assert_int_equal(*here, 42);
    assert_int_equal(*there, 99);
    post(a, wr); // no longer equal
    expect(set.cq, a, IbInterlockedCompareExchange, IbWcSuccess, &wc);
    assert_int_equal(*here, 99);
    assert_int_equal(*there, 99);

    wr->u.CompareExchange.Address = (char *)there + 4;
    post(a, wr);
    expect(set.cq, a, IbInterlockedCompareExchange, IbWcRemInvalidReqErr, &wc);
    unpair();
}

static void test_list_longer_than_a_batch_arrives_in_order(void **state)
{
    enum { N = 40 };
    struct send s[N];
    IB_SEND_WR *failed = NULL;
    IB_WC wc;
    struct rig_call c;
    IB_QP_CREATE create = {.SqDepth = N, .RqDepth = N, .SqSge = 2, .RqSge = 1};
    create.pSendCq = set.cq;
    create.pRecvCq = bcq;
    PIRP irp = rig_begin(&rig, &c);
    a = (IB_QP *)rig_ok(&rig, &c, rig.v->CreateQp(set.pd, &create, NULL, NULL, NULL, irp));
    irp = rig_begin(&rig, &c);
    b = (IB_QP *)rig_ok(&rig, &c, rig.v->CreateQp(set.pd, &create, NULL, NULL, NULL, irp));
    rig_to_init(&rig, a);
    rig_to_init(&rig, b);
    rig_connect(&rig, a, b->Qpn);
    rig_connect(&rig, b, a->Qpn);
    for (int i = 0; i < N; i++) {
        post_recv(b, mem + PAGE_SIZE + 8 * i, 8);
        memset(mem + 8 * i, i, 8);
        request(&s[i], IbSend, mem + 8 * i, 3);
        s[i].sge[1] = (IB_SGE){mem + 8 * i + 3, 5, mr->LKey};
        s[i].wr.SgeCount = 2;
        weft_iba_chain_sge(s[i].wr.Sge, s[i].sge, 2);
        s[i].wr.WrId = (UINT64)i;
        if (i)
            s[i - 1].wr.pNext = &s[i].wr;
    }
    assert_int_equal(rig.v->PostSend(a, &s[0].wr, &failed), STATUS_SUCCESS);
    assert_null(failed);
    for (UINT64 i = 0; i < N; i++) {
        rig_poll(&rig, set.cq, &wc);
        assert_int_equal(wc.WrId, i);
        rig_poll(&rig, bcq, &wc);
        assert_int_equal(wc.Length, 8);
    }
    assert_memory_equal(mem, mem + PAGE_SIZE, 8 * N);
    unpair();
}

static void test_failures_have_the_rfcs_status(void **state)
{
    static const struct {
        IB_OP_TYPE type;
        ULONG rkey_xor, lkey_xor;
        IB_WC_STATUS status;
    } rows[] = {
        {IbRdmaWrite, 1, 0, IbWcRemAccessErr},
        {IbRdmaRead, 1, 0, IbWcRemAccessErr},
        {IbRdmaWrite, 0, 1, IbWcLocalProtectionErr},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct send s;
        IB_WC wc;
        pair(IbQpTypeReliableConn, NULL);
        IB_SEND_WR *wr = request(&s, rows[i].type, mem, 64);
        wr->u.Rdma.Address = mem + PAGE_SIZE;
        wr->u.Rdma.RKey = mr->RKey ^ rows[i].rkey_xor;
        s.sge[0].LKey ^= rows[i].lkey_xor;
        post_recv(a, mem, 64);
        post(a, wr);
        expect(set.cq, a, rows[i].type, rows[i].status, &wc);
        assert_true(wc.VendorError); // a reason number
        expect(set.cq, a, IbRecv, IbWcWrFlushedErr, &wc);
        struct send more; // a QP in the error state takes requests and flushes them
        post(a, request(&more, IbSend, mem, 8));
        expect(set.cq, a, IbSend, IbWcWrFlushedErr, &wc);
        unpair();
    }
}

static void test_receive_too_short_fails_both_sides(void **state)
{
    struct send s;
    IB_WC wc;
    pair(IbQpTypeReliableConn, NULL);
    post_recv(b, mem + PAGE_SIZE, 10);
    post(a, request(&s, IbSend, mem, 11));
    expect(bcq, b, IbRecv, IbWcLocalLenErr, &wc);
    expect(set.cq, a, IbSend, IbWcRemInvalidReqErr, &wc);
    unpair();
}

// ---- datagrams ----------------------------------------------------------------------------------

static void test_datagram_carries_grh_and_source(void **state)
{
    struct send s;
    IB_AH_ATTR address;
    IB_AH *ah;
    IB_WC wc;
    pair(IbQpTypeUnreliableDgrm, NULL);
    rig_address(&rig, &address);
    assert_int_equal(rig.v->CreateAh(set.pd, &address, &ah), 0);
    strcpy(mem, "datagram");
    post_recv(b, mem + PAGE_SIZE, 100);
    IB_SEND_WR *wr = request(&s, IbSend, mem, 9);
    wr->u.Ud.pAh = ah;
    wr->u.Ud.RemoteQpn = b->Qpn;
    wr->u.Ud.RemoteQkey = 0x11111111;
    post(a, wr);
    expect(set.cq, a, IbSend, IbWcSuccess, &wc);
    expect(bcq, b, IbRecv, IbWcSuccess, &wc);
    assert_int_equal(wc.Length, 49);
    assert_true(wc.Flags & IB_WC_FLAG_GRH);
    assert_int_equal(wc.Ud.RemoteQp, a->Qpn);
    assert_string_equal(mem + PAGE_SIZE + 40, "datagram");
    assert_int_equal(rig.v->ModifyAh(ah, &address), STATUS_SUCCESS);
    post_recv(b, mem + PAGE_SIZE, 100);
    post(a, wr);
    expect(bcq, b, IbRecv, IbWcSuccess, &wc);
    expect(set.cq, a, IbSend, IbWcSuccess, &wc);
    rig.v->DestroyAh(ah);
    unpair();
}

static void test_multicast_reaches_members(void **state)
{
    struct send s;
    struct rig_call c;
    IB_AH_ATTR address;
    IB_AH *ah;
    IB_WC wc;
    IB_GID group = {.Raw = {0xff, 0x0e, [15] = 77}};
    pair(IbQpTypeUnreliableDgrm, NULL);
    PIRP irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.t.AttachMcast(b, &group, irp));
    rig_address(&rig, &address);
    address.Grh.DGid = group;
    assert_int_equal(rig.v->CreateAh(set.pd, &address, &ah), 0);
    post_recv(b, mem + PAGE_SIZE, 100);
    IB_SEND_WR *wr = request(&s, IbSend, mem, 9);
    wr->u.Ud.pAh = ah;
    wr->u.Ud.RemoteQpn = 0xffffff;
    wr->u.Ud.RemoteQkey = 0x11111111;
    post(a, wr);
    expect(set.cq, a, IbSend, IbWcSuccess, &wc);
    expect(bcq, b, IbRecv, IbWcSuccess, &wc);
    assert_int_equal(wc.Length, 49);
    irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.t.DetachMcast(b, &group, irp));
    rig.v->DestroyAh(ah);
    unpair();
}

// ---- shared receive queues ----------------------------------------------------------------------

static void test_srq_feeds_a_qp_and_raises_its_limit_event(void **state)
{
    struct rig_call c, limit;
    struct recv r;
    struct send s;
    IB_WC wc;
    IB_SRQ_CREATE create = {.Depth = 8, .RqSge = 1};
    IB_SRQ_ATTR attr = {.Limit = 1};
    PIRP irp = rig_begin(&rig, &c);
    IB_SRQ *srq =
        (IB_SRQ *)rig_ok(&rig, &c, rig.t.CreateSrq(set.pd, &create, NULL, NULL, NULL, irp));
    pair(IbQpTypeReliableConn, srq);
    assert_ptr_equal(b->pSrq, srq);
    assert_int_equal(rig.t.PostSrqRecv(srq, receive(&r, mem + PAGE_SIZE, 64), NULL), 0);
    irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.t.ModifySrq(srq, IB_MOD_SRQ_LIMIT, &attr, NULL, irp));
    NTSTATUS w = rig.t.GetSrqAsyncEvent(srq, rig_irp(&limit));
    assert_int_equal(w, STATUS_PENDING);
    post(a, request(&s, IbSend, mem, 8));
    expect(bcq, b, IbRecv, IbWcSuccess, &wc);
    assert_int_equal(wc.WrId, 0x2000);
    expect(set.cq, a, IbSend, IbWcSuccess, &wc);
    assert_int_equal(rig_end(&limit, w), STATUS_SUCCESS);
    assert_int_equal(limit.info, IbSrqLimitReached);
    struct rig_call d;
    NTSTATUS destroy = rig.t.DestroySrq(srq, NULL, rig_irp(&d));
    assert_int_equal(destroy, STATUS_PENDING); // b uses it
    unpair();
    assert_int_equal(rig_end(&d, destroy), STATUS_SUCCESS);
}

// ---- regions and windows ------------------------------------------------------------------------

static void write_to(void *addr, ULONG rkey, IB_WC_STATUS status)
{
    struct send s;
    IB_WC wc;
    memset(mem, 'x', 16);
    IB_SEND_WR *wr = request(&s, IbRdmaWrite, mem, 16);
    wr->u.Rdma.Address = addr;
    wr->u.Rdma.RKey = rkey;
    post(a, wr);
    expect(set.cq, a, IbRdmaWrite, status, &wc);
}

static void test_sg_region_is_addressed_from_0(void **state)
{
    struct rig_call c;
    SCATTER_GATHER_LIST *sg = calloc(1, sizeof(*sg) + 2 * sizeof(sg->Elements[0]));
    sg->NumberOfElements = 2;
    sg->Elements[0].Address = MmGetPhysicalAddress(mem + 2 * PAGE_SIZE + 100);
    sg->Elements[0].Length = PAGE_SIZE - 100;
    sg->Elements[1].Address = MmGetPhysicalAddress(mem + 3 * PAGE_SIZE);
    sg->Elements[1].Length = 100;
    pair(IbQpTypeReliableConn, NULL);
    PIRP irp = rig_begin(&rig, &c);
    IB_MR *region = (IB_MR *)rig_ok(&rig, &c, rig.v->RegScatterGather(set.pd, sg, ALL, irp));
    free(sg); // no longer needed
    write_to((void *)(ULONG_PTR)(PAGE_SIZE - 108), region->RKey, IbWcSuccess);
    assert_memory_equal(mem + 3 * PAGE_SIZE - 8, "xxxxxxxxxxxxxxxx", 16);
    write_to((void *)(ULONG_PTR)(PAGE_SIZE - 15), region->RKey, IbWcRemAccessErr); // past the end
    rig_dereg(&rig, region);
    unpair();
}

// Every second page, in reverse order, with ends inside a page: RDMA both ways, a send from it and
// a receive into it, whole and across the seams.
static void test_sg_region_of_scattered_pages_is_one_range(void **state)
{
    enum { N = 3, LEN = 100 + PAGE_SIZE + 1000 };
    struct rig_call c;
    struct send s;
    struct recv r;
    IB_WC wc;
    static char flat[LEN], back[LEN];
    char *start[N] = {mem + 7 * PAGE_SIZE - 100, mem + 4 * PAGE_SIZE, mem + PAGE_SIZE};
    ULONG len[N] = {100, PAGE_SIZE, 1000};
    SCATTER_GATHER_LIST *sg = calloc(1, sizeof(*sg) + N * sizeof(sg->Elements[0]));
    for (int i = 0; i < N; i++) {
        sg->Elements[i].Address = MmGetPhysicalAddress(start[i]);
        sg->Elements[i].Length = len[i];
    }
    sg->NumberOfElements = N;
    pair(IbQpTypeReliableConn, NULL);
    PIRP irp = rig_begin(&rig, &c);
    IB_MR *region = (IB_MR *)rig_ok(&rig, &c, rig.v->RegScatterGather(set.pd, sg, ALL, irp));
    IB_MR *plain = rig_reg(&rig, set.pd, flat, LEN, ALL),
          *other = rig_reg(&rig, set.pd, back, LEN, ALL);
    free(sg);
    for (int i = 0; i < LEN; i++)
        flat[i] = (char)(i * 7 + i / 256);

    IB_SEND_WR *wr = request(&s, IbRdmaWrite, flat, LEN);
    s.sge[0].LKey = plain->LKey;
    wr->u.Rdma.Address = NULL;
    wr->u.Rdma.RKey = region->RKey;
    post(a, wr);
    expect(set.cq, a, IbRdmaWrite, IbWcSuccess, &wc);
    for (int i = 0, at = 0; i < N; at += (int)len[i++])
        assert_memory_equal(start[i], flat + at, len[i]);

    wr = request(&s, IbRdmaRead, back + 50, LEN - 60);
    s.sge[0].LKey = other->LKey;
    wr->u.Rdma.Address = (void *)(ULONG_PTR)50;
    wr->u.Rdma.RKey = region->RKey;
    post(a, wr);
    expect(set.cq, a, IbRdmaRead, IbWcSuccess, &wc);
    assert_memory_equal(back + 50, flat + 50, LEN - 60);

    memset(back, 0, LEN);
    receive(&r, back, LEN);
    r.sge.LKey = other->LKey;
    assert_int_equal(rig.v->PostRecv(b, &r.wr, NULL), STATUS_SUCCESS);
    wr = request(&s, IbSend, NULL, LEN); // address 0 of the region
    s.sge[0].LKey = region->LKey;
    post(a, wr);
    expect(set.cq, a, IbSend, IbWcSuccess, &wc);
    expect(bcq, b, IbRecv, IbWcSuccess, &wc);
    assert_memory_equal(back, flat, LEN);

    memset(flat, 'z', LEN);
    receive(&r, NULL, LEN);
    r.sge.LKey = region->LKey;
    assert_int_equal(rig.v->PostRecv(b, &r.wr, NULL), STATUS_SUCCESS);
    wr = request(&s, IbSend, flat, LEN);
    s.sge[0].LKey = plain->LKey;
    post(a, wr);
    expect(set.cq, a, IbSend, IbWcSuccess, &wc);
    expect(bcq, b, IbRecv, IbWcSuccess, &wc);
    for (int i = 0; i < N; i++)
        assert_memory_equal(start[i], flat, len[i] < 100 ? len[i] : 100);

    UINT64 *old = (UINT64 *)mem;
    wr = request(&s, IbInterlockedAdd, old, 8);
    wr->u.ExchangeAdd.Address = (void *)(ULONG_PTR)104; // in the second piece
    wr->u.ExchangeAdd.Value = 1;
    wr->u.ExchangeAdd.RKey = region->RKey;
    post(a, wr);
    expect(set.cq, a, IbInterlockedAdd, IbWcRemInvalidReqErr, &wc); // 4 in its page: not aligned
    rig_dereg(&rig, region);
    rig_dereg(&rig, plain);
    rig_dereg(&rig, other);
    unpair();
}

// More pieces than one list of addresses holds: every second page of eight megabytes.
static void test_sg_region_of_many_pages_moves_in_parts(void **state)
{
    enum { PAGES = 2000 };
    struct rig_call c;
    struct send s;
    IB_WC wc;
    const ULONG len = PAGES * PAGE_SIZE;
    char *big = aligned_alloc(PAGE_SIZE, 2 * (SIZE_T)len), *flat = malloc(len);
    SCATTER_GATHER_LIST *sg = calloc(1, sizeof(*sg) + PAGES * sizeof(sg->Elements[0]));
    memset(big, 0, 2 * (SIZE_T)len);
    sg->NumberOfElements = PAGES;
    for (ULONG i = 0; i < PAGES; i++) {
        sg->Elements[i].Address = MmGetPhysicalAddress(big + 2 * i * PAGE_SIZE);
        sg->Elements[i].Length = PAGE_SIZE;
        memset(flat + i * PAGE_SIZE, (int)i, PAGE_SIZE);
    }
    pair(IbQpTypeReliableConn, NULL);
    PIRP irp = rig_begin(&rig, &c);
    IB_MR *region = (IB_MR *)rig_ok(&rig, &c, rig.v->RegScatterGather(set.pd, sg, ALL, irp));
    irp = rig_begin(&rig, &c);
    IB_MR *all = (IB_MR *)rig_ok(&rig, &c, rig.v->GetDmaMr(set.pd, ALL, irp));
    IB_SEND_WR *wr = request(&s, IbRdmaWrite, flat, len);
    s.sge[0].LKey = all->LKey;
    wr->u.Rdma.RKey = region->RKey;
    post(a, wr);
    expect(set.cq, a, IbRdmaWrite, IbWcSuccess, &wc);
    for (ULONG i = 0; i < PAGES; i++) {
        assert_memory_equal(big + 2 * i * PAGE_SIZE, flat + i * PAGE_SIZE, PAGE_SIZE);
        assert_int_equal(big[(2 * i + 1) * PAGE_SIZE], 0);
    }
    memset(flat, 0xff, len);
    wr = request(&s, IbRdmaRead, flat, len);
    s.sge[0].LKey = all->LKey;
    wr->u.Rdma.RKey = region->RKey;
    post(a, wr);
    expect(set.cq, a, IbRdmaRead, IbWcSuccess, &wc);
    memset(big, 0, 2 * (SIZE_T)len);
    wr = request(&s, IbRdmaRead, NULL, len); // and into the pieces
    s.sge[0].LKey = region->LKey;
    wr->u.Rdma.Address = flat;
    wr->u.Rdma.RKey = all->RKey;
    post(a, wr);
    expect(set.cq, a, IbRdmaRead, IbWcSuccess, &wc);
    wr = request(&s, IbRdmaWrite, NULL, len); // and from them
    s.sge[0].LKey = region->LKey;
    wr->u.Rdma.Address = flat;
    wr->u.Rdma.RKey = all->RKey;
    post(a, wr);
    expect(set.cq, a, IbRdmaWrite, IbWcSuccess, &wc);
    for (ULONG i = 0; i < PAGES; i++) {
        assert_int_equal((UCHAR)flat[i * PAGE_SIZE + 5], (UCHAR)i);
        assert_memory_equal(big + 2 * i * PAGE_SIZE, flat + i * PAGE_SIZE, PAGE_SIZE);
    }
    rig_dereg(&rig, region);
    rig_dereg(&rig, all);
    unpair();
    free(sg);
    free(big);
    free(flat);
}

static void test_dma_region_reaches_any_memory(void **state)
{
    struct rig_call c;
    static char somewhere[16];
    pair(IbQpTypeReliableConn, NULL);
    PIRP irp = rig_begin(&rig, &c);
    IB_MR *all = (IB_MR *)rig_ok(&rig, &c, rig.v->GetDmaMr(set.pd, ALL, irp));
    write_to(somewhere, all->RKey, IbWcSuccess);
    assert_memory_equal(somewhere, "xxxxxxxxxxxxxxxx", 16);
    rig_dereg(&rig, all);
    unpair();
}

static void bind(IB_MW *mw, void *region, void *addr, ULONG len, ULONG access)
{
    IB_BIND_WR w = {.WrId = 5,
                    .pMr = region,
                    .Flags = IB_WR_FLAG_SIGNALED,
                    .AccessMask = access,
                    .Addr = addr,
                    .Length = len};
    IB_WC wc;
    UINT32 before = mw->RKey;
    assert_int_equal(rig.v->BindMw(b, mw, &w), STATUS_SUCCESS);
    assert_int_not_equal(mw->RKey, before);
    expect(bcq, b, IbBindMw, IbWcSuccess, &wc);
    assert_int_equal(wc.WrId, 5);
}

static void test_window_grants_what_it_was_bound_for(void **state)
{
    struct rig_call c;
    pair(IbQpTypeReliableConn, NULL);
    PIRP irp = rig_begin(&rig, &c);
    IB_MW *mw = (IB_MW *)rig_ok(&rig, &c, rig.v->CreateMw(set.pd, NULL, irp));
    bind(mw, mr, mem + PAGE_SIZE, 64, IB_AC_RDMA_WRITE);
    assert_int_equal(mr->nRef, 1);
    UINT32 first = mw->RKey;
    write_to(mem + PAGE_SIZE, first, IbWcSuccess);
    IB_MR_HANDLE handle = mr; // the RFC's type of pMr is the address of a handle
    bind(mw, &handle, mem + 2 * PAGE_SIZE, 64, IB_AC_RDMA_WRITE);
    write_to(mem + 2 * PAGE_SIZE, mw->RKey, IbWcSuccess);
    bind(mw, mr, mem, 0, 0); // unbound
    assert_int_equal(mr->nRef, 0);
    write_to(mem + 2 * PAGE_SIZE, mw->RKey, IbWcRemAccessErr);
    unpair();
    irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.v->DestroyMw(mw, irp));
}

// A window over the seam of two pieces.
static void test_window_on_a_scattered_region(void **state)
{
    struct rig_call c;
    SCATTER_GATHER_LIST *sg = calloc(1, sizeof(*sg) + 2 * sizeof(sg->Elements[0]));
    sg->NumberOfElements = 2;
    sg->Elements[0].Address = MmGetPhysicalAddress(mem + 6 * PAGE_SIZE);
    sg->Elements[1].Address = MmGetPhysicalAddress(mem + 3 * PAGE_SIZE);
    sg->Elements[0].Length = sg->Elements[1].Length = PAGE_SIZE;
    pair(IbQpTypeReliableConn, NULL);
    PIRP irp = rig_begin(&rig, &c);
    IB_MR *region = (IB_MR *)rig_ok(&rig, &c, rig.v->RegScatterGather(set.pd, sg, ALL, irp));
    irp = rig_begin(&rig, &c);
    IB_MW *mw = (IB_MW *)rig_ok(&rig, &c, rig.v->CreateMw(set.pd, NULL, irp));
    char *seam = (char *)(ULONG_PTR)(PAGE_SIZE - 8);
    bind(mw, region, seam, 16, IB_AC_RDMA_WRITE);
    write_to(seam, mw->RKey, IbWcSuccess);
    assert_memory_equal(mem + 7 * PAGE_SIZE - 8, "xxxxxxxx", 8);
    assert_memory_equal(mem + 3 * PAGE_SIZE, "xxxxxxxx", 8);
    assert_int_equal(mem[3 * PAGE_SIZE + 8], 0);
    write_to(seam + 1, mw->RKey, IbWcRemAccessErr);
    unpair();
    irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.v->DestroyMw(mw, irp));
    rig_dereg(&rig, region);
    free(sg);
}

static void test_dereg_stays_pending_while_a_window_is_bound(void **state)
{
    for (int how = 0; how < 2; how++) {
        struct rig_call c, d;
        pair(IbQpTypeReliableConn, NULL);
        PIRP irp = rig_begin(&rig, &c);
        IB_MW *mw = (IB_MW *)rig_ok(&rig, &c, rig.v->CreateMw(set.pd, NULL, irp));
        IB_MR *region = rig_reg(&rig, set.pd, mem, PAGE_SIZE, ALL);
        MDL *list = region->pMdlList;
        bind(mw, region, mem, 64, IB_AC_RDMA_READ);
        NTSTATUS r = rig.v->DeregMr(region, rig_irp(&d));
        assert_int_equal(r, STATUS_PENDING);
        assert_int_equal(d.completions, 0);
        if (how == 0) { // an unbind without a completion of its own
            IB_BIND_WR w = {.Length = 0};
            assert_int_equal(rig.v->BindMw(b, mw, &w), STATUS_SUCCESS);
        } else {
            irp = rig_begin(&rig, &c);
            rig_ok(&rig, &c, rig.v->DestroyMw(mw, irp));
        }
        assert_int_equal(rig_end(&d, r), STATUS_SUCCESS);
        assert_int_equal(d.info, (ULONG_PTR)list);
        IoFreeMdl(list);
        if (how == 0) {
            irp = rig_begin(&rig, &c);
            rig_ok(&rig, &c, rig.v->DestroyMw(mw, irp));
        }
        unpair();
    }
}

static void read_with(IB_MR *region, IB_WC_STATUS status)
{
    struct send s;
    IB_WC wc;
    IB_SEND_WR *wr = request(&s, IbRdmaRead, mem, 16);
    wr->u.Rdma.Address = mem + PAGE_SIZE;
    wr->u.Rdma.RKey = region->RKey;
    post(a, wr);
    expect(set.cq, a, IbRdmaRead, status, &wc);
}

// Decision 1: READ has a bit of its own, and clients with the literal 0 always have it.
static void test_read_needs_its_bit_unless_the_client_is_literal(void **state)
{
    pair(IbQpTypeReliableConn, NULL);
    IB_MR *region = rig_reg(&rig, set.pd, mem + PAGE_SIZE, 64, IB_AC_LOCAL_WRITE);
    read_with(region, IbWcRemAccessErr);
    rig_dereg(&rig, region);
    unpair();
    wf_iba_ca_of(set.ca)->ifc = wf_iba_ifc(2, true);
    pair(IbQpTypeReliableConn, NULL);
    region = rig_reg(&rig, set.pd, mem + PAGE_SIZE, 64, 0);
    read_with(region, IbWcSuccess);
    rig_dereg(&rig, region);
    unpair();
}

// ---- completion events --------------------------------------------------------------------------

static void test_completion_event_needs_arming(void **state)
{
    struct rig_call e;
    struct send s;
    IB_WC wc;
    LONG n;
    pair(IbQpTypeReliableConn, NULL);
    NTSTATUS w = rig.v->GetCqCompEvent(bcq, rig_irp(&e));
    post_recv(b, mem + PAGE_SIZE, 64);
    post(a, request(&s, IbSend, mem, 8));
    expect(set.cq, a, IbSend, IbWcSuccess, &wc);
    assert_int_equal(rig.v->PeekCq(bcq, &n), STATUS_SUCCESS);
    assert_int_equal(n, 1);
    assert_int_equal(e.completions, 0); // not armed; and what is there already raises no event
    assert_int_equal(rig.v->RearmCq(bcq, FALSE), STATUS_SUCCESS);
    assert_int_equal(e.completions, 0);
    post_recv(b, mem + PAGE_SIZE, 64);
    post(a, request(&s, IbSend, mem, 8));
    assert_int_equal(rig_end(&e, w), STATUS_SUCCESS);
    expect(bcq, b, IbRecv, IbWcSuccess, &wc);
    expect(bcq, b, IbRecv, IbWcSuccess, &wc);
    unpair();
}

static void test_solicited_arming_waits_for_a_solicited_message(void **state)
{
    struct rig_call e;
    struct send s;
    IB_WC wc;
    pair(IbQpTypeReliableConn, NULL);
    NTSTATUS w = rig.v->GetCqCompEvent(bcq, rig_irp(&e));
    assert_int_equal(rig.v->RearmCq(bcq, TRUE), STATUS_SUCCESS);
    for (int i = 0; i < 2; i++) {
        post_recv(b, mem + PAGE_SIZE, 64);
        IB_SEND_WR *wr = request(&s, IbSend, mem, 8);
        if (i)
            wr->Flags |= IB_WR_FLAG_SOLICITED;
        else
            assert_int_equal(e.completions, 0);
        post(a, wr);
        expect(set.cq, a, IbSend, IbWcSuccess, &wc);
        expect(bcq, b, IbRecv, IbWcSuccess, &wc);
    }
    assert_int_equal(rig_end(&e, w), STATUS_SUCCESS);
    unpair();
}

static void test_rearm_n_waits_for_n_entries(void **state)
{
    struct rig_call e;
    struct send s;
    IB_WC wc;
    pair(IbQpTypeReliableConn, NULL);
    for (int round = 0; round < 2; round++) {
        NTSTATUS w = rig.v->GetCqCompEvent(bcq, rig_irp(&e));
        assert_int_equal(rig.v->RearmNCq(bcq, 3), STATUS_SUCCESS);
        for (int i = 0; i < 3; i++) {
            wf_hca_progress(rig.hca);
            assert_int_equal(e.completions, 0);
            post_recv(b, mem + PAGE_SIZE, 64);
            post(a, request(&s, IbSend, mem, 8));
            expect(set.cq, a, IbSend, IbWcSuccess, &wc);
            expect(bcq, b, IbRecv, IbWcSuccess, &wc);
        }
        assert_int_equal(rig_end(&e, w), STATUS_SUCCESS);
    }
    unpair();
}

// ---- drain --------------------------------------------------------------------------------------

static void test_sqd_raises_drained_when_asked(void **state)
{
    struct rig_call e;
    IB_QP_MODIFY m = {.ReqState = IbQpsSqd};
    pair(IbQpTypeReliableConn, NULL);
    NTSTATUS w = rig.v->GetQpAsyncEvent(a, rig_irp(&e));
    m.state.sqd.SqdEvent = TRUE;
    assert_int_equal(rig_modify(&rig, a, &m), STATUS_SUCCESS);
    assert_int_equal(rig_end(&e, w), STATUS_SUCCESS);
    assert_int_equal(e.info, IbAeSqDrained);
    unpair();
}

static void test_path_mtu_follows_the_knob(void **state)
{
    struct send s;
    IB_WC wc;
    weft_iba_set_path_mtu(IB_MTU_256);
    pair(IbQpTypeReliableConn, NULL);
    struct ibv_qp_attr attr;
    struct wf_qp_init init;
    wf_qp_query(wf_iba_qp_of(a)->qp, &attr, &init);
    assert_int_equal(attr.path_mtu, IBV_MTU_256);
    post_recv(b, mem + PAGE_SIZE, 4096);
    post(a, request(&s, IbSend, mem, 4096));
    expect(bcq, b, IbRecv, IbWcSuccess, &wc);
    expect(set.cq, a, IbSend, IbWcSuccess, &wc);
    unpair();
    weft_iba_set_path_mtu((IB_MTU)0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sends_on_rc_and_uc, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rdma_write_with_and_without_immediate, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_rdma_read_and_atomics, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list_longer_than_a_batch_arrives_in_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_failures_have_the_rfcs_status, setup, teardown),
        cmocka_unit_test_setup_teardown(test_receive_too_short_fails_both_sides, setup, teardown),
        cmocka_unit_test_setup_teardown(test_datagram_carries_grh_and_source, setup, teardown),
        cmocka_unit_test_setup_teardown(test_multicast_reaches_members, setup, teardown),
        cmocka_unit_test_setup_teardown(test_srq_feeds_a_qp_and_raises_its_limit_event, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_sg_region_is_addressed_from_0, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sg_region_of_scattered_pages_is_one_range, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_sg_region_of_many_pages_moves_in_parts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_dma_region_reaches_any_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_window_grants_what_it_was_bound_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_window_on_a_scattered_region, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dereg_stays_pending_while_a_window_is_bound, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_read_needs_its_bit_unless_the_client_is_literal, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_completion_event_needs_arming, setup, teardown),
        cmocka_unit_test_setup_teardown(test_solicited_arming_waits_for_a_solicited_message, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_rearm_n_waits_for_n_entries, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sqd_raises_drained_when_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_path_mtu_follows_the_knob, setup, teardown),
    };
    return cmocka_run_group_tests_name("iba_data", tests, NULL, NULL);
}
