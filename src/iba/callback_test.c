// SPDX-License-Identifier: BSD-2-Clause
// The callback wrapper: the whole life of the objects, without an IRP in sight.
#include "iba/rig.h"

#include "engine/engine.h"
#include "weft/iba_cb.h"

#include <string.h>

static struct rig rig;

struct done {
    KEVENT event;
    LONG volatile calls;
    NTSTATUS status;
    ULONG_PTR info;
};

static VOID done_called(PVOID context, NTSTATUS status, ULONG_PTR info)
{
    struct done *d = context;
    d->status = status;
    d->info = info;
    InterlockedIncrement(&d->calls);
    KeSetEvent(&d->event, IO_NO_INCREMENT, FALSE);
}

static struct done *fresh(struct done *d)
{
    memset(d, 0, sizeof(*d));
    KeInitializeEvent(&d->event, NotificationEvent, FALSE);
    return d;
}

static NTSTATUS finish(struct done *d, NTSTATUS returned)
{
    LARGE_INTEGER patience = {.QuadPart = -200000000};
    assert_int_equal(KeWaitForSingleObject(&d->event, Executive, KernelMode, FALSE, &patience), 0);
    assert_int_equal(d->calls, 1);
    if (returned != STATUS_PENDING)
        assert_int_equal(returned, d->status);
    return d->status;
}

static ULONG_PTR ok(struct done *d, NTSTATUS returned)
{
    assert_int_equal(finish(d, returned), STATUS_SUCCESS);
    return d->info;
}

static int setup(void **state)
{
    rig_open(&rig);
    return 0;
}

static int teardown(void **state)
{
    rig_close(&rig);
    return 0;
}

static void live_and_die(void)
{
    struct done d;
    static char mem[64];
    IB_QP_ATTR attr;
    IB_SRQ_ATTR srq_attr;
    IB_CA_ATTR ca_attr;
    IB_PORT_ATTR port;
    IB_GID group = {.Raw = {0xff, 0x0e, [15] = 3}};
    IB_SRQ_CREATE sc = {.Depth = 4, .RqSge = 1};
    IB_MODIFY_CA mc = {0};
    IB_MODIFY_PORT mp = {0};
    SCATTER_GATHER_LIST *sg =
        ExAllocatePoolWithTag(NonPagedPool, sizeof(*sg) + sizeof(sg->Elements[0]), 0);
    IB_VERBS_INTERFACE_STANDARD *v = rig.v;
    IB_CA *ca = (IB_CA *)ok(&d, weft_cb_open_ca(v, NULL, NULL, done_called, fresh(&d)));
    ok(&d, weft_cb_modify_ca(v, ca, 0, &mc, done_called, fresh(&d)));
    ok(&d, weft_cb_modify_port(v, ca, 1, 0, &mp, done_called, fresh(&d)));
    NTSTATUS s = weft_cb_query_ca(v, sizeof(ca_attr), &ca_attr, done_called, fresh(&d));
    assert_int_equal(finish(&d, s), STATUS_BUFFER_OVERFLOW);
    assert_int_equal(d.info, sizeof(ca_attr));
    s = weft_cb_query_port(v, 1, sizeof(port), &port, done_called, fresh(&d));
    assert_int_equal(finish(&d, s), STATUS_MORE_ENTRIES);
    IB_PD *pd = (IB_PD *)ok(&d, weft_cb_create_pd(v, ca, done_called, fresh(&d)));
    IB_CQ *cq =
        (IB_CQ *)ok(&d, weft_cb_create_cq(v, ca, 8, NULL, NULL, NULL, done_called, fresh(&d)));
    ok(&d, weft_cb_resize_cq(v, cq, 16, done_called, fresh(&d)));
    IB_SRQ *srq =
        (IB_SRQ *)ok(&d, weft_cb_create_srq(&rig.t, pd, &sc, NULL, NULL, done_called, fresh(&d)));
    ok(&d, weft_cb_query_srq(&rig.t, srq, &srq_attr, done_called, fresh(&d)));
    srq_attr.Limit = 0;
    ok(&d, weft_cb_modify_srq(&rig.t, srq, IB_MOD_SRQ_LIMIT, &srq_attr, done_called, fresh(&d)));
    IB_QP_CREATE c = {.Type = IbQpTypeUnreliableDgrm, .SqDepth = 1, .RqDepth = 1};
    c.pSendCq = c.pRecvCq = cq;
    c.pSrq = srq;
    IB_QP *qp = (IB_QP *)ok(&d, weft_cb_create_qp(v, pd, &c, NULL, NULL, done_called, fresh(&d)));
    c.Type = IbQpTypeQp1;
    s = weft_cb_create_special_qp(v, pd, 1, &c, NULL, NULL, done_called, fresh(&d));
    assert_int_equal(finish(&d, s), STATUS_NOT_SUPPORTED);
    IB_QP_MODIFY m = {.ReqState = IbQpsInit};
    m.state.Init.PrimaryPort = 1;
    ok(&d, weft_cb_modify_qp(v, qp, &m, done_called, fresh(&d)));
    ok(&d, weft_cb_query_qp(v, qp, &attr, done_called, fresh(&d)));
    assert_int_equal(attr.State, IbQpsInit);
    ok(&d, weft_cb_attach_mcast(&rig.t, qp, &group, done_called, fresh(&d)));
    ok(&d, weft_cb_detach_mcast(&rig.t, qp, &group, done_called, fresh(&d)));
    PMDL mdl = IoAllocateMdl(mem, sizeof(mem), FALSE, FALSE, NULL);
    MmBuildMdlForNonPagedPool(mdl);
    IB_MR *mr = (IB_MR *)ok(&d, weft_cb_reg_mdl(v, pd, mdl, 0, done_called, fresh(&d)));
    assert_int_equal(ok(&d, weft_cb_dereg_mr(v, mr, done_called, fresh(&d))), (ULONG_PTR)mdl);
    sg->NumberOfElements = 1;
    sg->Elements[0].Address = MmGetPhysicalAddress(mem);
    sg->Elements[0].Length = sizeof(mem);
    mr = (IB_MR *)ok(&d, weft_cb_reg_scatter_gather(v, pd, sg, 0, done_called, fresh(&d)));
    ok(&d, weft_cb_dereg_mr(v, mr, done_called, fresh(&d)));
    mr = (IB_MR *)ok(&d, weft_cb_get_dma_mr(v, pd, 0, done_called, fresh(&d)));
    ok(&d, weft_cb_dereg_mr(v, mr, done_called, fresh(&d)));
    IB_MW *mw = (IB_MW *)ok(&d, weft_cb_create_mw(v, pd, done_called, fresh(&d)));
    ok(&d, weft_cb_destroy_mw(v, mw, done_called, fresh(&d)));
    ok(&d, weft_cb_destroy_qp(v, qp, done_called, fresh(&d)));
    ok(&d, weft_cb_destroy_srq(&rig.t, srq, done_called, fresh(&d)));
    ok(&d, weft_cb_destroy_cq(v, cq, done_called, fresh(&d)));
    ok(&d, weft_cb_destroy_pd(v, pd, done_called, fresh(&d)));
    ok(&d, weft_cb_close_ca(v, ca, done_called, fresh(&d)));
    IoFreeMdl(mdl);
    ExFreePool(sg);
}

static void test_all_wrapped_verbs_at_once(void **state)
{
    live_and_die();
}

static void test_all_wrapped_verbs_deferred(void **state)
{
    weft_iba_set_policy(WEFT_IBA_ALWAYS_PEND);
    live_and_die();
}

static void test_refused_call_tells_done_too(void **state)
{
    struct done d;
    NTSTATUS s = weft_cb_create_pd(rig.v, NULL, done_called, fresh(&d));
    assert_int_equal(s, STATUS_INVALID_PARAMETER);
    assert_int_equal(finish(&d, s), STATUS_INVALID_PARAMETER);
}

static void test_waits_end_by_event_or_cancel(void **state)
{
    struct rig_set set;
    struct done d;
    WEFT_IBA_WAIT wait;
    IB_VERBS_INTERFACE_STANDARD *v = rig.v;
    rig_make(&rig, &set);
    NTSTATUS s = weft_cb_wait_ca_port_event(v, set.ca, 1, &wait, done_called, fresh(&d));
    assert_int_equal(s, STATUS_PENDING);
    wf_enter(rig.hca);
    wf_iba_ca_async(wf_iba_ca_of(set.ca), IBV_EVENT_PORT_ERR, NULL, 1);
    wf_exit(rig.hca);
    assert_int_equal(ok(&d, s), IbAePortDown);
    assert_false(weft_cb_cancel(&wait));
    s = weft_cb_wait_ca_fatal_event(v, set.ca, &wait, done_called, fresh(&d));
    assert_true(weft_cb_cancel(&wait));
    assert_int_equal(finish(&d, s), STATUS_CANCELLED);
    s = weft_cb_wait_cq_comp_event(v, set.cq, &wait, done_called, fresh(&d));
    assert_true(weft_cb_cancel(&wait));
    assert_int_equal(finish(&d, s), STATUS_CANCELLED);
    s = weft_cb_wait_cq_async_event(v, set.cq, &wait, done_called, fresh(&d));
    assert_true(weft_cb_cancel(&wait));
    assert_int_equal(finish(&d, s), STATUS_CANCELLED);
    IB_QP *qp = rig_qp(&rig, &set, IbQpTypeReliableConn, NULL);
    s = weft_cb_wait_qp_async_event(v, qp, &wait, done_called, fresh(&d));
    rig_destroy_qp(&rig, qp);
    assert_int_equal(finish(&d, s), STATUS_CANCELLED);
    s = weft_cb_wait_srq_async_event(&rig.t, NULL, &wait, done_called, fresh(&d));
    assert_int_equal(finish(&d, s), STATUS_INVALID_PARAMETER);
    rig_unmake(&rig, &set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_wrapped_verbs_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_wrapped_verbs_deferred, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused_call_tells_done_too, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waits_end_by_event_or_cancel, setup, teardown),
    };
    return cmocka_run_group_tests_name("iba_callback", tests, NULL, NULL);
}
