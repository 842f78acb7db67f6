// SPDX-License-Identifier: BSD-2-Clause
// The completion ring as an Arbel consumer sees it.
#include "queue/cq.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct wf_cq cq;
static unsigned events;

static void on_comp(void *user)
{
    (void)user;
    events++;
}

static int setup(void **state)
{
    (void)state;
    memset(&cq, 0, sizeof(cq));
    cq.on_comp = on_comp;
    events = 0;
    return wf_cqring_init(&cq, 4);
}

static int teardown(void **state)
{
    (void)state;
    wf_cqring_fini(&cq);
    return 0;
}

static uint32_t dword(unsigned index, unsigned n)
{
    uint32_t v;
    memcpy(&v, cq.ring + index * WF_CQE_BYTES + n * 4, 4);
    return __builtin_bswap32(v);
}

static void expect_entry(const struct wf_completion *c, const uint32_t want[8])
{
    memset(cq.ring, 0xa5, WF_CQE_BYTES);
    cq.pi = 0;
    atomic_store(&cq.ci, 0);
    assert_true(wf_cqring_add(&cq, c));
    for (unsigned n = 0; n < 8; n++)
        assert_int_equal(dword(0, n), want[n]);
}

static void test_entries_match_the_published_vectors(void **state)
{
    (void)state;
    struct wf_completion recv = {
        .qpn = 0x411, .wqe_adr = 0x40, .arbel_opcode = 0x04, .byte_len = 0x40};
    expect_entry(&recv, (uint32_t[8]){0x411, 0, 0, 0, 0, 0x40, 0x40, 0x04000000});
    struct wf_completion write = {
        .qpn = 0x411, .wqe_adr = 0x2040, .send = true, .arbel_opcode = 0x08};
    expect_entry(&write, (uint32_t[8]){0x411, 0, 0, 0, 0, 0, 0x2040, 0x08800000});
    struct wf_completion read = {
        .qpn = 0x411, .wqe_adr = 0x2080, .send = true, .arbel_opcode = 0x10, .byte_len = 0x1000};
    expect_entry(&read, (uint32_t[8]){0x411, 0, 0, 0, 0, 0x1000, 0x2080, 0x10800000});
    struct wf_completion failed = {.qpn = 0x411,
                                   .wqe_adr = 0x2040,
                                   .send = true,
                                   .status = IBV_WC_REM_ACCESS_ERR,
                                   .reason = 0x88};
    expect_entry(&failed, (uint32_t[8]){0x411, 0, 0, 0, 0x13880000, 0, 0x2040, 0xff000000});
    uint32_t imm = __builtin_bswap32(0x11223344);
    struct wf_completion ud = {.qpn = 0x411,
                               .wqe_adr = 0x1c0,
                               .arbel_opcode = 0x65,
                               .byte_len = 0x428,
                               .imm = imm,
                               .wc_flags = IBV_WC_WITH_IMM | IBV_WC_GRH,
                               .src_qp = 0x412,
                               .sl = 3};
    expect_entry(&ud,
                 (uint32_t[8]){0x411, 0, 0x412, 0x30800000, 0x11223344, 0x428, 0x1c0, 0x65000000});
}

static void test_fresh_ring_is_empty_and_owned_by_hardware(void **state)
{
    struct wf_completion c;
    (void)state;
    assert_false(wf_cqring_peek(&cq, &c));
    for (unsigned i = 0; i < cq.size; i++)
        assert_int_equal(dword(i, 7), 0x80);
}

static void fill(unsigned n, uint32_t qpn)
{
    for (unsigned i = 0; i < n; i++) {
        struct wf_completion c = {.qpn = qpn, .wqe_adr = i * 64};
        assert_true(wf_cqring_add(&cq, &c));
    }
}

static void test_overrun_fails_and_keeps_the_first_entries(void **state)
{
    struct wf_completion c = {.qpn = 9};
    (void)state;
    fill(4, 1);
    assert_false(wf_cqring_add(&cq, &c));
    assert_true(cq.failed);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(wf_cqring_peek(&cq, &c));
        assert_int_equal(c.wqe_adr, i * 64);
        wf_cqring_consume(&cq);
    }
    assert_false(wf_cqring_peek(&cq, &c));
    assert_false(wf_cqring_add(&cq, &c));
}

static void test_overrun_ignored_drops_the_oldest(void **state)
{
    struct wf_completion c;
    (void)state;
    cq.ignore_overrun = true;
    fill(6, 1);
    assert_int_equal(wf_cqring_pending(&cq), 4);
    assert_true(wf_cqring_peek(&cq, &c));
    assert_int_equal(c.wqe_adr, 2 * 64);
}

static void test_counters_wrap(void **state)
{
    (void)state;
    cq.pi = cq.retired = 0xfffffff0;
    atomic_store(&cq.ci, 0xfffffff0);
    for (unsigned i = 0; i < 40; i++) {
        struct wf_completion c = {.qpn = i, .wqe_adr = i * 64}, out;
        assert_true(wf_cqring_add(&cq, &c));
        assert_true(wf_cqring_peek(&cq, &out));
        assert_int_equal(out.qpn, i);
        wf_cqring_consume(&cq);
    }
}

static unsigned gone;
static void count_gone(void *arg, const struct wf_completion *c)
{
    (void)arg, (void)c;
    gone++;
}

static void test_clean_drops_one_qp_and_keeps_the_others_in_order(void **state)
{
    struct wf_completion c;
    (void)state;
    gone = 0;
    for (unsigned i = 0; i < 4; i++) {
        c = (struct wf_completion){.qpn = i % 2, .wqe_adr = i * 64};
        wf_cqring_add(&cq, &c);
    }
    wf_cqring_clean(&cq, 0, count_gone, NULL);
    assert_int_equal(gone, 2);
    assert_int_equal(wf_cqring_pending(&cq), 2);
    assert_true(wf_cqring_peek(&cq, &c));
    assert_int_equal(c.wqe_adr, 64);
    assert_int_equal(dword(2, 7), 0x80);
    fill(2, 5);
}

static void test_resize_keeps_entries_and_refuses_too_small(void **state)
{
    struct wf_completion c;
    (void)state;
    fill(3, 1);
    assert_int_equal(wf_cqring_resize(&cq, 2), -EINVAL);
    assert_int_equal(wf_cqring_resize(&cq, 16), 0);
    assert_int_equal(cq.size, 16);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(wf_cqring_peek(&cq, &c));
        assert_int_equal(c.wqe_adr, i * 64);
        wf_cqring_consume(&cq);
    }
    fill(16, 2);
}

static void test_moderation_waits_for_count_or_time(void **state)
{
    (void)state;
    struct wf_completion c = {.qpn = 1, .timestamp = 1000};
    cq.moderate_count = 3;
    cq.moderate_usec = 10;
    cq.armed = WF_CQ_ARMED;
    wf_cqring_add(&cq, &c);
    wf_cqring_add(&cq, &c);
    assert_int_equal(events, 0);
    wf_cqring_expire(&cq, 10999);
    assert_int_equal(events, 0);
    wf_cqring_expire(&cq, 11000);
    assert_int_equal(events, 1);
    cq.armed = WF_CQ_ARMED;
    wf_cqring_consume(&cq);
    wf_cqring_consume(&cq);
    for (unsigned i = 0; i < 3; i++)
        wf_cqring_add(&cq, &c);
    assert_int_equal(events, 2);
}

static void test_every_status_has_its_syndrome(void **state)
{
    (void)state;
    assert_int_equal(wf_arbel_syndrome(IBV_WC_LOC_LEN_ERR), 0x01);
    assert_int_equal(wf_arbel_syndrome(IBV_WC_WR_FLUSH_ERR), 0x05);
    assert_int_equal(wf_arbel_syndrome(IBV_WC_RETRY_EXC_ERR), 0x15);
    assert_int_equal(wf_arbel_syndrome(IBV_WC_RNR_RETRY_EXC_ERR), 0x16);
    assert_true(wf_arbel_syndrome(IBV_WC_GENERAL_ERR) > 0x24);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_entries_match_the_published_vectors),
        T(test_fresh_ring_is_empty_and_owned_by_hardware),
        T(test_overrun_fails_and_keeps_the_first_entries),
        T(test_overrun_ignored_drops_the_oldest),
        T(test_counters_wrap),
        T(test_clean_drops_one_qp_and_keeps_the_others_in_order),
        T(test_resize_keeps_entries_and_refuses_too_small),
        T(test_moderation_waits_for_count_or_time),
        T(test_every_status_has_its_syndrome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
