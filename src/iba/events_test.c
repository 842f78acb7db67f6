// SPDX-License-Identifier: BSD-2-Clause
// Events, cancelling, closing, and the end of objects. Engine events are injected where the engine
// would raise them: through the context's callback.
#include "iba/rig.h"

#include "engine/engine.h"

#include <pthread.h>
#include <string.h>

static struct rig rig;
static struct rig_set set;
static IB_QP *qp;
static IB_SRQ *srq;

static int setup(void **state)
{
    struct rig_call c;
    IB_SRQ_CREATE create = {.Depth = 8, .RqSge = 1};
    rig_open(&rig);
    rig_make(&rig, &set);
    qp = rig_qp(&rig, &set, IbQpTypeReliableConn, NULL);
    PIRP irp = rig_begin(&rig, &c);
    srq = (IB_SRQ *)rig_ok(&rig, &c, rig.t.CreateSrq(set.pd, &create, NULL, NULL, NULL, irp));
    return 0;
}

static int teardown(void **state)
{
    struct rig_call c;
    rig.mode = RIG_PASSIVE;
    PIRP irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.t.DestroySrq(srq, NULL, irp));
    rig_destroy_qp(&rig, qp);
    rig_unmake(&rig, &set);
    rig_close(&rig);
    return 0;
}

static void inject(enum ibv_event_type type)
{
    void *object = NULL;
    if (type == IBV_EVENT_CQ_ERR)
        object = wf_iba_cq_of(set.cq);
    else if (type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED)
        object = wf_iba_srq_of(srq);
    else if (type != IBV_EVENT_DEVICE_FATAL && type != IBV_EVENT_PORT_ERR &&
             type != IBV_EVENT_PORT_ACTIVE && type != IBV_EVENT_GID_CHANGE)
        object = wf_iba_qp_of(qp);
    wf_enter(rig.hca);
    wf_iba_ca_async(wf_iba_ca_of(set.ca), type, object, object ? 0 : 1);
    wf_exit(rig.hca);
}

// ---- the event verbs as a table -----------------------------------------------------------------

static NTSTATUS wait_fatal(PIRP irp)
{
    return rig.v->GetCaFatalEvent(set.ca, irp);
}

static NTSTATUS wait_port(PIRP irp)
{
    return rig.v->GetCaPortEvent(set.ca, 1, irp);
}

static NTSTATUS wait_comp(PIRP irp)
{
    return rig.v->GetCqCompEvent(set.cq, irp);
}

static NTSTATUS wait_cq(PIRP irp)
{
    return rig.v->GetCqAsyncEvent(set.cq, irp);
}

static NTSTATUS wait_qp(PIRP irp)
{
    return rig.v->GetQpAsyncEvent(qp, irp);
}

static NTSTATUS wait_srq(PIRP irp)
{
    return rig.t.GetSrqAsyncEvent(srq, irp);
}

static void raise_comp(void)
{
    struct wf_iba_cq *cq = wf_iba_cq_of(set.cq);
    wf_enter(rig.hca);
    wf_iba_raise(&cq->comp, 0);
    wf_exit(rig.hca);
}

static void raise_fatal(void)
{
    inject(IBV_EVENT_DEVICE_FATAL);
}

static void raise_port(void)
{
    inject(IBV_EVENT_PORT_ERR);
}

static void raise_cq(void)
{
    inject(IBV_EVENT_CQ_ERR);
}

static void raise_qp(void)
{
    inject(IBV_EVENT_QP_ACCESS_ERR);
}

static void raise_srq(void)
{
    inject(IBV_EVENT_SRQ_LIMIT_REACHED);
}

static const struct source {
    NTSTATUS (*wait)(PIRP irp);
    void (*raise)(void);
    ULONG_PTR info;
    bool many;  // several IRPs may wait
    bool fatal; // takes the device with it
} sources[] = {
    {wait_port, raise_port, IbAePortDown, true, false},
    {wait_comp, raise_comp, 0, false, false},
    {wait_cq, raise_cq, IbAeCqError, true, false},
    {wait_qp, raise_qp, IbAeWqAccessError, true, false},
    {wait_srq, raise_srq, IbSrqLimitReached, true, false},
    {wait_fatal, raise_fatal, 0, true, true},
};
#define SOURCES (sizeof(sources) / sizeof(sources[0]))

static void test_event_completes_the_oldest_waiting_irp(void **state)
{
    for (size_t i = 0; i < SOURCES; i++) {
        const struct source *s = &sources[i];
        struct rig_call a, b;
        NTSTATUS ra = s->wait(rig_irp(&a)), rb = STATUS_PENDING;
        assert_int_equal(ra, STATUS_PENDING);
        if (s->many)
            assert_int_equal(rb = s->wait(rig_irp(&b)), STATUS_PENDING);
        s->raise();
        assert_int_equal(rig_end(&a, ra), STATUS_SUCCESS);
        assert_int_equal(a.info, s->info);
        assert_int_equal(a.irql, DISPATCH_LEVEL);
        if (!s->many)
            continue;
        assert_int_equal(b.completions, 0);
        assert_true(IoCancelIrp(b.irp));
        assert_int_equal(rig_end(&b, rb), STATUS_CANCELLED);
        assert_int_equal(b.info, 0);
    }
}

static void test_event_without_a_taker_is_kept(void **state)
{
    for (size_t i = 0; i < SOURCES; i++) {
        const struct source *s = &sources[i];
        struct rig_call c;
        s->raise();
        NTSTATUS r = s->wait(rig_irp(&c));
        assert_int_equal(rig_end(&c, r), STATUS_SUCCESS);
        assert_int_equal(c.info, s->info);
        if (s->fatal) { // sticky
            r = s->wait(rig_irp(&c));
            assert_int_equal(rig_end(&c, r), STATUS_SUCCESS);
        }
    }
}

static void drain_engine_thread(void)
{
    struct rig_call c; // requests are run in order, so this comes after what was deferred
    rig.mode = RIG_PEND;
    IB_QP_ATTR attr;
    PIRP irp = rig_begin(&rig, &c);
    rig_done(&rig, &c, rig.v->QueryQp(qp, &attr, NULL, irp));
    rig.mode = RIG_PASSIVE;
    weft_iba_set_policy(WEFT_IBA_BY_IRQL);
}

static void test_events_are_kept_in_order_and_bounded(void **state)
{
    struct rig_call c;
    static const enum ibv_event_type types[] = {IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED,
                                                IBV_EVENT_QP_REQ_ERR};
    static const ULONG_PTR infos[] = {IbAeQpComm, IbAeSqDrained, IbAeWqReqError};
    for (int i = 0; i < WF_IBA_EVENTS + 10; i++)
        inject(types[i % 3]);
    drain_engine_thread();
    for (int i = 0; i < WF_IBA_EVENTS; i++) {
        NTSTATUS r = wait_qp(rig_irp(&c));
        assert_int_equal(rig_end(&c, r), STATUS_SUCCESS);
        assert_int_equal(c.info, infos[i % 3]);
    }
    NTSTATUS r = wait_qp(rig_irp(&c));
    assert_int_equal(r, STATUS_PENDING);
    IoCancelIrp(c.irp);
    assert_int_equal(rig_end(&c, r), STATUS_CANCELLED);
}

static void test_completion_events_latch_one(void **state)
{
    struct rig_call c;
    raise_comp();
    raise_comp();
    drain_engine_thread();
    NTSTATUS r = wait_comp(rig_irp(&c));
    assert_int_equal(rig_end(&c, r), STATUS_SUCCESS);
    r = wait_comp(rig_irp(&c));
    assert_int_equal(r, STATUS_PENDING);
    IoCancelIrp(c.irp);
    assert_int_equal(rig_end(&c, r), STATUS_CANCELLED);
}

static void test_second_completion_wait_cancels_the_first(void **state)
{
    struct rig_call a, b;
    NTSTATUS ra = wait_comp(rig_irp(&a)), rb = wait_comp(rig_irp(&b));
    assert_int_equal(rig_end(&a, ra), STATUS_CANCELLED);
    assert_int_equal(b.completions, 0);
    raise_comp();
    assert_int_equal(rig_end(&b, rb), STATUS_SUCCESS);
}

// ---- cancelling ---------------------------------------------------------------------------------

static void test_cancel_before_the_verb_ends_the_irp(void **state)
{
    for (size_t i = 0; i < SOURCES; i++) {
        struct rig_call c;
        PIRP irp = rig_irp(&c);
        assert_false(IoCancelIrp(irp));
        NTSTATUS r = sources[i].wait(irp);
        assert_int_equal(rig_end(&c, r), STATUS_CANCELLED);
    }
}

static void test_cancel_after_completion_does_nothing(void **state)
{
    for (size_t i = 0; i < SOURCES; i++) {
        struct rig_call c;
        PIRP irp = rig_irp(&c);
        LARGE_INTEGER patience = {.QuadPart = -100000000};
        assert_int_equal(sources[i].wait(irp), STATUS_PENDING);
        sources[i].raise();
        KeWaitForSingleObject(&c.done, Executive, KernelMode, FALSE, &patience);
        assert_false(IoCancelIrp(irp));
        assert_int_equal(rig_end(&c, STATUS_PENDING), STATUS_SUCCESS);
    }
}

static void test_cancel_of_a_verb_that_cannot_be_cancelled_is_ignored(void **state)
{
    struct rig_call c;
    PIRP irp = rig_irp(&c);
    assert_false(IoCancelIrp(irp));
    NTSTATUS r = rig.v->CreatePd(set.ca, NULL, irp);
    assert_int_equal(rig_end(&c, r), STATUS_SUCCESS);
    IB_PD *pd = (IB_PD *)c.info;
    irp = rig_irp(&c);
    r = rig.v->DestroyPd(pd, NULL, irp);
    assert_int_equal(rig_end(&c, r), STATUS_SUCCESS);
}

static void *cancel_thread(void *arg)
{
    IoCancelIrp(arg);
    return NULL;
}

static void *raise_thread(void *arg)
{
    ((const struct source *)arg)->raise();
    return NULL;
}

// Whoever wins, the IRP ends once, and an event that lost is there for the next.
static void test_cancel_racing_an_event_completes_once(void **state)
{
    for (size_t i = 0; i + 1 < SOURCES; i++) {
        const struct source *s = &sources[i];
        for (int n = 0; n < 100; n++) {
            struct rig_call c, next;
            pthread_t a, b;
            NTSTATUS r = s->wait(rig_irp(&c));
            pthread_create(&a, NULL, cancel_thread, c.irp);
            pthread_create(&b, NULL, raise_thread, (void *)s);
            pthread_join(a, NULL);
            pthread_join(b, NULL);
            if (rig_end(&c, r) == STATUS_SUCCESS)
                continue;
            assert_int_equal(c.status, STATUS_CANCELLED);
            r = s->wait(rig_irp(&next));
            assert_int_equal(rig_end(&next, r), STATUS_SUCCESS);
        }
    }
}

// ---- closing ------------------------------------------------------------------------------------

static void test_destroy_ends_waiting_irps_before_it_returns(void **state)
{
    struct rig_call a, b, d;
    for (int mode = 0; mode < RIG_MODES; mode++) {
        IB_QP *mine = rig_qp(&rig, &set, IbQpTypeReliableConn, NULL);
        rig.mode = (enum rig_mode)mode;
        assert_int_equal(rig.v->GetQpAsyncEvent(mine, rig_irp(&a)), STATUS_PENDING);
        assert_int_equal(rig.v->GetQpAsyncEvent(mine, rig_irp(&b)), STATUS_PENDING);
        PIRP irp = rig_begin(&rig, &d);
        NTSTATUS r = rig.v->DestroyQp(mine, NULL, irp);
        assert_int_equal(a.completions, 1);
        assert_int_equal(b.completions, 1);
        rig_ok(&rig, &d, r);
        assert_int_equal(rig_end(&a, STATUS_PENDING), STATUS_CANCELLED);
        assert_int_equal(rig_end(&b, STATUS_PENDING), STATUS_CANCELLED);
    }
}

static void test_close_ca_ends_fatal_and_port_irps(void **state)
{
    struct rig_call fatal, port, c;
    PIRP irp = rig_begin(&rig, &c);
    IB_CA *ca = (IB_CA *)rig_ok(&rig, &c, rig.v->OpenCa(rig.v->Context, NULL, NULL, NULL, irp));
    assert_int_equal(rig.v->GetCaFatalEvent(ca, rig_irp(&fatal)), STATUS_PENDING);
    assert_int_equal(rig.v->GetCaPortEvent(ca, 1, rig_irp(&port)), STATUS_PENDING);
    irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.v->CloseCa(ca, NULL, irp));
    assert_int_equal(rig_end(&fatal, STATUS_PENDING), STATUS_CANCELLED);
    assert_int_equal(rig_end(&port, STATUS_PENDING), STATUS_CANCELLED);
}

static void *close_thread(void *arg)
{
    struct rig_call d;
    NTSTATUS r = rig.v->DestroyQp(arg, NULL, rig_irp(&d));
    assert_int_equal(rig_end(&d, r), STATUS_SUCCESS);
    return NULL;
}

static void test_destroy_racing_cancel_completes_each_once(void **state)
{
    for (int n = 0; n < 100; n++) {
        struct rig_call c;
        pthread_t a, b;
        IB_QP *mine = rig_qp(&rig, &set, IbQpTypeReliableConn, NULL);
        NTSTATUS r = rig.v->GetQpAsyncEvent(mine, rig_irp(&c));
        pthread_create(&a, NULL, cancel_thread, c.irp);
        pthread_create(&b, NULL, close_thread, mine);
        pthread_join(a, NULL);
        pthread_join(b, NULL);
        assert_int_equal(rig_end(&c, r), STATUS_CANCELLED);
    }
}

// ---- the end of objects -------------------------------------------------------------------------

static void test_parents_stay_pending_until_the_last_child_is_gone(void **state)
{
    for (int mode = 0; mode < RIG_MODES; mode++) {
        struct rig_set s;
        struct rig_call ca, ca2, pd, cq, c;
        rig_make(&rig, &s);
        IB_QP *child = rig_qp(&rig, &s, IbQpTypeReliableConn, NULL);
        rig.mode = (enum rig_mode)mode;
        NTSTATUS rca = rig.v->CloseCa(s.ca, NULL, rig_irp(&ca));
        NTSTATUS rca2 = rig.v->CloseCa(s.ca, NULL, rig_irp(&ca2)); // asking twice is harmless
        NTSTATUS rpd = rig.v->DestroyPd(s.pd, NULL, rig_irp(&pd));
        NTSTATUS rcq = rig.v->DestroyCq(s.cq, NULL, rig_irp(&cq));
        assert_int_equal(rca, STATUS_PENDING);
        assert_int_equal(rca2, STATUS_PENDING);
        assert_int_equal(rpd, STATUS_PENDING);
        assert_int_equal(rcq, STATUS_PENDING);
        // What is going takes no new children.
        PIRP irp = rig_begin(&rig, &c);
        assert_int_equal(rig_done(&rig, &c, rig.v->CreatePd(s.ca, NULL, irp)),
                         STATUS_DELETE_PENDING);
        assert_int_equal(ca.completions + pd.completions + cq.completions, 0);
        rig_destroy_qp(&rig, child);
        assert_int_equal(rig_end(&pd, rpd), STATUS_SUCCESS);
        assert_int_equal(rig_end(&cq, rcq), STATUS_SUCCESS);
        assert_int_equal(rig_end(&ca, rca), STATUS_SUCCESS);
        assert_int_equal(rig_end(&ca2, rca2), STATUS_SUCCESS);
    }
}

static void test_qp_in_a_multicast_group_ends_when_it_left(void **state)
{
    struct rig_call c, d;
    IB_GID group = {.Raw = {0xff, 0x0e, [15] = 9}};
    IB_QP *ud = rig_qp(&rig, &set, IbQpTypeUnreliableDgrm, NULL);
    PIRP irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.t.AttachMcast(ud, &group, irp));
    irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.t.AttachMcast(ud, &group, irp)); // counts once
    irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.t.DetachMcast(ud, &group, irp));
    NTSTATUS r = rig.v->DestroyQp(ud, NULL, rig_irp(&d));
    assert_int_equal(rig_end(&d, r), STATUS_SUCCESS);
}

// ---- callbacks ----------------------------------------------------------------------------------

struct seen {
    KEVENT event, go;
    void *object;
    ULONG code, port, calls;
    KIRQL irql;
    bool hold;
};

static void note(struct seen *s, void *object, ULONG code, ULONG port)
{
    s->object = object;
    s->code = code;
    s->port = port;
    s->irql = KeGetCurrentIrql();
    s->calls++;
    bool hold = s->hold;
    KeSetEvent(&s->event, 0, FALSE);
    while (hold && !KeReadStateEvent(&s->go)) {
    }
}

static VOID ca_called(IB_CA *const ca, VOID *context, const UCHAR port, IB_ASYNC_EVENT event)
{
    note(context, ca, (ULONG)event, port);
}

static VOID comp_called(IB_CQ *cq, VOID *context)
{
    note(context, cq, 0, 0);
}

static VOID cq_called(IB_CQ *cq, VOID *context, IB_ASYNC_EVENT event)
{
    note(context, cq, (ULONG)event, 0);
}

static VOID qp_called(IB_QP *q, VOID *context, IB_ASYNC_EVENT event)
{
    note(context, q, (ULONG)event, 0);
}

static void seen_init(struct seen *s)
{
    memset(s, 0, sizeof(*s));
    KeInitializeEvent(&s->event, SynchronizationEvent, FALSE);
    KeInitializeEvent(&s->go, NotificationEvent, FALSE);
}

static void seen_wait(struct seen *s)
{
    LARGE_INTEGER patience = {.QuadPart = -100000000};
    assert_int_equal(KeWaitForSingleObject(&s->event, Executive, KernelMode, FALSE, &patience), 0);
    assert_int_equal(s->irql, DISPATCH_LEVEL);
}

static void raise_async(IB_CA *ca, enum ibv_event_type type, void *object)
{
    wf_enter(rig.hca);
    wf_iba_ca_async(wf_iba_ca_of(ca), type, object, object ? 0 : 1);
    wf_exit(rig.hca);
}

static void test_callbacks_get_events_that_no_irp_takes(void **state)
{
    struct seen s;
    struct rig_call c;
    seen_init(&s);
    PIRP irp = rig_begin(&rig, &c);
    IB_CA *ca = (IB_CA *)rig_ok(&rig, &c, rig.v->OpenCa(rig.v->Context, &s, ca_called, NULL, irp));
    irp = rig_begin(&rig, &c);
    IB_CQ *cq =
        (IB_CQ *)rig_ok(&rig, &c, rig.v->CreateCq(ca, 4, &s, comp_called, cq_called, NULL, irp));
    raise_async(ca, IBV_EVENT_PORT_ACTIVE, NULL);
    seen_wait(&s);
    assert_ptr_equal(s.object, ca);
    assert_int_equal(s.code, IbAePortActive);
    assert_int_equal(s.port, 1);
    raise_async(ca, IBV_EVENT_GID_CHANGE, NULL);
    seen_wait(&s);
    assert_int_equal(s.code, IbAeUnknown);
    raise_async(ca, IBV_EVENT_CQ_ERR, wf_iba_cq_of(cq));
    seen_wait(&s);
    assert_ptr_equal(s.object, cq);
    assert_int_equal(s.code, IbAeCqError);
    // An IRP that waits goes first.
    NTSTATUS r = rig.v->GetCqAsyncEvent(cq, rig_irp(&c));
    ULONG calls = s.calls;
    raise_async(ca, IBV_EVENT_CQ_ERR, wf_iba_cq_of(cq));
    assert_int_equal(rig_end(&c, r), STATUS_SUCCESS);
    raise_async(ca, IBV_EVENT_DEVICE_FATAL, NULL);
    seen_wait(&s);
    assert_int_equal(s.calls, calls + 1);
    assert_int_equal(s.code, IbAeLocalFatal);
    assert_int_equal(s.port, 0);
    irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.v->DestroyCq(cq, NULL, irp));
    irp = rig_begin(&rig, &c);
    NTSTATUS close = rig.v->CloseCa(ca, NULL, irp);
    rig_ok(&rig, &c, close);
}

static void test_destroy_waits_for_a_running_callback(void **state)
{
    struct seen s;
    struct rig_call c, d;
    seen_init(&s);
    s.hold = true;
    IB_QP_CREATE create = {.SqDepth = 1, .RqDepth = 1, .pSendCq = set.cq, .pRecvCq = set.cq};
    PIRP irp = rig_begin(&rig, &c);
    IB_QP *mine =
        (IB_QP *)rig_ok(&rig, &c, rig.v->CreateQp(set.pd, &create, &s, qp_called, NULL, irp));
    raise_async(set.ca, IBV_EVENT_COMM_EST, wf_iba_qp_of(mine));
    seen_wait(&s);
    NTSTATUS r = rig.v->DestroyQp(mine, NULL, rig_irp(&d));
    assert_int_equal(r, STATUS_PENDING);
    assert_int_equal(d.completions, 0);
    KeSetEvent(&s.go, 0, FALSE);
    assert_int_equal(rig_end(&d, r), STATUS_SUCCESS);
}

// ---- a dead device ------------------------------------------------------------------------------

static void test_after_a_fatal_event_verbs_say_forced_closed(void **state)
{
    struct rig_call fatal, port, comp, q, c;
    IB_AH_ATTR address;
    IB_AH *ah;
    IB_SEND_WR send = {.Type = IbSend};
    IB_RECV_WR recv = {.SgeCount = 0};
    IB_WC wc;
    LONG n = 1;
    NTSTATUS rf = wait_fatal(rig_irp(&fatal)), rp = wait_port(rig_irp(&port));
    NTSTATUS rc = wait_comp(rig_irp(&comp)), rq = wait_qp(rig_irp(&q));
    raise_fatal();
    assert_int_equal(rig_end(&fatal, rf), STATUS_SUCCESS);
    assert_int_equal(rig_end(&port, rp), STATUS_FILE_FORCED_CLOSED);
    assert_int_equal(rig_end(&comp, rc), STATUS_FILE_FORCED_CLOSED);
    assert_int_equal(rig_end(&q, rq), STATUS_FILE_FORCED_CLOSED);
    for (size_t i = 0; i + 1 < SOURCES; i++)
        assert_int_equal(rig_end(&c, sources[i].wait(rig_irp(&c))), STATUS_FILE_FORCED_CLOSED);
    for (int mode = 0; mode < RIG_MODES; mode++) {
        rig.mode = (enum rig_mode)mode;
        PIRP irp = rig_begin(&rig, &c);
        assert_int_equal(rig_done(&rig, &c, rig.v->CreatePd(set.ca, NULL, irp)),
                         STATUS_FILE_FORCED_CLOSED);
        irp = rig_begin(&rig, &c);
        assert_int_equal(rig_done(&rig, &c, rig.v->CreateMw(set.pd, NULL, irp)),
                         STATUS_FILE_FORCED_CLOSED);
    }
    rig.mode = RIG_PASSIVE;
    rig_address(&rig, &address);
    assert_int_equal(rig.v->CreateAh(set.pd, &address, &ah), STATUS_FILE_FORCED_CLOSED);
    assert_int_equal(rig.v->PostSend(qp, &send, NULL), STATUS_FILE_FORCED_CLOSED);
    assert_int_equal(rig.v->PostRecv(qp, &recv, NULL), STATUS_FILE_FORCED_CLOSED);
    assert_int_equal(rig.v->RearmCq(set.cq, FALSE), STATUS_FILE_FORCED_CLOSED);
    assert_int_equal(weft_iba_poll_flat(rig.v, set.cq, &n, &wc), STATUS_FILE_FORCED_CLOSED);
    // Teardown shows that everything can still be destroyed and closed.
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_event_completes_the_oldest_waiting_irp, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_event_without_a_taker_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_events_are_kept_in_order_and_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_completion_events_latch_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second_completion_wait_cancels_the_first, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_cancel_before_the_verb_ends_the_irp, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancel_after_completion_does_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancel_of_a_verb_that_cannot_be_cancelled_is_ignored,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancel_racing_an_event_completes_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_destroy_ends_waiting_irps_before_it_returns, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_close_ca_ends_fatal_and_port_irps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroy_racing_cancel_completes_each_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_parents_stay_pending_until_the_last_child_is_gone,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_qp_in_a_multicast_group_ends_when_it_left, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_callbacks_get_events_that_no_irp_takes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_destroy_waits_for_a_running_callback, setup, teardown),
        cmocka_unit_test_setup_teardown(test_after_a_fatal_event_verbs_say_forced_closed, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("iba_events", tests, NULL, NULL);
}
