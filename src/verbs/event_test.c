// SPDX-License-Identifier: BSD-2-Clause
// Completion channels and asynchronous events: delivery, acknowledgement, destruction.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include "verbs/face.h"
#include "verbs/fake_hca.h"
#include <fcntl.h>
#include <poll.h>

struct fixture {
    struct ibv_context *ctx;
    struct ibv_comp_channel *channel;
    struct ibv_pd *pd;
    struct ibv_cq *a, *b;
    struct ibv_qp *qp_a, *qp_b;
};

static struct ibv_qp *ready_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    assert_non_null(qp);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(qp->state, IBV_QPS_RTS);
    return qp;
}

static int setup(void **state)
{
    static struct fixture f;

    fake = (struct fake_hca){0};
    f.ctx = ibv_open_device(wf_face_device());
    f.channel = ibv_create_comp_channel(f.ctx);
    f.pd = ibv_alloc_pd(f.ctx);
    f.a = ibv_create_cq(f.ctx, 16, &f.a, f.channel, 0);
    f.b = ibv_create_cq(f.ctx, 16, &f.b, f.channel, 0);
    f.qp_a = ready_qp(f.pd, f.a);
    f.qp_b = ready_qp(f.pd, f.b);
    assert_int_equal(fcntl(f.channel->fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(fcntl(f.ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    if (f->qp_a) {
        assert_int_equal(ibv_destroy_qp(f->qp_a), 0);
        assert_int_equal(ibv_destroy_cq(f->a), 0);
    }
    assert_int_equal(ibv_destroy_qp(f->qp_b), 0);
    assert_int_equal(ibv_destroy_cq(f->b), 0);
    assert_int_equal(ibv_dealloc_pd(f->pd), 0);
    assert_int_equal(ibv_destroy_comp_channel(f->channel), 0);
    assert_int_equal(ibv_close_device(f->ctx), 0);
    assert_int_equal(fake.gets, 0);
    return 0;
}

static void send_one(struct ibv_qp *qp)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;

    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

static bool readable(int fd)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};

    return poll(&pfd, 1, 0) == 1;
}

static void expect_event(struct fixture *f, struct ibv_cq *want)
{
    struct ibv_cq *cq;
    void *arg;

    assert_int_equal(ibv_get_cq_event(f->channel, &cq, &arg), 0);
    assert_ptr_equal(cq, want);
    assert_ptr_equal(arg, want->cq_context);
}

static void test_channel_without_event_answers_eagain(void **state)
{
    struct fixture *f = *state;
    struct ibv_cq *cq;
    void *arg;

    assert_int_equal(ibv_get_cq_event(f->channel, &cq, &arg), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fake.dozes, 1);
}

static void test_channel_several_events_each_delivered(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(ibv_req_notify_cq(f->a, 0), 0);
        send_one(f->qp_a);
    }
    assert_int_equal(ibv_req_notify_cq(f->b, 0), 0);
    send_one(f->qp_b);
    expect_event(f, f->a);
    expect_event(f, f->b); // a CQ with several events does not hold up the others
    assert_true(readable(f->channel->fd));
    expect_event(f, f->a);
    assert_false(readable(f->channel->fd));
    ibv_ack_cq_events(f->a, 2);
    ibv_ack_cq_events(f->b, 1);
}

static void test_channel_destroyed_cq_takes_its_events_along(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ibv_req_notify_cq(f->a, 0), 0);
    send_one(f->qp_a);
    assert_true(readable(f->channel->fd));
    assert_int_equal(ibv_destroy_qp(f->qp_a), 0);
    assert_int_equal(ibv_destroy_cq(f->a), 0);
    f->qp_a = NULL;
    assert_false(readable(f->channel->fd));
}

static void *destroy_a(void *arg)
{
    struct fixture *f = arg;

    assert_int_equal(ibv_destroy_qp(f->qp_a), 0);
    f->qp_a = NULL;
    return (void *)(intptr_t)ibv_destroy_cq(f->a);
}

// P03: acknowledgements on the wrong CQ neither count for the right one nor wrap.
static void test_ack_on_wrong_cq_does_not_count(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    void *rc;

    assert_int_equal(ibv_req_notify_cq(f->a, 0), 0);
    assert_int_equal(ibv_req_notify_cq(f->b, 0), 0);
    send_one(f->qp_a);
    send_one(f->qp_b);
    expect_event(f, f->a);
    expect_event(f, f->b);
    ibv_ack_cq_events(f->b, 2);
    assert_int_equal(f->b->comp_events_completed, 1);
    assert_int_equal(f->a->comp_events_completed, 0);
    assert_int_equal(pthread_create(&thread, NULL, destroy_a, f), 0);
    ibv_ack_cq_events(f->a, 1);
    assert_int_equal(pthread_join(thread, &rc), 0);
    assert_null(rc);
}

static void test_destroy_busy_objects_refused(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ibv_destroy_comp_channel(f->channel), EBUSY);
    assert_int_equal(ibv_destroy_cq(f->a), EBUSY);
    assert_int_equal(ibv_dealloc_pd(f->pd), EBUSY);
}

static void test_async_qp_event_reaches_its_context(void **state)
{
    struct fixture *f = *state;
    struct ibv_async_event event;

    assert_int_equal(ibv_get_async_event(f->ctx, &event), -1);
    assert_int_equal(errno, EAGAIN);
    fake_async(IBV_EVENT_COMM_EST, f->qp_a, 0);
    fake_async(IBV_EVENT_PORT_ERR, NULL, 1);
    assert_true(readable(f->ctx->async_fd));
    assert_int_equal(ibv_get_async_event(f->ctx, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
    assert_ptr_equal(event.element.qp, f->qp_a);
    ibv_ack_async_event(&event);
    ibv_ack_async_event(&event); // once too often: must not wrap
    assert_int_equal(f->qp_a->events_completed, 1);
    assert_int_equal(ibv_get_async_event(f->ctx, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
    assert_int_equal(event.element.port_num, 1);
    ibv_ack_async_event(&event);
    assert_false(readable(f->ctx->async_fd));
}

static void test_async_destroyed_object_takes_its_events_along(void **state)
{
    struct fixture *f = *state;
    struct ibv_async_event event;

    fake_async(IBV_EVENT_QP_FATAL, f->qp_a, 0);
    fake_async(IBV_EVENT_CQ_ERR, f->a, 0);
    fake_async(IBV_EVENT_CQ_ERR, f->b, 0);
    assert_int_equal(ibv_destroy_qp(f->qp_a), 0);
    assert_int_equal(ibv_destroy_cq(f->a), 0);
    f->qp_a = NULL;
    assert_int_equal(ibv_get_async_event(f->ctx, &event), 0);
    assert_ptr_equal(event.element.cq, f->b);
    ibv_ack_async_event(&event);
    assert_int_equal(f->b->async_events_completed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_channel_without_event_answers_eagain, setup, teardown),
        cmocka_unit_test_setup_teardown(test_channel_several_events_each_delivered, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_channel_destroyed_cq_takes_its_events_along, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_ack_on_wrong_cq_does_not_count, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroy_busy_objects_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_async_qp_event_reaches_its_context, setup, teardown),
        cmocka_unit_test_setup_teardown(test_async_destroyed_object_takes_its_events_along, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
