// SPDX-License-Identifier: BSD-2-Clause
#include "queue/wq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_sizes_are_at_least_what_was_asked(void **state)
{
    static const uint32_t sizes[][3] = {{1, 1, 0}, {100, 4, 64}, {1000, 32, 1024}, {32768, 1, 1}};
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct wf_sq q;
        assert_int_equal(wf_sq_init(&q, sizes[i][0], sizes[i][1], sizes[i][2]), 0);
        assert_int_equal(q.max_wr, sizes[i][0]);
        assert_true(q.max_sge >= sizes[i][1]);
        assert_true(q.max_inline >= sizes[i][2]);
        assert_true(q.mask + 1 >= q.max_wr);
        struct wf_swqe *last = wf_sq_slot(&q, q.mask);
        last->sge[q.max_sge - 1].lkey = 1; // the last byte is ours
        wf_sq_fini(&q);
    }
}

static void test_slot_number_becomes_a_counter_across_the_wrap(void **state)
{
    (void)state;
    assert_int_equal(wf_wq_counter(0xfffffffe, 1, 7), 1);
    assert_int_equal(wf_wq_counter(10, 2, 7), 10);
    assert_int_equal(wf_wq_counter(10, 1, 7), 17);
}

static uint32_t post(struct wf_srqueue *q, uint64_t id)
{
    uint32_t slot = q->free;
    assert_true(slot < q->size);
    q->free = q->next_free[slot];
    struct ibv_recv_wr wr = {.wr_id = id};
    wf_rwqe_fill(wf_srq_slot(q, slot), &wr);
    q->fifo[q->head++ & q->fifo_mask] = slot;
    return slot;
}

static void test_srq_grows_with_receives_posted_and_under_way(void **state)
{
    struct wf_srqueue q;
    (void)state;
    assert_int_equal(wf_srqueue_init(&q, 3, 1), 0);
    q.head = q.tail = 0xfffffffe; // counters wrap soon
    for (uint64_t i = 0; i < 3; i++)
        post(&q, i);
    uint32_t under_way = wf_srqueue_take(&q);
    assert_int_equal(wf_srqueue_grow(&q, 10), 0);
    assert_int_equal(wf_srq_slot(&q, under_way)->wr_id, 0);
    for (uint64_t i = 3; i < 10; i++)
        post(&q, i);
    assert_int_equal(q.free, q.size); // full: 9 posted, 1 under way
    for (uint64_t i = 1; i < 10; i++) {
        uint32_t slot = wf_srqueue_take(&q);
        assert_int_equal(wf_srq_slot(&q, slot)->wr_id, i);
        wf_srqueue_give_back(&q, slot);
    }
    assert_int_equal(wf_srqueue_posted(&q), 0);
    wf_srqueue_fini(&q);
}

static void test_receive_length_is_summed_without_overflow(void **state)
{
    _Alignas(struct wf_rwqe) uint8_t room[sizeof(struct wf_rwqe) + 2 * sizeof(struct ibv_sge)];
    struct wf_rwqe *w = (struct wf_rwqe *)room;
    struct ibv_sge sge[2] = {{.length = 0xffffffff}, {.length = 0xffffffff}};
    struct ibv_recv_wr wr = {.wr_id = 5, .sg_list = sge, .num_sge = 2};
    (void)state;
    wf_rwqe_fill(w, &wr);
    assert_int_equal(w->len, UINT32_MAX);
    sge[0].length = 3;
    sge[1].length = 4;
    wf_rwqe_fill(w, &wr);
    assert_int_equal(w->len, 7);
    assert_int_equal(w->wr_id, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_are_at_least_what_was_asked),
        cmocka_unit_test(test_slot_number_becomes_a_counter_across_the_wrap),
        cmocka_unit_test(test_srq_grows_with_receives_posted_and_under_way),
        cmocka_unit_test(test_receive_length_is_summed_without_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
