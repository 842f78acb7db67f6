// SPDX-License-Identifier: BSD-2-Clause
#include "link/link.h"
#include "wire/opcode.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct wf_link *loop;
static struct wf_path path = {.sgid.raw = {1}, .dgid.raw = {2}, .tclass = 3};
static uint32_t delivered, answers;

static void count(void *arg, const struct wf_pkt *pkt)
{
    assert_int_equal(pkt->psn, delivered++);
    assert_int_equal(pkt->sgid->raw[0], 1);
    assert_int_equal(pkt->dgid->raw[0], 2);
    assert_int_equal(pkt->tclass, 3);
    uint32_t len = 0;
    for (int i = 0; i < pkt->niov; i++)
        len += (uint32_t)pkt->iov[i].iov_len;
    assert_int_equal(len, pkt->len);
    if (answers) {
        struct wf_pkt p = {.psn = pkt->psn + 1};
        answers--;
        assert_int_equal(loop->ops->send(loop, &path, &p), 0);
    }
}

static int setup(void **state)
{
    delivered = answers = 0;
    int ret = wf_loop_link_create(&loop);
    loop->deliver = count;
    return ret;
}

static int teardown(void **state)
{
    loop->ops->destroy(loop);
    return 0;
}

static void test_packets_arrive_in_order_with_all_pieces(void **state)
{
    struct iovec iov[9];
    for (uint32_t i = 0; i < 200; i++) {
        int niov = (int)(i % 9);
        for (int k = 0; k < niov; k++)
            iov[k] = (struct iovec){&iov, 10};
        struct wf_pkt p = {.psn = i, .niov = niov, .iov = iov, .len = 10u * (uint32_t)niov};
        assert_int_equal(loop->ops->send(loop, &path, &p), 0);
        memset(iov, 0, sizeof(iov)); // the list was copied
    }
    assert_int_equal(loop->ops->poll(loop, 50), 50);
    assert_int_equal(loop->ops->poll(loop, 500), 150);
    assert_int_equal(loop->ops->poll(loop, 500), 0);
}

static void test_answer_during_delivery_is_delivered(void **state)
{
    struct wf_pkt p = {.psn = 0};
    answers = 99;
    assert_int_equal(loop->ops->send(loop, &path, &p), 0);
    assert_int_equal(loop->ops->poll(loop, 1000), 100);
}

static void test_queue_full_says_again_and_recovers(void **state)
{
    uint32_t sent = 0;
    struct wf_pkt p = {0};
    while (p.psn = sent, loop->ops->send(loop, &path, &p) == 0)
        sent++;
    assert_true(sent > 10000);
    assert_int_equal(loop->ops->poll(loop, 1), 1);
    assert_int_equal(loop->ops->send(loop, &path, &p), 0);
    assert_int_equal(loop->ops->send(loop, &path, &p), -EAGAIN);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_packets_arrive_in_order_with_all_pieces),
        WITH(test_answer_during_delivery_is_delivered),
        WITH(test_queue_full_says_again_and_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
