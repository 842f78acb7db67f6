// SPDX-License-Identifier: BSD-2-Clause
// The accessors of arbel/cqe.h on entries whose content is known.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include "arbel/cqe.h"
#include <arpa/inet.h>

static struct arbel_cqe entry(const uint32_t dw[8])
{
    struct arbel_cqe e;

    for (int i = 0; i < 8; i++)
        e.dw[i] = htonl(dw[i]);
    return e;
}

static void test_free_entry_is_hardwares(void **state)
{
    struct arbel_cqe e = entry((uint32_t[8]){[7] = 0x80});

    assert_int_equal(arbel_cqe_hw_owned(&e), 1);
    e = entry((uint32_t[8]){[7] = 0x04000000});
    assert_int_equal(arbel_cqe_hw_owned(&e), 0);
    arbel_cqe_give_back(&e);
    assert_int_equal(arbel_cqe_hw_owned(&e), 1);
}

static void test_ud_receive_fields(void **state)
{
    struct arbel_cqe e =
        entry((uint32_t[8]){0x411, 0, 0x412, 0x30851234, 0x11223344, 0x428, 0x1c0, 0x65000000});

    assert_int_equal(arbel_cqe_ver(&e), 0);
    assert_int_equal(arbel_cqe_my_qpn(&e), 0x411);
    assert_int_equal(arbel_cqe_my_ee(&e), 0);
    assert_int_equal(arbel_cqe_checksum(&e), 0);
    assert_int_equal(arbel_cqe_rqpn(&e), 0x412);
    assert_int_equal(arbel_cqe_sl(&e), 3);
    assert_int_equal(arbel_cqe_ipok(&e), 0);
    assert_int_equal(arbel_cqe_g(&e), 1);
    assert_int_equal(arbel_cqe_ml_path(&e), 5);
    assert_int_equal(arbel_cqe_rlid(&e), 0x1234);
    assert_int_equal(arbel_cqe_immediate(&e), 0x11223344);
    assert_int_equal(arbel_cqe_byte_cnt(&e), 1064);
    assert_int_equal(arbel_cqe_wqe_adr(&e), 0x1c0);
    assert_int_equal(arbel_cqe_opcode(&e), 0x65);
    assert_false(arbel_cqe_is_send(&e));
    assert_false(arbel_cqe_is_error(&e));
}

static void test_send_fields(void **state)
{
    struct arbel_cqe e = entry((uint32_t[8]){0x411, 0, 0, 0, 0, 4096, 0x2080, 0x10800000});

    assert_true(arbel_cqe_is_send(&e));
    assert_int_equal(arbel_cqe_opcode(&e), ARBEL_OP_RDMA_READ);
    assert_int_equal(arbel_cqe_byte_cnt(&e), 4096);
    assert_int_equal(arbel_cqe_wqe_adr(&e), 0x2080);
}

static void test_error_fields(void **state)
{
    struct arbel_cqe e = entry((uint32_t[8]){0x411, 0, 0, 0, 0x13880000, 0, 0x2040, 0xff000000});

    assert_true(arbel_cqe_is_error(&e));
    assert_true(arbel_cqe_is_send(&e));
    assert_int_equal(arbel_cqe_syndrome(&e), ARBEL_SYNDROME_REMOTE_ACCESS);
    assert_int_equal(arbel_cqe_vendor_code(&e), 0x88);
    e = entry((uint32_t[8]){0x411, 0, 0, 0, 0x05000000, 0, 0x40, 0xfe000000});
    assert_false(arbel_cqe_is_send(&e));
    assert_int_equal(arbel_cqe_syndrome(&e), ARBEL_SYNDROME_WR_FLUSH);
}

static void test_ring_index_wraps(void **state)
{
    static struct arbel_cqe ring[4];

    assert_ptr_equal(arbel_cqe_at(ring, 4, 0xfffffffeu), &ring[2]);
    assert_ptr_equal(arbel_cqe_at(ring, 4, 5), &ring[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_entry_is_hardwares),
        cmocka_unit_test(test_ud_receive_fields),
        cmocka_unit_test(test_send_fields),
        cmocka_unit_test(test_error_fields),
        cmocka_unit_test(test_ring_index_wraps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
