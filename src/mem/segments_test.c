// SPDX-License-Identifier: BSD-2-Clause
#include "mem/segments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wf_keys keys;
static struct wf_key_entry *entries;
static uint32_t key;

#define AT(n) ((void *)(uintptr_t)(n))

// Pieces of 24, 16 and 8 bytes: [0, 24) at 0x1008, [24, 40) at 0x5000, [40, 48) at 0x3000.
static int setup(void **state)
{
    static const struct iovec pieces[] = {{AT(0x1008), 24}, {AT(0x5000), 16}, {AT(0x3000), 8}};
    struct wf_key_entry fields = {.pd = 1, .iova = 0x100, .len = 48, .flags = WF_KEY_SEGMENTED};
    uint32_t index;
    entries = calloc(WF_KEYTAB_SIZE, sizeof(*entries));
    assert_int_equal(wf_keys_init(&keys, entries), 0);
    assert_int_equal(wf_key_alloc(&keys, WF_KEY_MR, 1, &index), 0);
    key = wf_key_publish(&keys, index, &fields, -1);
    wf_key_info(&keys, index)->segments = wf_segments_make(pieces, 3);
    return 0;
}

static int teardown(void **state)
{
    wf_key_free(&keys, WF_KEY_INDEX(key));
    wf_keys_fini(&keys);
    free(entries);
    return 0;
}

static void test_every_range_maps_to_its_pieces(void **state)
{
    uint64_t at[48];
    for (uint64_t i = 0; i < 48; i++)
        at[i] = i < 24 ? 0x1008 + i : i < 40 ? 0x5000 + i - 24 : 0x3000 + i - 40;
    for (uint64_t from = 0; from < 48; from++) {
        for (uint64_t len = 1; from + len <= 48; len++) {
            struct wf_access_req req = {.key = key, .pd = 1, .addr = 0x100 + from, .len = len};
            struct iovec iov[WF_MAX_IOV];
            uint64_t seen = 0;
            void *host;
            int n = 0;
            assert_int_equal(wf_access_check(&keys, &req, &host), WF_ACCESS_OK);
            assert_ptr_equal(host, AT(at[from]));
            assert_int_equal(wf_access_map(&keys, &req, iov, &n), len);
            for (int i = 0; i < n; i++)
                for (size_t b = 0; b < iov[i].iov_len; b++, seen++)
                    assert_ptr_equal((char *)iov[i].iov_base + b, AT(at[from + seen]));
            assert_int_equal(seen, len);
            assert_true(n <= 3);
        }
    }
}

static void test_range_past_the_end_is_refused(void **state)
{
    struct wf_access_req req = {.key = key, .pd = 1, .addr = 0x100 + 47, .len = 2};
    void *host;
    assert_int_equal(wf_access_check(&keys, &req, &host), WF_ACCESS_RANGE);
}

static void test_full_list_covers_less(void **state)
{
    struct wf_access_req req = {.key = key, .pd = 1, .addr = 0x100, .len = 48};
    struct iovec iov[WF_MAX_IOV];
    int n = WF_MAX_IOV - 2;
    assert_int_equal(wf_access_map(&keys, &req, iov, &n), 40);
    assert_int_equal(n, WF_MAX_IOV);
    assert_int_equal(wf_access_map(&keys, &req, iov, &n), 0);
}

static void test_bad_pieces_make_nothing(void **state)
{
    static const struct iovec bad[][2] = {
        {{AT(0x1000), 8}, {AT(0x2000), 0}},               // empty
        {{AT(0x1000), 12}, {AT(0x2000), 8}},              // ends at 4 in a word
        {{AT(0x1000), 8}, {AT(0x2004), 8}},               // begins there
        {{AT(0x1000), 8}, {AT(UINTPTR_MAX - 7), 16}},     // wraps around
        {{AT(0x1000), SIZE_MAX - 7}, {AT(0x2000), 4096}}, // too long together
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_null(wf_segments_make(bad[i], 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_range_maps_to_its_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_range_past_the_end_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_list_covers_less, setup, teardown),
        cmocka_unit_test(test_bad_pieces_make_nothing),
    };
    return cmocka_run_group_tests_name("mem_segments", tests, NULL, NULL);
}
