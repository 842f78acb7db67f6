// SPDX-License-Identifier: BSD-2-Clause
#include "wire/aeth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_syndrome_of_each_type_is_told_apart(void **state)
{
    assert_int_equal(wf_aeth_type(WF_SYN_ACK_UNLIMITED), WF_AETH_ACK);
    assert_int_equal(wf_aeth_type(WF_SYN_RNR | 31), WF_AETH_RNR_NAK);
    assert_int_equal(wf_aeth_type(0x5f), WF_AETH_RESERVED);
    assert_int_equal(wf_aeth_type(WF_SYN_NAK_PSN_SEQ), WF_AETH_NAK);
    assert_int_equal(wf_aeth_type(0x80), WF_AETH_RESERVED);
    assert_int_equal(wf_aeth_type(0xff), WF_AETH_RESERVED);
    assert_int_equal(wf_aeth_value(WF_SYN_NAK_INV_RD), 4);
}

static void test_rnr_timer_of_every_code_is_the_standards(void **state)
{
    static const uint32_t us10[32] = {
        65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    };
    for (uint8_t c = 0; c < 32; c++)
        assert_true(wf_rnr_timer_ns(c) == us10[c] * 10000ull);
}

static void test_credits_round_down_to_a_code(void **state)
{
    for (uint8_t c = 0; c < 31; c++) {
        assert_int_equal(wf_aeth_credit_code(wf_aeth_credits(c)), c);
        if (c > 4)
            assert_int_equal(wf_aeth_credit_code(wf_aeth_credits(c) - 1), c - 1);
    }
    assert_int_equal(wf_aeth_credits(30), 32768);
    assert_int_equal(wf_aeth_credit_code(1u << 30), 30);
    assert_int_equal(wf_aeth_credit_code(WF_CREDITS_UNLIMITED), 31);
    assert_true(wf_aeth_credits(31) == WF_CREDITS_UNLIMITED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syndrome_of_each_type_is_told_apart),
        cmocka_unit_test(test_rnr_timer_of_every_code_is_the_standards),
        cmocka_unit_test(test_credits_round_down_to_a_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
