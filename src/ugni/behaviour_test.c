// SPDX-License-Identifier: BSD-2-Clause
// What clients count on: values in events, order, credits, alignment, overrun, chains, flags.
#include "ugni/fixture.h"

#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WANT(code, call) fixture_expect(GNI_RC_##code, call, #call, __LINE__)

static void finish(struct fixture *f, gni_post_descriptor_t *d, uint32_t local_event)
{
    gni_post_descriptor_t *back = NULL;
    gni_cq_entry_t e = fixture_event(f->source, GNI_RC_SUCCESS);
    assert_int_equal(gni_cq_get_type(e), GNI_CQ_EVENT_TYPE_POST);
    assert_int_equal(gni_cq_get_inst_id(e), local_event);
    assert_true(GNI_CQ_STATUS_OK(e));
    WANT(SUCCESS, GNI_GetCompleted(f->source, e, &back));
    assert_ptr_equal(back, d);
    fixture_expect(GNI_RC_INVALID_PARAM, GNI_GetCompleted(f->source, e, &back), "twice", __LINE__);
}

// ---- events -------------------------------------------------------------------------------------

static void test_event_values_are_those_at_post_time(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_PUT, 0, 4096, 8);
    d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    d.post_id = 0xfeedfacecafe;
    WANT(SUCCESS, GNI_PostFma(f->ep, &d)); // after the bind: remote_id, own inst_id
    finish(f, &d, 7);
    assert_int_equal(gni_cq_get_inst_id(fixture_event(f->remote, GNI_RC_SUCCESS)), 7);
    WANT(SUCCESS, GNI_EpSetEventData(f->ep, 0x123456, 0x89abcdef));
    WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    WANT(SUCCESS, GNI_EpSetEventData(f->ep, 1, 2)); // too late for that post
    finish(f, &d, 0x123456);
    gni_cq_entry_t e = fixture_event(f->remote, GNI_RC_SUCCESS);
    assert_int_equal(gni_cq_get_rem_inst_id(e), 0x89abcdef);
    assert_int_equal(gni_cq_get_inst_id(e), 0xabcdef); // 24 bits on Aries
    assert_true(d.post_id == 0xfeedfacecafe);
}

static void test_rebind_resets_event_values(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_PUT, 0, 4096, 8);
    WANT(SUCCESS, GNI_EpSetEventData(f->ep, 1, 2));
    WANT(SUCCESS, GNI_EpUnbind(f->ep));
    WANT(SUCCESS, GNI_EpBind(f->ep, f->pe, 99)); // another id than the peer's: routing ignores it
    WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    finish(f, &d, 99);
    WANT(SUCCESS, GNI_EpUnbind(f->ep)); // at once after the last completion
}

static void test_get_and_amo_tell_the_owner(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_RDMA_GET, 0, 4096, 64);
    d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    WANT(SUCCESS, GNI_EpSetEventData(f->ep, 5, (3u << 31) | 77));
    WANT(SUCCESS, GNI_PostRdma(f->ep, &d));
    finish(f, &d, 5);
    assert_int_equal(gni_cq_get_rem_inst_id(fixture_event(f->remote, GNI_RC_SUCCESS)),
                     (3u << 31) | 77);
    d = fixture_post(f, GNI_POST_AMO, 0, 4096, 8);
    d.amo_cmd = GNI_FMA_ATOMIC_FADD;
    d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    finish(f, &d, 5);
    fixture_event(f->remote, GNI_RC_SUCCESS);
}

static void test_cq_write_carries_48_bits(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_CQWRITE, 0, 0, 0);
    d.cqwrite_value = 0xabcd123456789abcull;
    WANT(SUCCESS, GNI_EpSetEventData(f->ep, 42, 43));
    WANT(SUCCESS, GNI_PostCqWrite(f->ep, &d));
    finish(f, &d, 42);
    assert_true(gni_cq_get_data(fixture_event(f->remote, GNI_RC_SUCCESS)) == 0x123456789abcull);
}

static void test_silent_posts_make_no_source_event_and_keep_no_slot(void **state)
{
    struct fixture *f = *state;
    gni_cq_entry_t e;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_PUT, 0, 4096, 8);
    d.cq_mode = GNI_CQMODE_SILENT;
    for (int i = 0; i < 200; i++) // more than the queue has slots
        WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    WANT(NOT_DONE, GNI_CqGetEvent(f->source, &e));
}

static void test_posts_beyond_the_slots_are_refused_until_reaped(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t d[65], *back;
    for (int i = 0; i < 64; i++) {
        d[i] = fixture_post(f, GNI_POST_FMA_PUT, 0, 4096, 8);
        WANT(SUCCESS, GNI_PostFma(f->ep, &d[i]));
    }
    d[64] = d[0];
    WANT(ERROR_RESOURCE, GNI_PostFma(f->ep, &d[64]));
    gni_cq_entry_t e = fixture_event(f->source, GNI_RC_SUCCESS);
    WANT(ERROR_RESOURCE, GNI_PostFma(f->ep, &d[64])); // the slot goes with GetCompleted
    WANT(SUCCESS, GNI_GetCompleted(f->source, e, &back));
    assert_ptr_equal(back, &d[0]); // in post order
    WANT(SUCCESS, GNI_PostFma(f->ep, &d[64]));
}

static void test_dual_events_come_both_and_the_descriptor_with_them(void **state)
{
    (void)state;
    struct fixture f;
    gni_post_descriptor_t *back;
    fixture_open(&f, 30, GNI_CDM_MODE_DUAL_EVENTS, GNI_CQ_NOBLOCK);
    gni_post_descriptor_t d = fixture_post(&f, GNI_POST_RDMA_PUT, 0, 4096, 64);
    d.cq_mode = GNI_CQMODE_DUAL_EVENTS;
    WANT(SUCCESS, GNI_PostRdma(f.ep, &d));
    assert_ptr_equal(d.src_cq_hndl, f.source); // written back
    WANT(SUCCESS, GNI_GetCompleted(f.source, fixture_event(f.source, GNI_RC_SUCCESS), &back));
    assert_int_equal(back->cq_mode_complete, GNI_CQMODE_LOCAL_EVENT);
    WANT(SUCCESS, GNI_GetCompleted(f.source, fixture_event(f.source, GNI_RC_SUCCESS), &back));
    assert_int_equal(back->cq_mode_complete, GNI_CQMODE_DUAL_EVENTS);
    fixture_close(&f);
}

static void test_overrun_is_told_and_the_queue_goes_on(void **state)
{
    struct fixture *f = *state;
    gni_cq_handle_t small;
    gni_mem_handle_t h;
    gni_cq_entry_t e;
    WANT(SUCCESS, GNI_CqCreate(f->nic, 2, 0, GNI_CQ_NOBLOCK, NULL, NULL, &small));
    WANT(SUCCESS, GNI_MemRegister(f->nic, (uintptr_t)f->memory, 4096, small, 0, UINT32_MAX, &h));
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_PUT, 0, 0, 8);
    d.remote_mem_hndl = h;
    d.cq_mode = GNI_CQMODE_REMOTE_EVENT;
    for (int i = 0; i < 3; i++)
        WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    WANT(ERROR_RESOURCE, GNI_CqTestEvent(small));
    WANT(ERROR_RESOURCE, GNI_CqGetEvent(small, &e));
    assert_true(GNI_CQ_OVERRUN(e));
    WANT(SUCCESS, GNI_CqGetEvent(small, &e));
    WANT(SUCCESS, GNI_CqGetEvent(small, &e));
    WANT(NOT_DONE, GNI_CqGetEvent(small, &e));
    WANT(SUCCESS, GNI_PostFma(f->ep, &d)); // usable again
    WANT(SUCCESS, GNI_CqGetEvent(small, &e));
    assert_false(GNI_CQ_OVERRUN(e));
}

static void count_entry(gni_cq_entry_t *e, void *context)
{
    assert_int_equal(gni_cq_get_inst_id(*e), 7);
    ++*(int *)context;
}

static void test_handler_runs_once_an_entry(void **state)
{
    struct fixture *f = *state;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;
    gni_cq_entry_t e;
    int calls = 0;
    WANT(SUCCESS, GNI_CqCreate(f->nic, 8, 0, GNI_CQ_NOBLOCK, count_entry, &calls, &cq));
    WANT(SUCCESS, GNI_EpCreate(f->nic, cq, &ep));
    WANT(SUCCESS, GNI_EpBind(ep, f->pe, 7));
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_PUT, 0, 4096, 8);
    WANT(SUCCESS, GNI_PostFma(ep, &d));
    WANT(SUCCESS, GNI_CqTestEvent(cq));
    WANT(SUCCESS, GNI_CqGetEvent(cq, &e));
    WANT(NOT_DONE, GNI_CqGetEvent(cq, &e));
    assert_int_equal(calls, 1);
}

// ---- data ---------------------------------------------------------------------------------------

static void test_put_any_alignment_leaves_neighbours_alone(void **state)
{
    struct fixture *f = *state;
    for (unsigned off = 0; off < 8; off++)
        for (int rdma = 0; rdma < 2; rdma++) { // P59
            gni_post_descriptor_t d = fixture_post(f, rdma ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT,
                                                   off, 4096 + off, 13 + off);
            memset(f->memory, 'a', 64);
            memset(f->memory + 4096, 'z', 64);
            WANT(SUCCESS, rdma ? GNI_PostRdma(f->ep, &d) : GNI_PostFma(f->ep, &d));
            finish(f, &d, 7);
            for (unsigned i = 0; i < 64; i++)
                assert_int_equal(f->memory[4096 + i], i >= off && i < 13 + 2 * off ? 'a' : 'z');
        }
}

static void test_put_of_nothing_completes(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_PUT, 0, 4096, 0);
    WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    finish(f, &d, 7);
}

static void test_put_with_flag_sets_it_after_the_data(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_PUT_W_SYNCFLAG, 0, 4096, 16);
    memcpy(f->memory, "sixteen bytes ok", 16);
    d.sync_flag_addr = (uintptr_t)f->memory + 8192;
    d.sync_flag_value = 0x1122334455667788ull;
    WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    finish(f, &d, 7);
    assert_memory_equal(f->memory + 4096, "sixteen bytes ok", 16);
    assert_memory_equal(f->memory + 8192, &d.sync_flag_value, 8);
}

static void test_get_with_flag_puts_it_behind_the_data(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_GET_W_FLAG, 64, 4096, 20);
    uint32_t flag;
    memcpy(f->memory + 4096, "twenty bytes of text", 20);
    d.sync_flag_value = 0xdeadbeef;
    WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    finish(f, &d, 7);
    assert_memory_equal(f->memory + 64, "twenty bytes of text", 20);
    memcpy(&flag, f->memory + 84, 4);
    assert_int_equal(flag, 0xdeadbeef);
}

static void test_segments_are_addressed_by_offset(void **state)
{
    struct fixture *f = *state;
    gni_mem_segment_t segs[2] = {{(uintptr_t)f->memory + 8192, 4096},
                                 {(uintptr_t)f->memory + 4096, 4096}};
    gni_mem_handle_t h;
    WANT(SUCCESS,
         GNI_MemRegisterSegments(f->nic, segs, 2, f->remote, GNI_MEM_READWRITE, UINT32_MAX, &h));
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_RDMA_PUT, 0, 0, 200);
    memset(f->memory, 'q', 200);
    d.remote_mem_hndl = h;
    d.remote_addr = 4000; // 96 bytes in the first segment, 104 in the second
    WANT(SUCCESS, GNI_PostRdma(f->ep, &d));
    finish(f, &d, 7);
    assert_memory_equal(f->memory + 8192 + 4000, f->memory, 96);
    assert_memory_equal(f->memory + 4096, f->memory, 104);
    d.type = GNI_POST_RDMA_GET; // and as the local side
    d.local_mem_hndl = h;
    d.local_addr = 4000;
    d.remote_mem_hndl = f->handle;
    d.remote_addr = (uintptr_t)f->memory + 12288;
    memset(f->memory + 12288, 'r', 200);
    WANT(SUCCESS, GNI_PostRdma(f->ep, &d));
    finish(f, &d, 7);
    assert_memory_equal(f->memory + 8192 + 4000, f->memory + 12288, 96);
    assert_memory_equal(f->memory + 4096, f->memory + 12288, 104);
}

static void test_failures_come_as_events_with_a_text(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_RDMA_PUT, 0, FIXTURE_BYTES, 64), *back;
    gni_error_event_t ev;
    gni_err_handle_t err;
    char text[128];
    uint32_t again;
    WANT(SUCCESS, GNI_SubscribeErrors(f->nic, 0, GNI_ERRMASK_TRANSACTION, 0, &err));
    WANT(SUCCESS, GNI_PostRdma(f->ep, &d));
    gni_cq_entry_t e = fixture_event(f->source, GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(gni_cq_get_status(e), 9);
    WANT(SUCCESS, GNI_CqErrorStr(e, text, sizeof(text)));
    assert_non_null(strstr(text, "bounds"));
    WANT(SUCCESS, GNI_CqErrorRecoverable(e, &again));
    assert_int_equal(again, 0);
    WANT(TRANSACTION_ERROR, GNI_GetCompleted(f->source, e, &back));
    assert_ptr_equal(back, &d);
    assert_int_equal(back->status, 9);
    WANT(SUCCESS, GNI_GetErrorEvent(err, &ev));
    assert_int_equal(ev.error_category, GNI_ERRMASK_TRANSACTION);
    assert_int_equal(ev.error_code, 9);
    assert_int_equal(ev.ptag, 10);
    WANT(NOT_DONE, GNI_GetErrorEvent(err, &ev));
}

static void test_read_only_memory_is_not_written(void **state)
{
    struct fixture *f = *state;
    gni_mem_handle_t h, bare;
    WANT(SUCCESS, GNI_MemRegister(f->nic, (uintptr_t)f->memory + 8192, 4096, NULL,
                                  GNI_MEM_READ_ONLY, UINT32_MAX, &h));
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_RDMA_PUT, 0, 8192, 64);
    d.remote_mem_hndl = h;
    WANT(PERMISSION_ERROR, GNI_PostRdma(f->ep, &d));
    bare = h; // as a client may put it together: without the flag
    bare.qword2 &= ~(1ull << 34);
    d.remote_mem_hndl = bare;
    WANT(SUCCESS, GNI_PostRdma(f->ep, &d));
    gni_cq_entry_t e = fixture_event(f->source, GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(gni_cq_get_status(e), 8);
}

static void test_handles_put_together_by_clients_work(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_PUT, 0, 4096, 8);
    d.remote_mem_hndl.qword2 = 0xfffffff | 12ull << 28; // all pages, no CRC
    memcpy(f->memory, "rebuilt!", 8);
    WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    finish(f, &d, 7);
    assert_memory_equal(f->memory + 4096, "rebuilt!", 8);
}

static void test_vmdh_handles_work_with_offsets_and_addresses(void **state)
{
    struct fixture *f = *state;
    gni_mem_handle_t h, other;
    WANT(SUCCESS, GNI_SetMddResources(f->nic, 8));
    WANT(SUCCESS,
         GNI_MemRegister(f->nic, (uintptr_t)f->memory + 8192, 4096, NULL, GNI_MEM_USE_VMDH, 3, &h));
    fixture_expect(
        GNI_RC_ERROR_RESOURCE,
        GNI_MemRegister(f->nic, (uintptr_t)f->memory, 4096, NULL, GNI_MEM_USE_VMDH, 3, &other),
        "the entry is in use", __LINE__);
    assert_int_equal(h.qword1 >> 52, 3); // the index itself, and no address
    assert_true(h.qword1 << 12 == 0);
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_RDMA_PUT, 0, 0, 6);
    memcpy(f->memory, "offset", 6);
    d.remote_mem_hndl = h;
    d.remote_addr = 100;
    WANT(SUCCESS, GNI_PostRdma(f->ep, &d));
    finish(f, &d, 7);
    assert_memory_equal(f->memory + 8192 + 100, "offset", 6);
    d.remote_addr = (uintptr_t)f->memory + 8192 + 200;
    WANT(SUCCESS, GNI_PostRdma(f->ep, &d));
    finish(f, &d, 7);
    assert_memory_equal(f->memory + 8192 + 200, "offset", 6);
    WANT(SUCCESS, GNI_RebuildMemHndl(&h, 5, &other));
    assert_int_equal(other.qword1 >> 52, 5);
}

static void test_stale_handle_is_told(void **state)
{
    struct fixture *f = *state;
    gni_mem_handle_t h;
    WANT(SUCCESS, GNI_MemRegister(f->nic, (uintptr_t)f->memory, 4096, NULL, 0, UINT32_MAX, &h));
    WANT(SUCCESS, GNI_MemDeregister(f->nic, &h));
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_PUT, 0, 0, 8);
    d.remote_mem_hndl = h;
    WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    assert_int_equal(gni_cq_get_status(fixture_event(f->source, GNI_RC_TRANSACTION_ERROR)), 7);
}

static void test_regions_4095_live_at_once(void **state)
{
    struct fixture *f = *state;
    gni_mem_handle_t *h = calloc(4096, sizeof(*h));
    uint32_t n = 0;
    gni_return_t rc;
    while ((rc = GNI_MemRegister(f->nic, (uintptr_t)f->memory, 4096, NULL, 0, UINT32_MAX, &h[n])) ==
           GNI_RC_SUCCESS)
        n++;
    fixture_expect(GNI_RC_ERROR_RESOURCE, rc, "MemRegister", __LINE__);
    assert_int_equal(n, 4094); // 4095, one of which is the fixture's
    while (n--)
        WANT(SUCCESS, GNI_MemDeregister(f->nic, &h[n]));
    free(h);
}

static void test_chain_runs_all_and_makes_one_event(void **state)
{
    struct fixture *f = *state;
    gni_cq_entry_t e;
    gni_post_descriptor_t head = fixture_post(f, GNI_POST_FMA_GET, 0, 4096, 4);
    gni_ct_get_post_descriptor_t el[2];
    memcpy(f->memory + 4096, "abcdefghijkl", 12);
    for (int i = 0; i < 2; i++)
        el[i] =
            (gni_ct_get_post_descriptor_t){.next_descr = i ? NULL : &el[1],
                                           .ep_hndl = f->ep,
                                           .length = 4,
                                           .remote_addr = head.remote_addr + 4 + 4 * (unsigned)i,
                                           .remote_mem_hndl = f->handle,
                                           .local_addr = head.local_addr + 100 * (1 + (unsigned)i),
                                           .local_mem_hndl = f->handle};
    head.next_descr = el;
    WANT(SUCCESS, GNI_CtPostFma(f->ep, &head));
    finish(f, &head, 7);
    WANT(NOT_DONE, GNI_CqGetEvent(f->source, &e));
    assert_memory_equal(f->memory, "abcd", 4);
    assert_memory_equal(f->memory + 100, "efgh", 4);
    assert_memory_equal(f->memory + 200, "ijkl", 4);
}

// ---- AMOs ---------------------------------------------------------------------------------------

struct amo_case {
    gni_fma_cmd_type_t cmd;
    uint64_t before, first, second, after;
    bool fetch, is_short;
};

static uint64_t d64(double d)
{
    uint64_t v;
    memcpy(&v, &d, 8);
    return v;
}

static uint64_t f32(float x)
{
    uint32_t v;
    memcpy(&v, &x, 4);
    return v;
}

static void test_amo_every_operation(void **state)
{
    struct fixture *f = *state;
    const struct amo_case cases[] = {
        {GNI_FMA_ATOMIC_FADD, 5, 7, 0, 12, true, false},
        {GNI_FMA_ATOMIC_ADD_C, 5, 7, 0, 12, false, false},
        {GNI_FMA_ATOMIC_FAND, 0xff, 0x3c, 0, 0x3c, true, false},
        {GNI_FMA_ATOMIC_OR, 0xf0, 0x0f, 0, 0xff, false, false},
        {GNI_FMA_ATOMIC_FXOR, 0xff, 0x0f, 0, 0xf0, true, false},
        {GNI_FMA_ATOMIC_FAX, 0xff, 0x0f, 0xf1, 0xfe, true, false}, // (m AND a) XOR b
        {GNI_FMA_ATOMIC_CSWAP, 4, 4, 9, 9, true, false},
        {GNI_FMA_ATOMIC_CSWAP, 4, 5, 9, 4, true, false},
        {GNI_FMA_ATOMIC2_FSWAP, 1, 2, 0, 2, true, false},
        {GNI_FMA_ATOMIC2_FIMIN, (uint64_t)-3, 2, 0, (uint64_t)-3, true, false},
        {GNI_FMA_ATOMIC2_IMAX, (uint64_t)-3, 2, 0, 2, false, false},
        {GNI_FMA_ATOMIC2_FIADD_S, 0xffffffff, 1, 0, 0, true, true},
        {GNI_FMA_ATOMIC2_FIMIN_S, 5, 0xdead0000fffffffeull, 0, 0xfffffffe, true, true},
        {GNI_FMA_ATOMIC2_FCSWAP_S, 4, 0x99000000004ull, 0x88000000007ull, 7, true, true},
        {GNI_FMA_ATOMIC2_FFPADD, d64(1.5), d64(2.25), 0, d64(3.75), true, false},
        {GNI_FMA_ATOMIC2_FPMIN, d64(1.5), d64(-2), 0, d64(-2), false, false},
        {GNI_FMA_ATOMIC2_FFPMAX_S, f32(1.5f), f32(9), 0, f32(9), true, true},
        {GNI_FMA_ATOMIC2_FPADD_SC, f32(1), f32(0.5f), 0, f32(1.5f), false, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct amo_case *c = &cases[i];
        size_t width = c->is_short ? 4 : 8;
        gni_post_descriptor_t d = fixture_post(f, GNI_POST_AMO, 64, 4096, width);
        uint64_t got = 0;
        memset(f->memory, 0xee, 128);
        memset(f->memory + 4096, 0x77, 16);
        memcpy(f->memory + 4096, &c->before, width);
        d.amo_cmd = c->cmd;
        d.first_operand = c->first;
        d.second_operand = c->second;
        WANT(SUCCESS, GNI_PostFma(f->ep, &d));
        finish(f, &d, 7);
        memcpy(&got, f->memory + 4096, width);
        assert_true(got == c->after);
        assert_int_equal(f->memory[4096 + width], 0x77);
        got = 0;
        memcpy(&got, f->memory + 64, width);
        if (c->fetch)
            assert_true(got == c->before);
        else
            assert_int_equal((unsigned char)f->memory[64], 0xee);
    }
}

static void test_amo_over_several_words(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_AMO, 0, 4096, 32);
    uint64_t words[4] = {1, 2, 3, 4}, got[4];
    memcpy(f->memory + 4096, words, 32);
    d.amo_cmd = GNI_FMA_ATOMIC2_FIADD;
    d.first_operand = 10;
    WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    finish(f, &d, 7);
    assert_memory_equal(f->memory, words, 32);
    memcpy(got, f->memory + 4096, 32);
    for (int i = 0; i < 4; i++)
        assert_true(got[i] == words[i] + 10);
}

static void test_amo_of_two_operands_leaves_every_other_word(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_AMO, 0, 4096, 8);
    uint32_t words[2] = {0xff, 0xff}, got[2];
    memcpy(f->memory + 4096, words, 8);
    d.amo_cmd = GNI_FMA_ATOMIC2_AX_S;
    d.first_operand = 0x0f;
    d.second_operand = 0x100;
    WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    finish(f, &d, 7);
    memcpy(got, f->memory + 4096, 8);
    assert_int_equal(got[0], 0x10f);
    assert_int_equal(got[1], 0xff);
}

// ---- short messages -----------------------------------------------------------------------------

static void smsg_to_self(struct fixture *f, uint16_t credits, uint32_t max, gni_smsg_type_t type)
{
    gni_smsg_attr_t a = {.msg_type = type,
                         .msg_buffer = f->memory,
                         .mem_hndl = f->handle,
                         .mbox_maxcredit = credits,
                         .msg_maxsize = max};
    WANT(SUCCESS, GNI_SmsgBufferSizeNeeded(&a, &a.buff_size));
    WANT(SUCCESS, GNI_SmsgInit(f->ep, &a, &a));
}

static void test_smsg_credits_run_out_and_come_back(void **state)
{
    struct fixture *f = *state; // P55
    void *m;
    gni_cq_entry_t e;
    uint32_t stalls;
    smsg_to_self(f, 4, 64, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT);
    for (uint32_t i = 0; i < 4; i++)
        WANT(SUCCESS, GNI_SmsgSend(f->ep, &i, sizeof(i), NULL, 0, 0x80000000 + i));
    uint32_t fifth = 4;
    WANT(NOT_DONE, GNI_SmsgSend(f->ep, &fifth, sizeof(fifth), NULL, 0, 4));
    WANT(SUCCESS, GNI_GetNicStat(f->nic, GNI_STAT_SMSG_MBOX_CREDITS_STALL, &stalls));
    assert_int_equal(stalls, 1);
    for (uint32_t i = 0; i < 4; i++) {
        e = fixture_event(f->source, GNI_RC_SUCCESS);
        assert_int_equal(gni_cq_get_type(e), GNI_CQ_EVENT_TYPE_SMSG);
        assert_int_equal(gni_cq_get_msg_id(e), 0x80000000 + i);
        assert_int_equal(gni_cq_get_inst_id(e), i); // shares the bits, 24 of them
        fixture_event(f->remote, GNI_RC_SUCCESS);
    }
    WANT(SUCCESS, GNI_SmsgGetNext(f->ep, &m));
    WANT(SUCCESS, GNI_SmsgRelease(f->ep));
    WANT(SUCCESS, GNI_SmsgSend(f->ep, &fifth, sizeof(fifth), NULL, 0, 4));
    for (uint32_t i = 1; i < 5; i++) {
        WANT(SUCCESS, GNI_SmsgGetNext(f->ep, &m));
        assert_memory_equal(m, &i, sizeof(i)); // in order, the fifth last
        WANT(SUCCESS, GNI_SmsgRelease(f->ep));
    }
    WANT(NOT_DONE, GNI_SmsgRelease(f->ep));
}

static void test_smsg_tags_match_or_stay(void **state)
{
    struct fixture *f = *state;
    uint8_t tag = 6;
    void *m;
    smsg_to_self(f, 3, 20000, GNI_SMSG_TYPE_MBOX);
    char *big = malloc(20000), head[32] = "H"; // 32 bytes of header come on top of the maximum
    memset(big, 'B', 20000);
    WANT(SUCCESS, GNI_SmsgSendWTag(f->ep, "head", 4, "tail", 4, 0, 5));
    WANT(SUCCESS, GNI_SmsgSendWTag(f->ep, NULL, 0, NULL, 0, 0, 9)); // a tag alone
    WANT(SUCCESS, GNI_SmsgSendWTag(f->ep, head, 32, big, 20000, 0, 1));
    WANT(NO_MATCH, GNI_SmsgGetNextWTag(f->ep, &m, &tag));
    tag = 5;
    WANT(SUCCESS, GNI_SmsgGetNextWTag(f->ep, &m, &tag));
    assert_memory_equal(m, "headtail", 8);
    WANT(SUCCESS, GNI_SmsgRelease(f->ep));
    tag = GNI_SMSG_ANY_TAG;
    WANT(SUCCESS, GNI_SmsgGetNextWTag(f->ep, &m, &tag));
    assert_int_equal(tag, 9);
    WANT(SUCCESS, GNI_SmsgRelease(f->ep));
    tag = GNI_SMSG_ANY_TAG;
    WANT(SUCCESS, GNI_SmsgGetNextWTag(f->ep, &m, &tag));
    assert_memory_equal(m, head, 32);
    assert_memory_equal((char *)m + 32, big, 20000);
    free(big);
}

static void test_smsg_one_way_traffic_returns_credits(void **state)
{
    struct fixture *f = *state;
    gni_cq_entry_t e;
    void *m;
    smsg_to_self(f, 64, 32, GNI_SMSG_TYPE_MBOX);
    for (uint32_t i = 0, got = 0; got < 5000;) {
        if (i < 5000 && GNI_SmsgSend(f->ep, &i, sizeof(i), NULL, 0, 0) == GNI_RC_SUCCESS)
            i++;
        while (GNI_CqGetEvent(f->source, &e) == GNI_RC_SUCCESS)
            ;
        if (i - got < 40 && i < 5000)
            continue;
        while (GNI_SmsgGetNext(f->ep, &m) == GNI_RC_SUCCESS) {
            assert_memory_equal(m, &got, sizeof(got));
            got++;
            WANT(SUCCESS, GNI_SmsgRelease(f->ep));
        }
        while (GNI_CqGetEvent(f->remote, &e) != GNI_RC_NOT_DONE)
            ;
    }
}

// ---- datagrams ----------------------------------------------------------------------------------

static void test_datagram_bound_to_itself_comes_back(void **state)
{
    struct fixture *f = *state;
    char out[8] = "";
    gni_post_state_t st;
    uint32_t pe, id;
    WANT(SUCCESS, GNI_EpPostData(f->ep, "myself!", 8, out, 8));
    WANT(SUCCESS, GNI_EpPostDataTest(f->ep, &st, &pe, &id));
    assert_int_equal(st, GNI_POST_COMPLETED);
    assert_int_equal(pe, f->pe);
    assert_int_equal(id, 7);
    assert_string_equal(out, "myself!");
    WANT(NO_MATCH, GNI_EpPostDataTest(f->ep, &st, &pe, &id)); // told once
}

static void test_datagram_meets_wildcard_and_parked_ones_wait(void **state)
{
    struct fixture *f = *state, b;
    char out_a[8] = "", out_b[8] = "";
    gni_ep_handle_t wild, to_b, to_a;
    gni_post_state_t st;
    uint64_t dg;
    uint32_t pe, id;
    fixture_open(&b, 40, 0, GNI_CQ_NOBLOCK);
    WANT(SUCCESS, GNI_EpCreate(b.nic, NULL, &wild)); // datagrams need no queue
    WANT(SUCCESS, GNI_EpCreate(b.nic, NULL, &to_a));
    WANT(SUCCESS, GNI_EpCreate(f->nic, NULL, &to_b));
    WANT(SUCCESS, GNI_EpBind(to_b, b.pe, 40));
    WANT(SUCCESS, GNI_EpBind(to_a, f->pe, 7));
    WANT(SUCCESS, GNI_EpPostDataWId(to_b, "from a", 7, out_a, 8, 1));
    WANT(SUCCESS, GNI_EpPostDataTest(to_a, &st, &pe, &id)); // parked over there
    assert_int_equal(st, GNI_POST_REMOTE_DATA);
    WANT(SUCCESS, GNI_EpPostDataWId(wild, "from b", 7, out_b, 8, 0xb0b));
    WANT(ERROR_RESOURCE, GNI_EpPostData(to_a, "again", 6, out_b, 8)); // matched, not consumed
    WANT(SUCCESS, GNI_PostDataProbeById(b.nic, &dg));
    assert_true(dg == 0xb0b);
    WANT(SUCCESS, GNI_EpPostDataTestById(wild, dg, &st, &pe, &id));
    assert_int_equal(st, GNI_POST_COMPLETED);
    assert_int_equal(id, 7);
    assert_string_equal(out_b, "from a");
    WANT(NO_MATCH, GNI_PostDataProbeById(b.nic, &dg));
    WANT(SUCCESS, GNI_EpPostDataWaitById(to_b, 1, 100, &st, &pe, &id));
    assert_string_equal(out_a, "from b");
    assert_int_equal(id, 40);
    fixture_close(&b);
}

static void test_datagram_before_its_domain_exists_waits(void **state)
{
    struct fixture *f = *state, late;
    char out[8] = "", out_late[8] = "";
    gni_ep_handle_t ep;
    gni_post_state_t st;
    uint32_t pe, id;
    WANT(SUCCESS, GNI_EpCreate(f->nic, NULL, &ep));
    WANT(SUCCESS, GNI_EpBind(ep, f->pe, 50));
    WANT(SUCCESS, GNI_EpPostData(ep, "early", 6, out, 8));
    WANT(TIMEOUT, GNI_EpPostDataWait(ep, 1, &st, &pe, &id));
    fixture_open(&late, 50, 0, GNI_CQ_NOBLOCK);
    gni_ep_handle_t back;
    WANT(SUCCESS, GNI_EpCreate(late.nic, NULL, &back));
    WANT(SUCCESS, GNI_EpBind(back, f->pe, 7));
    WANT(SUCCESS, GNI_EpPostData(back, "late", 5, out_late, 2));
    WANT(SIZE_ERROR, GNI_EpPostDataTest(back, &st, &pe, &id)); // six bytes into two
    WANT(SUCCESS, GNI_EpPostDataTest(ep, &st, &pe, &id));
    assert_string_equal(out, "late");
    fixture_close(&late);
}

static void test_datagram_cancelled_ends_both_sides(void **state)
{
    struct fixture *f = *state, b;
    gni_ep_handle_t wrong, to_b;
    gni_post_state_t st;
    uint32_t pe, id;
    fixture_open(&b, 41, 0, GNI_CQ_NOBLOCK);
    WANT(SUCCESS, GNI_EpCreate(f->nic, NULL, &to_b));
    WANT(SUCCESS, GNI_EpBind(to_b, b.pe, 41));
    WANT(SUCCESS, GNI_EpPostData(to_b, "a", 1, NULL, 0));
    WANT(NOT_DONE, GNI_EpUnbind(to_b));
    WANT(SUCCESS, GNI_EpPostDataCancel(to_b));
    WANT(SUCCESS, GNI_EpPostDataTest(to_b, &st, &pe, &id));
    assert_int_equal(st, GNI_POST_TERMINATED);
    WANT(NO_MATCH, GNI_EpPostDataCancel(to_b));
    WANT(SUCCESS, GNI_EpCreate(b.nic, NULL, &wrong)); // nothing is parked there any more
    WANT(SUCCESS, GNI_EpBind(wrong, f->pe, 7));
    WANT(NO_MATCH, GNI_EpPostDataTest(wrong, &st, &pe, &id));
    WANT(SUCCESS, GNI_EpUnbind(to_b));
    fixture_close(&b);
}

struct prober {
    struct fixture *b;
    gni_ep_handle_t wild[8];
    _Atomic int done, taken[8];
};

static void *probe(void *arg)
{
    struct prober *p = arg;
    while (p->done < 8) { // P57
        uint64_t dg;
        uint32_t pe, id;
        gni_post_state_t st;
        if (GNI_PostDataProbeById(p->b->nic, &dg) != GNI_RC_SUCCESS)
            continue;
        if (GNI_EpPostDataTestById(p->wild[dg], dg, &st, &pe, &id) == GNI_RC_SUCCESS) {
            p->taken[dg]++;
            p->done++;
        }
    }
    return NULL;
}

static void test_datagrams_go_to_one_prober_each(void **state)
{
    struct fixture *f = *state, b;
    struct prober p = {.b = &b};
    char out[8][4];
    pthread_t t[4];
    (void)f;
    fixture_open(&b, 42, 0, GNI_CQ_NOBLOCK);
    for (int i = 0; i < 8; i++) {
        WANT(SUCCESS, GNI_EpCreate(b.nic, NULL, &p.wild[i]));
        WANT(SUCCESS, GNI_EpPostDataWId(p.wild[i], "x", 1, out[i], 4, (uint64_t)i));
    }
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, probe, &p);
    struct fixture from[8];
    for (unsigned i = 0; i < 8; i++) {
        gni_ep_handle_t ep;
        fixture_open(&from[i], 100 + i, 0, GNI_CQ_NOBLOCK);
        WANT(SUCCESS, GNI_EpCreate(from[i].nic, NULL, &ep));
        WANT(SUCCESS, GNI_EpBind(ep, b.pe, 42));
        WANT(SUCCESS, GNI_EpPostData(ep, "y", 1, NULL, 0));
    }
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < 8; i++)
        assert_int_equal(p.taken[i], 1);
    for (int i = 0; i < 8; i++)
        fixture_close(&from[i]);
    fixture_close(&b);
}

// ---- waiting ------------------------------------------------------------------------------------

static void test_vector_monitor_names_the_queue(void **state)
{
    struct fixture *f = *state; // P61
    gni_cq_handle_t q[3] = {f->source};
    gni_mem_handle_t h[3];
    gni_cq_entry_t e;
    uint32_t which = 9;
    for (int i = 1; i < 3; i++) {
        WANT(SUCCESS, GNI_CqCreate(f->nic, 8, 0, GNI_CQ_BLOCKING, NULL, NULL, &q[i]));
        WANT(SUCCESS,
             GNI_MemRegister(f->nic, (uintptr_t)f->memory, 4096, q[i], 0, UINT32_MAX, &h[i]));
    }
    WANT(TIMEOUT, GNI_CqVectorMonitor(q, 3, 5, &which));
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_PUT, 0, 0, 8);
    d.remote_mem_hndl = h[2];
    d.cq_mode = GNI_CQMODE_REMOTE_EVENT;
    WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    WANT(SUCCESS, GNI_CqVectorMonitor(q, 3, 1000, &which));
    assert_int_equal(which, 2);
    WANT(SUCCESS, GNI_CqVectorMonitor(q, 3, 1000, &which)); // it took nothing
    WANT(SUCCESS, GNI_CqVectorWaitEvent(q, 3, 1000, &e, &which));
    assert_int_equal(which, 2);
    WANT(TIMEOUT, GNI_CqVectorWaitEvent(q, 3, 5, &e, &which));
}

static void *wait_for_ever(void *cq)
{
    gni_cq_entry_t e;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    GNI_CqWaitEvent(cq, UINT64_MAX, &e);
    return NULL;
}

static void test_blocked_thread_is_cancelled_or_woken(void **state)
{
    struct fixture *f = *state;
    pthread_t t;
    void *result;
#ifdef __SANITIZE_THREAD__
    print_message("skip: the thread sanitizer puts asynchronous cancellation off\n");
    skip();
#endif
    for (int i = 0; i < 20; i++) {
        pthread_create(&t, NULL, wait_for_ever, f->source);
        if (i % 2)
            sched_yield();
        pthread_cancel(t);
        pthread_join(t, &result);
        assert_ptr_equal(result, PTHREAD_CANCELED);
    }
    pthread_create(&t, NULL, wait_for_ever, f->remote);
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_CQWRITE, 0, 0, 0);
    d.cq_mode = GNI_CQMODE_SILENT;
    WANT(SUCCESS, GNI_PostCqWrite(f->ep, &d)); // to a queue of its own process
    pthread_join(t, &result);
    assert_null(result);
}

static void test_channel_is_readable_when_an_armed_queue_fires(void **state)
{
    struct fixture *f = *state;
    gni_comp_chan_handle_t c;
    gni_cq_handle_t fired;
    int fd;
    WANT(SUCCESS, GNI_CompChanCreate(f->nic, &c));
    WANT(SUCCESS, GNI_CompChanFd(c, &fd));
    WANT(SUCCESS, GNI_CqAttachCompChan(f->source, c));
    WANT(SUCCESS, GNI_CqArmCompChan(&f->source, 1));
    struct pollfd p = {fd, POLLIN, 0};
    assert_int_equal(poll(&p, 1, 0), 0);
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_PUT, 0, 4096, 8);
    WANT(SUCCESS, GNI_PostFma(f->ep, &d));
    WANT(SUCCESS, GNI_PostFma(f->ep, &d)); // armed once, fires once
    assert_int_equal(poll(&p, 1, 1000), 1);
    WANT(SUCCESS, GNI_CompChanGetEvent(c, &fired));
    assert_ptr_equal(fired, f->source);
    WANT(NOT_DONE, GNI_CompChanGetEvent(c, &fired));
    assert_int_equal(poll(&p, 1, 0), 0);
    WANT(SUCCESS, GNI_CqArmCompChan(&f->source, 1)); // something is there: at once
    assert_int_equal(poll(&p, 1, 0), 1);
}

// ---- collectives --------------------------------------------------------------------------------

static void test_reduction_rounds_and_tells_exceptions(void **state)
{
    struct fixture *f = *state;
    gni_ce_handle_t ce;
    gni_ep_handle_t ep[2];
    uint32_t id;
    gni_ce_result_t *r[2] = {(void *)f->memory, (void *)(f->memory + 64)};
    WANT(SUCCESS, GNI_CeCreate(f->nic, &ce));
    WANT(SUCCESS, GNI_CeGetId(ce, &id));
    for (uint32_t i = 0; i < 2; i++) {
        WANT(SUCCESS, GNI_EpCreate(f->nic, f->source, &ep[i]));
        WANT(SUCCESS, GNI_EpBind(ep[i], f->pe, i));
        WANT(SUCCESS, GNI_EpSetCeAttr(ep[i], id, i, GNI_CE_CHILD_PE));
    }
    WANT(SUCCESS, GNI_CeConfigure(ce, ep, 2, NULL, NULL, GNI_CE_MODE_ROUND_UP));
    gni_post_descriptor_t d[2];
    for (unsigned i = 0; i < 2; i++) {
        d[i] = fixture_post(f, GNI_POST_CE, 64 * i, 0, 0);
        d[i].ce_cmd = GNI_FMA_CE_FPADD;
        d[i].ce_mode = GNI_CEMODE_TWO_OP;
        d[i].ce_red_id = 0x4711;
        d[i].first_operand = d64(i ? 1e-30 : 1.0);
        d[i].second_operand = d64(2.0);
        WANT(SUCCESS, GNI_PostFma(ep[i], &d[i]));
        if (!i)
            WANT(NOT_DONE, GNI_CeCheckResult(r[0], sizeof(*r[0])));
    }
    for (int i = 0; i < 2; i++) {
        WANT(TRANSACTION_ERROR, GNI_CeCheckResult(r[i], sizeof(*r[i]))); // inexact
        assert_true(gni_ce_res_status_ok(r[i]));
        assert_int_equal(gni_ce_res_get_fpe(r[i]), GNI_CE_FPE_PRECISION);
        assert_int_equal(gni_ce_res_get_red_id(r[i]), 0x4711);
        assert_true(r[i]->result1 == d64(nextafter(1.0, 2.0)));
        assert_true(r[i]->result2 == d64(4.0));
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_event_values_are_those_at_post_time),
        CASE(test_rebind_resets_event_values),
        CASE(test_get_and_amo_tell_the_owner),
        CASE(test_cq_write_carries_48_bits),
        CASE(test_silent_posts_make_no_source_event_and_keep_no_slot),
        CASE(test_posts_beyond_the_slots_are_refused_until_reaped),
        CASE(test_dual_events_come_both_and_the_descriptor_with_them),
        CASE(test_overrun_is_told_and_the_queue_goes_on),
        CASE(test_handler_runs_once_an_entry),
        CASE(test_put_any_alignment_leaves_neighbours_alone),
        CASE(test_put_of_nothing_completes),
        CASE(test_put_with_flag_sets_it_after_the_data),
        CASE(test_get_with_flag_puts_it_behind_the_data),
        CASE(test_segments_are_addressed_by_offset),
        CASE(test_failures_come_as_events_with_a_text),
        CASE(test_read_only_memory_is_not_written),
        CASE(test_handles_put_together_by_clients_work),
        CASE(test_vmdh_handles_work_with_offsets_and_addresses),
        CASE(test_stale_handle_is_told),
        CASE(test_regions_4095_live_at_once),
        CASE(test_chain_runs_all_and_makes_one_event),
        CASE(test_amo_every_operation),
        CASE(test_amo_over_several_words),
        CASE(test_amo_of_two_operands_leaves_every_other_word),
        CASE(test_smsg_credits_run_out_and_come_back),
        CASE(test_smsg_tags_match_or_stay),
        CASE(test_smsg_one_way_traffic_returns_credits),
        CASE(test_datagram_bound_to_itself_comes_back),
        CASE(test_datagram_meets_wildcard_and_parked_ones_wait),
        CASE(test_datagram_before_its_domain_exists_waits),
        CASE(test_datagram_cancelled_ends_both_sides),
        CASE(test_datagrams_go_to_one_prober_each),
        CASE(test_vector_monitor_names_the_queue),
        CASE(test_blocked_thread_is_cancelled_or_woken),
        CASE(test_channel_is_readable_when_an_armed_queue_fires),
        CASE(test_reduction_rounds_and_tells_exceptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
