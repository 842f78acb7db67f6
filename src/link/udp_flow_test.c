// SPDX-License-Identifier: BSD-2-Clause
#include "link/udp_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct wf_icrc_scope peer = {.sport = 0xc001, .src = {10, 0, 0, 1}};

static bool accept_id(struct wf_udp_flow *flow, uint16_t id, bool df)
{
    return wf_udp_flow_accept(flow, &(struct wf_icrc_seen){.id = id, .df = df});
}

static void test_steady_and_counting_senders_are_predicted(void **state)
{
    struct wf_udp_flow table[WF_UDP_FLOWS] = {0};
    struct wf_udp_flow *flow = wf_udp_flow_find(table, &peer);
    assert_int_equal(wf_udp_flow_expect(flow), 0);
    assert_true(accept_id(flow, 0, true));
    assert_int_equal(wf_udp_flow_expect(flow), 0);
    assert_true(accept_id(flow, 0xfffe, true));
    assert_int_equal(wf_udp_flow_expect(flow), 0xffff);
    assert_true(accept_id(flow, 0xffff, true));
    assert_int_equal(wf_udp_flow_expect(flow), 0);
}

static void test_sender_of_small_values_is_held_to_them(void **state)
{
    struct wf_udp_flow table[WF_UDP_FLOWS] = {0};
    struct wf_udp_flow *flow = wf_udp_flow_find(table, &peer);
    for (int i = 0; i < 40; i++)
        assert_true(accept_id(flow, (uint16_t)(i % 15), true));
    assert_false(accept_id(flow, 64, true));
    assert_false(accept_id(flow, 3, false));
    assert_true(accept_id(flow, 3, true));
    assert_ptr_equal(wf_udp_flow_find(table, &peer), flow);
}

static void test_sender_that_changes_for_good_is_believed_in_the_end(void **state)
{
    struct wf_udp_flow table[WF_UDP_FLOWS] = {0};
    struct wf_udp_flow *flow = wf_udp_flow_find(table, &peer);
    for (int i = 0; i < 40; i++)
        assert_true(accept_id(flow, 0, true));
    int refused = 0;
    while (!accept_id(flow, (uint16_t)(1000 + refused), true))
        assert_true(++refused < 20);
    assert_int_equal(refused, 8);
    assert_true(accept_id(flow, 2000, true));
}

static void test_other_sender_starts_afresh(void **state)
{
    struct wf_udp_flow table[WF_UDP_FLOWS] = {0};
    struct wf_icrc_scope other = peer;
    assert_true(accept_id(wf_udp_flow_find(table, &peer), 77, true));
    other.sport++;
    assert_int_equal(wf_udp_flow_expect(wf_udp_flow_find(table, &other)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady_and_counting_senders_are_predicted),
        cmocka_unit_test(test_sender_of_small_values_is_held_to_them),
        cmocka_unit_test(test_sender_that_changes_for_good_is_believed_in_the_end),
        cmocka_unit_test(test_other_sender_starts_afresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
