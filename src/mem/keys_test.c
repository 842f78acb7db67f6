// SPDX-License-Identifier: BSD-2-Clause
#include "mem/keys.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ALL                                                                                        \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

static struct wf_keys keys;

static int setup(void **state)
{
    (void)state;
    return wf_keys_init(&keys, calloc(WF_KEYTAB_SIZE, sizeof(struct wf_key_entry)));
}

static int teardown(void **state)
{
    (void)state;
    free(keys.entries);
    wf_keys_fini(&keys);
    return 0;
}

static uint32_t region(uint64_t iova, uint64_t addr, uint64_t len, unsigned access, uint32_t *index)
{
    struct wf_key_entry f = {.access = access, .pd = 1, .iova = iova, .addr = addr, .len = len};
    assert_int_equal(wf_key_alloc(&keys, WF_KEY_MR, 1, index), 0);
    return wf_key_publish(&keys, *index, &f, -1);
}

static enum wf_access check(uint32_t key, uint64_t addr, uint64_t len, unsigned need, void **host)
{
    struct wf_access_req r = {
        .key = key, .pd = 1, .qpn = 7, .addr = addr, .len = len, .need = need};
    return wf_access_check(&keys, &r, host);
}

static void test_access_inside_is_translated(void **state)
{
    uint32_t i;
    void *host;
    (void)state;
    uint32_t key = region(0x1000, 0xab0000, 0x100, ALL, &i);
    assert_int_equal(check(key, 0x1010, 0xf0, IBV_ACCESS_REMOTE_WRITE, &host), WF_ACCESS_OK);
    assert_ptr_equal(host, (void *)0xab0010);
    assert_int_equal(check(key, 0x1100, 0, 0, &host), WF_ACCESS_OK);
}

static void test_access_outside_wrapping_or_without_right_is_refused(void **state)
{
    static const struct {
        uint64_t addr, len;
        unsigned need;
        enum wf_access want;
    } cases[] = {
        {0x1000, 0x101, 0, WF_ACCESS_RANGE}, {0xfff, 1, 0, WF_ACCESS_RANGE},
        {0x1100, 1, 0, WF_ACCESS_RANGE},     {0x1001, UINT64_MAX, 0, WF_ACCESS_RANGE},
        {UINT64_MAX, 2, 0, WF_ACCESS_RANGE}, {0x1000, 1, IBV_ACCESS_REMOTE_READ, WF_ACCESS_RIGHT},
    };
    uint32_t i;
    void *host;
    (void)state;
    uint32_t key = region(0x1000, 0xab0000, 0x100, IBV_ACCESS_LOCAL_WRITE, &i);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
        assert_int_equal(check(key, cases[c].addr, cases[c].len, cases[c].need, &host),
                         cases[c].want);
    struct wf_access_req other_pd = {.key = key, .pd = 2, .addr = 0x1000, .len = 1};
    assert_int_equal(wf_access_check(&keys, &other_pd, &host), WF_ACCESS_PD);
    assert_int_equal(check(0, 0, 0, 0, &host), WF_ACCESS_UNKNOWN);
    assert_int_equal(check(0xffffffff, 0, 0, 0, &host), WF_ACCESS_UNKNOWN);
}

static void test_key_of_the_dead_never_comes_back_soon(void **state)
{
    uint32_t i;
    void *host;
    (void)state;
    uint32_t dead = region(0, 0x1000, 64, ALL, &i);
    wf_key_free(&keys, i);
    assert_int_equal(check(dead, 0, 1, 0, &host), WF_ACCESS_UNKNOWN);
    for (unsigned n = 0; n < 200000; n++) {
        uint32_t key = region(0, 0x1000, 64, ALL, &i);
        assert_true(key != dead || n > 1000);
        wf_key_free(&keys, i);
    }
    assert_int_equal(keys.live, 0);
}

static void test_full_table_refuses_and_recovers(void **state)
{
    uint32_t i, n = 0, last = 0;
    (void)state;
    while (wf_key_alloc(&keys, WF_KEY_MR, 1, &i) == 0) {
        last = i;
        n++;
    }
    assert_int_equal(n, WF_KEYTAB_SIZE - 1);
    wf_key_free(&keys, last);
    assert_int_equal(wf_key_alloc(&keys, WF_KEY_MR, 1, &i), 0);
    assert_int_equal(i, last);
}

static void test_window_of_type_two_serves_its_qp_only_and_no_local_use(void **state)
{
    uint32_t i;
    void *host;
    struct wf_key_entry f = {.access = ALL, .pd = 1, .qpn = 7, .addr = 0x5000, .len = 64};
    (void)state;
    assert_int_equal(wf_key_alloc(&keys, WF_KEY_MW2, 1, &i), 0);
    uint32_t key = wf_key_publish(&keys, i, &f, 0x42);
    assert_int_equal(key, i << 8 | 0x42);
    struct wf_access_req r = {.key = key, .pd = 1, .qpn = 7, .len = 8};
    assert_int_equal(wf_access_check(&keys, &r, &host), WF_ACCESS_OK);
    r.qpn = 8;
    assert_int_equal(wf_access_check(&keys, &r, &host), WF_ACCESS_PD);
    r.qpn = 0;
    assert_int_equal(wf_access_check(&keys, &r, &host), WF_ACCESS_UNKNOWN);
}

static void test_description_names_what_is_wrong(void **state)
{
    uint32_t i;
    char text[200];
    (void)state;
    uint32_t key = region(0x1000, 0x1000, 0x100, IBV_ACCESS_LOCAL_WRITE, &i);
    struct wf_access_req r = {.key = key, .pd = 1, .addr = 0x10fc, .len = 16};
    wf_access_describe(&keys, &r, WF_ACCESS_RANGE, text, sizeof(text));
    assert_non_null(strstr(text, "12 bytes past its end"));
    r.need = IBV_ACCESS_REMOTE_WRITE;
    wf_access_describe(&keys, &r, WF_ACCESS_RIGHT, text, sizeof(text));
    assert_non_null(strstr(text, "IBV_ACCESS_REMOTE_WRITE"));
    wf_key_free(&keys, i);
    wf_access_describe(&keys, &r, WF_ACCESS_UNKNOWN, text, sizeof(text));
    assert_non_null(strstr(text, "deregistered"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_access_inside_is_translated),
        T(test_access_outside_wrapping_or_without_right_is_refused),
        T(test_key_of_the_dead_never_comes_back_soon),
        T(test_full_table_refuses_and_recovers),
        T(test_window_of_type_two_serves_its_qp_only_and_no_local_use),
        T(test_description_names_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
