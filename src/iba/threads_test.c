// SPDX-License-Identifier: BSD-2-Clause
// Several threads on one CA, at both levels: objects come and go, data moves, waits are cancelled,
// parents are closed while children live. Meant for the sanitizers.
#include "iba/rig.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define ROUNDS  60

static struct rig shared;
static struct rig_set set;

// Each thread has a rig of its own in its own mode, on the shared table.
struct worker {
    struct rig rig;
    struct rig_set set;
    int number;
    char mem[64];
};

// The policy is the process's, so threads differ by level only.
static void rig_of(struct worker *w)
{
    w->rig = shared;
    w->rig.v = &w->rig.t.v1;
    w->rig.mode = w->number % 2 ? RIG_DISPATCH : RIG_PASSIVE;
    w->set = set;
}

static void use_queue_pair(struct worker *w)
{
    struct rig_call c;
    IB_WC wc;
    IB_SEND_WR send = {.Type = IbRdmaWrite, .Flags = IB_WR_FLAG_SIGNALED};
    PIRP irp = rig_begin(&w->rig, &c);
    w->set.cq =
        (IB_CQ *)rig_ok(&w->rig, &c, w->rig.v->CreateCq(set.ca, 8, NULL, NULL, NULL, NULL, irp));
    IB_QP *qp = rig_qp(&w->rig, &w->set, IbQpTypeReliableConn, NULL);
    IB_MR *mr = rig_reg(&w->rig, set.pd, w->mem, sizeof(w->mem), IB_AC_LOCAL_WRITE);
    rig_to_init(&w->rig, qp);
    rig_connect(&w->rig, qp, qp->Qpn);
    assert_int_equal(w->rig.v->PostSend(qp, &send, NULL), STATUS_SUCCESS);
    rig_poll(&w->rig, w->set.cq, &wc);
    assert_int_equal(wc.Status, IbWcSuccess);
    assert_ptr_equal(wc.hQp, qp);
    // The CQ goes first and has to wait for the QP.
    struct rig_call d;
    NTSTATUS destroy = w->rig.v->DestroyCq(w->set.cq, NULL, rig_irp(&d));
    assert_int_equal(destroy, STATUS_PENDING);
    rig_destroy_qp(&w->rig, qp);
    assert_int_equal(rig_end(&d, destroy), STATUS_SUCCESS);
    rig_dereg(&w->rig, mr);
}

static void use_address(struct worker *w, IB_AH *shared_ah)
{
    IB_AH_ATTR address, back;
    IB_AH *ah;
    rig_address(&w->rig, &address);
    address.SvcLvl = (UCHAR)w->number;
    assert_int_equal(w->rig.v->CreateAh(set.pd, &address, &ah), STATUS_SUCCESS);
    assert_int_equal(w->rig.v->ModifyAh(shared_ah, &address), STATUS_SUCCESS);
    assert_int_equal(w->rig.v->QueryAh(shared_ah, &back), STATUS_SUCCESS);
    assert_true(back.SvcLvl < THREADS);
    assert_int_equal(w->rig.v->DestroyAh(ah), STATUS_SUCCESS);
}

// Everybody waits on the shared CA and CQ; completion waits end each other.
static void use_events(struct worker *w)
{
    struct rig_call port, comp;
    NTSTATUS p = w->rig.v->GetCaPortEvent(set.ca, 1, rig_irp(&port));
    NTSTATUS q = w->rig.v->GetCqCompEvent(set.cq, rig_irp(&comp));
    if (w->number == 0)
        wf_iba_ca_async(wf_iba_ca_of(set.ca), IBV_EVENT_PORT_ACTIVE, NULL, 1);
    IoCancelIrp(port.irp);
    IoCancelIrp(comp.irp);
    NTSTATUS s = rig_end(&port, p);
    assert_true(s == STATUS_CANCELLED || (s == STATUS_SUCCESS && port.info == IbAePortActive));
    assert_int_equal(rig_end(&comp, q), STATUS_CANCELLED);
}

static IB_AH *common;

static void *work(void *arg)
{
    struct worker *w = arg;
    rig_of(w);
    for (int i = 0; i < ROUNDS; i++) {
        use_queue_pair(w);
        use_address(w, common);
        use_events(w);
    }
    return NULL;
}

static void test_threads_share_a_ca(void **state)
{
    static struct worker w[THREADS];
    pthread_t t[THREADS];
    IB_AH_ATTR address;
    rig_open(&shared);
    rig_make(&shared, &set);
    rig_address(&shared, &address);
    assert_int_equal(shared.v->CreateAh(set.pd, &address, &common), STATUS_SUCCESS);
    for (int i = 0; i < THREADS; i++) {
        w[i].number = i;
        pthread_create(&t[i], NULL, work, &w[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(set.ca->nRef, 2);
    assert_int_equal(set.pd->nRef, 1);
    shared.v->DestroyAh(common);
    rig_unmake(&shared, &set);
    rig_close(&shared);
}

// ---- closing under load -------------------------------------------------------------------------

static void *create_until_closing(void *arg)
{
    struct rig_call c;
    NTSTATUS s;
    do {
        PIRP irp = rig_irp(&c);
        s = rig_end(&c, shared.v->CreatePd(set.ca, NULL, irp));
        if (s == STATUS_SUCCESS) {
            struct rig_call d;
            NTSTATUS gone = shared.v->DestroyPd((IB_PD *)c.info, NULL, rig_irp(&d));
            assert_int_equal(rig_end(&d, gone), STATUS_SUCCESS);
        }
    } while (s == STATUS_SUCCESS);
    assert_int_equal(s, STATUS_DELETE_PENDING);
    return NULL;
}

// A PD keeps the CA until the threads have seen that it is going.
static void test_close_while_others_create(void **state)
{
    for (int round = 0; round < 20; round++) {
        pthread_t t[2];
        struct rig_call c;
        rig_open(&shared);
        rig_make(&shared, &set);
        pthread_create(&t[0], NULL, create_until_closing, NULL);
        pthread_create(&t[1], NULL, create_until_closing, NULL);
        NTSTATUS close = shared.v->CloseCa(set.ca, NULL, rig_irp(&c));
        assert_int_equal(close, STATUS_PENDING);
        pthread_join(t[0], NULL);
        pthread_join(t[1], NULL);
        struct rig_call d;
        NTSTATUS s = shared.v->DestroyCq(set.cq, NULL, rig_irp(&d));
        assert_int_equal(rig_end(&d, s), STATUS_SUCCESS);
        assert_int_equal(c.completions, 0);
        s = shared.v->DestroyPd(set.pd, NULL, rig_irp(&d));
        assert_int_equal(rig_end(&d, s), STATUS_SUCCESS);
        assert_int_equal(rig_end(&c, close), STATUS_SUCCESS);
        rig_close(&shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_share_a_ca),
        cmocka_unit_test(test_close_while_others_create),
    };
    return cmocka_run_group_tests_name("iba_threads", tests, NULL, NULL);
}
