// SPDX-License-Identifier: BSD-2-Clause
#include "link/udp.h"
#include "link/udp_internal.h"
#include "link/udp_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define PACKETS 2000
#define LEN     700

struct run {
    struct udp_testing net;
    int ngot;
    uint32_t psns[2 * PACKETS];
    uint64_t bad;
};

static void on_packet(void *arg, const struct wf_pkt *pkt)
{
    struct run *r = arg;
    assert_true(r->ngot < 2 * PACKETS);
    assert_int_equal(pkt->len, LEN);
    for (uint32_t i = 0; i < LEN; i++)
        assert_int_equal(((uint8_t *)pkt->iov[0].iov_base)[i], (uint8_t)(pkt->psn + i));
    r->psns[r->ngot++] = pkt->psn;
}

// Send PACKETS packets through the faults `text`; each buffer is spoilt right after its flush.
static struct run *run_with(const char *text)
{
    struct run *r = calloc(1, sizeof(*r));
    setenv("WEFT_UDP_FAULTS", text, 1);
    assert_int_equal(udp_testing_open(&r->net, false), 0);
    unsetenv("WEFT_UDP_FAULTS");
    struct wf_link *a = r->net.a, *b = r->net.b;
    b->deliver = on_packet;
    b->arg = r;
    for (uint32_t psn = 0; psn < PACKETS; psn++) {
        uint8_t data[LEN];
        for (uint32_t i = 0; i < LEN; i++)
            data[i] = (uint8_t)(psn + i);
        struct iovec iov = {data, LEN};
        struct wf_pkt pkt = {.opcode = WF_OP_WRITE_MIDDLE, .pkey = 0xffff, .dqpn = 9, .psn = psn};
        pkt.iov = &iov;
        pkt.niov = 1;
        pkt.len = LEN;
        assert_int_equal(a->ops->send(a, &r->net.to_b, &pkt), 0);
        a->ops->flush(a);
        memset(data, 0, LEN);
        b->ops->poll(b, 64);
    }
    for (int i = 0; i < 4; i++) {
        a->ops->flush(a);
        b->ops->poll(b, 64);
    }
    r->bad = wf_udp_link_counters(b)->rx_bad_icrc + wf_udp_link_counters(b)->rx_malformed;
    udp_testing_close(&r->net);
    return r;
}

static void test_drop_loses_about_the_share_asked_for(void **state)
{
    struct run *r = run_with("drop=0.1,seed=7");
    assert_in_range(PACKETS - r->ngot, 140, 260);
    for (int i = 1; i < r->ngot; i++)
        assert_true(r->psns[i] > r->psns[i - 1]);
    free(r);
}

static void test_dup_delivers_some_twice(void **state)
{
    struct run *r = run_with("dup=0.1,seed=7");
    assert_in_range(r->ngot - PACKETS, 140, 260);
    free(r);
}

static void test_reorder_loses_nothing(void **state)
{
    struct run *r = run_with("reorder=0.1,seed=7");
    int late = 0;
    uint64_t sum = 0;
    for (int i = 0; i < r->ngot; i++) {
        sum += r->psns[i];
        late += i && r->psns[i] < r->psns[i - 1];
    }
    assert_int_equal(r->ngot, PACKETS);
    assert_true(sum == (uint64_t)PACKETS * (PACKETS - 1) / 2);
    assert_true(late > 100);
    free(r);
}

static void test_corrupt_packets_never_arrive(void **state)
{
    struct run *r = run_with("corrupt=0.1,seed=7");
    assert_in_range(r->bad, 140, 260);
    // Those whose only wrong bits are not covered (FECN, BECN) are right.
    assert_int_equal(r->ngot + (int)r->bad, PACKETS);
    free(r);
}

static void test_same_seed_gives_the_same_run(void **state)
{
    const char *text = "drop=0.05,dup=0.05,reorder=0.05,corrupt=0.05,seed=42";
    struct run *a = run_with(text), *b = run_with(text);
    assert_int_equal(a->ngot, b->ngot);
    assert_memory_equal(a->psns, b->psns, sizeof(a->psns));
    free(b);
    b = run_with("drop=0.05,dup=0.05,reorder=0.05,corrupt=0.05,seed=43");
    assert_memory_not_equal(a->psns, b->psns, sizeof(a->psns));
    free(a);
    free(b);
}

static void test_text_that_is_not_understood_is_ignored(void **state)
{
    assert_null(wf_udp_faults_create(NULL));
    assert_null(wf_udp_faults_create(""));
    assert_null(wf_udp_faults_create("drop"));
    assert_null(wf_udp_faults_create("drop=2"));
    assert_null(wf_udp_faults_create("drop=-1"));
    assert_null(wf_udp_faults_create("drop=0.1x"));
    assert_null(wf_udp_faults_create("lose=0.1"));
    struct wf_udp_faults *f = wf_udp_faults_create("drop=1,seed=3");
    assert_non_null(f);
    wf_udp_faults_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drop_loses_about_the_share_asked_for),
        cmocka_unit_test(test_dup_delivers_some_twice),
        cmocka_unit_test(test_reorder_loses_nothing),
        cmocka_unit_test(test_corrupt_packets_never_arrive),
        cmocka_unit_test(test_same_seed_gives_the_same_run),
        cmocka_unit_test(test_text_that_is_not_understood_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
