// SPDX-License-Identifier: BSD-2-Clause
#include "base/guard.h"
#include "qp/qp.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static void test_place_splits_payload_over_all_pieces(void **state)
{
    uint8_t src[10] = "012345678", out[10] = {0};
    struct iovec from[2] = {{src, 3}, {src + 3, 7}}, to[3] = {{out, 5}, {NULL, 1}, {out + 5, 4}};
    struct wf_pkt pkt = {.len = 10, .niov = 2, .iov = from};
    assert_int_equal(wf_place(NULL, &pkt, 0, to, 3), 0);
    assert_memory_equal(out, "01234678", 9); // the piece without memory swallowed the 5
}

static void test_place_into_unmapped_memory_is_refused(void **state)
{
    wf_guard_install();
    uint8_t src[8192];
    uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p + 4096, 4096);
    memset(src, 1, sizeof(src));
    struct iovec from = {src, sizeof(src)}, to = {p, 8192};
    struct wf_pkt pkt = {.len = 8192, .niov = 1, .iov = &from};
    assert_int_equal(wf_place(NULL, &pkt, 0, &to, 1), -EFAULT);
    munmap(p, 4096);
}

static void test_place_from_unmapped_memory_is_refused(void **state)
{
    wf_guard_install();
    uint8_t out[64];
    uint8_t *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p, 4096);
    struct iovec from = {p, 64}, to = {out, 64};
    struct wf_pkt pkt = {.len = 64, .niov = 1, .iov = &from};
    assert_int_equal(wf_place(NULL, &pkt, 0, &to, 1), -EFAULT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_splits_payload_over_all_pieces),
        cmocka_unit_test(test_place_into_unmapped_memory_is_refused),
        cmocka_unit_test(test_place_from_unmapped_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
