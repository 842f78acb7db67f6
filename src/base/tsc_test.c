// SPDX-License-Identifier: BSD-2-Clause
#include "base/tsc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_tsc_follows_the_kernels_clock_and_never_goes_back(void **state)
{
    struct wf_tsc t = {0};
    uint64_t last = 0, end = wf_clock_ns() + 50000000, worst = 0;
    (void)state;
    while (wf_clock_ns() < end) {
        uint64_t before = wf_clock_ns();
        uint64_t v = wf_tsc_ns(&t);
        uint64_t after = wf_clock_ns();
        assert_true(v >= last);
        last = v;
        uint64_t off = v < before ? before - v : v > after ? v - after : 0;
        if (off > worst)
            worst = off;
    }
    assert_true(worst < 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tsc_follows_the_kernels_clock_and_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
