// SPDX-License-Identifier: BSD-2-Clause
// The target is this process itself: cross-process copies to oneself are always allowed.
#include "link/fabric_impl.h"
#include "link/onesided.h"
#include "wire/packet.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SLOT 5u
#define QPN  (SLOT << 16 | 9)
#define KEY  (7u << 8 | 1)

static uint8_t target[8192], local[8192];
static struct wf_region *region;
static struct wf_peer peer;
static struct iovec iov;
static struct wf_onesided op;

static int setup(void **state)
{
    int fd;
    if (wf_region_create(&region, &fd))
        return -1;
    close(fd);
    peer = (struct wf_peer){
        .slot = SLOT, .self = 4, .pid = getpid(), .alive = true, .cma = true, .region = region};
    struct wf_qp_entry *q = &region->qps[9];
    q->remote_qpn = 0x040001;
    q->pd = 2;
    q->access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    q->epsn = 0xfffffe;
    q->ready = 1;
    struct wf_key_entry *k = &region->keys[7];
    k->access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    k->pd = 2;
    k->iova = 0x10000;
    k->addr = (uint64_t)(uintptr_t)target;
    k->len = sizeof(target);
    k->key = KEY;
    memset(target, 1, sizeof(target));
    memset(local, 2, sizeof(local));
    iov = (struct iovec){local, sizeof(local)};
    op = (struct wf_onesided){.peer = &peer,
                              .dqpn = QPN,
                              .sqpn = 0x040001,
                              .psn = 0xfffffe,
                              .npsn = 4,
                              .rkey = KEY,
                              .va = 0x10000,
                              .iov = &iov,
                              .niov = 1,
                              .len = sizeof(local),
                              .final = true};
    return 0;
}

static int teardown(void **state)
{
    wf_region_unmap(region);
    return 0;
}

static void test_write_final_moves_data_psn_and_msn(void **state)
{
    assert_int_equal(wf_onesided_write(&op), 0);
    assert_memory_equal(target, local, sizeof(target));
    assert_int_equal(atomic_load(&region->qps[9].epsn), 2);
    assert_int_equal(atomic_load(&region->qps[9].msn), 1);
    assert_int_equal(atomic_load(&region->hazard[4][0]), 0);
}

static void test_read_in_chunks_advances_once(void **state)
{
    memset(target, 9, sizeof(target));
    op.final = false;
    op.len = iov.iov_len = 5000;
    assert_int_equal(wf_onesided_read(&op), 0);
    assert_int_equal(atomic_load(&region->qps[9].epsn), 0xfffffe);
    op.va += 5000;
    op.len = sizeof(local) - 5000;
    iov = (struct iovec){local + 5000, sizeof(local) - 5000};
    op.final = true;
    assert_int_equal(wf_onesided_read(&op), 0);
    assert_memory_equal(target, local, sizeof(local));
    assert_int_equal(atomic_load(&region->qps[9].epsn), 2);
}

// Each refusal leaves memory, PSN and hazards as they were.
static void refused(void)
{
    uint32_t epsn = atomic_load(&region->qps[9].epsn);
    assert_int_equal(wf_onesided_write(&op), -EAGAIN);
    assert_int_equal(target[0], 1);
    assert_int_equal(atomic_load(&region->qps[9].epsn), epsn);
    for (int k = 0; k < WF_HAZARDS_PER_SLOT; k++)
        assert_int_equal(atomic_load(&region->hazard[4][k]), 0);
}

static void test_write_qp_not_ready_is_left_to_responder(void **state)
{
    region->qps[9].ready = 0;
    refused();
}

static void test_write_from_other_qp_is_left_to_responder(void **state)
{
    op.sqpn++;
    refused();
}

static void test_write_wrong_psn_is_left_to_responder(void **state)
{
    op.psn--;
    refused();
}

static void test_write_without_qp_access_is_left_to_responder(void **state)
{
    region->qps[9].access = IBV_ACCESS_REMOTE_READ;
    refused();
}

static void test_write_stale_key_is_left_to_responder(void **state)
{
    op.rkey++;
    refused();
    op.rkey = 0;
    refused();
    op.rkey = UINT32_MAX;
    refused();
}

static void test_write_outside_region_is_left_to_responder(void **state)
{
    op.va++;
    refused();
    op.va = 0xffff;
    refused();
    op.va = UINT64_MAX - 100;
    refused();
}

static void test_write_wrong_pd_access_or_window_is_left_to_responder(void **state)
{
    region->keys[7].pd = 3;
    refused();
    region->keys[7].pd = 2;
    region->keys[7].access = IBV_ACCESS_REMOTE_READ;
    refused();
    region->keys[7].access = IBV_ACCESS_REMOTE_WRITE;
    region->keys[7].qpn = QPN + 1;
    refused();
}

static void test_write_to_missing_page_is_left_to_responder(void **state)
{
    region->keys[7].addr = 4096;
    refused();
}

static void test_write_peer_dead_or_other_slot_is_left_to_responder(void **state)
{
    peer.alive = false;
    refused();
    peer.alive = true;
    op.dqpn += 1 << 16;
    refused();
}

static void test_write_no_bytes_needs_no_key(void **state)
{
    op.len = 0;
    op.niov = 0;
    op.rkey = 0;
    op.npsn = 1;
    assert_int_equal(wf_onesided_write(&op), 0);
    assert_int_equal(atomic_load(&region->qps[9].epsn), 0xffffff);
}

static void *clear_soon(void *arg)
{
    for (int i = 0; i < 100; i++)
        sched_yield();
    atomic_store(&region->hazard[200][1], 0);
    return NULL;
}

static void test_hazard_wait_until_copy_ends(void **state)
{
    pthread_t t;
    wf_hazard_wait(region, KEY);
    atomic_store(&region->hazard[201][0], KEY + 1);
    atomic_store(&region->hazard[200][1], KEY);
    pthread_create(&t, NULL, clear_soon, NULL);
    wf_hazard_wait(region, KEY);
    assert_int_equal(atomic_load(&region->hazard[200][1]), 0);
    pthread_join(t, NULL);
}

static void test_payload_of_a_qp_that_sends_is_held_during_the_copy(void **state)
{
    _Atomic uint32_t *hazard = wf_sender_hold(&peer, QPN, 0x040001);
    assert_non_null(hazard);
    assert_int_equal(atomic_load(hazard), QPN);
    assert_true(wf_sender_release(&peer, hazard, QPN));
    wf_sender_wait(region, QPN); // nobody copies: returns at once
}

static void test_payload_of_a_qp_that_is_gone_is_lost(void **state)
{
    assert_null(wf_sender_hold(&peer, QPN, 0x040002)); // connected with another by now
    assert_null(wf_sender_hold(&peer, QPN + (1 << 16), 0x040001));
    _Atomic uint32_t *hazard = wf_sender_hold(&peer, QPN, 0x040001);
    assert_non_null(hazard);
    region->qps[9].ready = 0;
    wf_sender_wait(region, QPN); // not for ever
    assert_false(wf_sender_release(&peer, hazard, QPN));
    assert_null(wf_sender_hold(&peer, QPN, 0x040001));
    assert_int_equal(atomic_load(&region->hazard[4][0]), 0);
    assert_int_equal(atomic_load(&region->hazard[4][1]), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_write_final_moves_data_psn_and_msn),
        WITH(test_read_in_chunks_advances_once),
        WITH(test_write_qp_not_ready_is_left_to_responder),
        WITH(test_write_from_other_qp_is_left_to_responder),
        WITH(test_write_wrong_psn_is_left_to_responder),
        WITH(test_write_without_qp_access_is_left_to_responder),
        WITH(test_write_stale_key_is_left_to_responder),
        WITH(test_write_outside_region_is_left_to_responder),
        WITH(test_write_wrong_pd_access_or_window_is_left_to_responder),
        WITH(test_write_to_missing_page_is_left_to_responder),
        WITH(test_write_peer_dead_or_other_slot_is_left_to_responder),
        WITH(test_write_no_bytes_needs_no_key),
        WITH(test_hazard_wait_until_copy_ends),
        WITH(test_payload_of_a_qp_that_sends_is_held_during_the_copy),
        WITH(test_payload_of_a_qp_that_is_gone_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
