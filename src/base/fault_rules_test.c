// SPDX-License-Identifier: BSD-2-Clause
#include "base/fault_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct wf_fault_rules rules;
static char err[256];

static int parse(const char *text)
{
    return wf_fault_parse(text, strlen(text), &rules, err, sizeof(err));
}

static void test_rules_of_each_action_are_read(void **state)
{
    assert_int_equal(parse("# a comment\n"
                           "seed 42\n"
                           "\n"
                           "drop op=send nth=3\n"
                           "delay 5ms p=10% path=shm,udp # later\n"
                           "corrupt icrc psn=+2..+4\n"
                           "nak access op=write\n"
                           "fail ibv_reg_mr ENOMEM every=2\n"
                           "port down 200ms after=1s\n"
                           "drop cm=RTU nth=1\n"
                           "kill process=srv* nth=100\n"),
                     0);
    assert_int_equal(rules.seed, 42);
    assert_int_equal(rules.n, 8);
    assert_int_equal(rules.rules[0].op, WF_FAULT_OP_SEND);
    assert_int_equal(rules.rules[0].nth_lo, 3);
    assert_int_equal(rules.rules[0].line, 4);
    assert_int_equal(rules.rules[1].time, 5000000);
    assert_true(rules.rules[1].p > 0.099 && rules.rules[1].p < 0.101);
    assert_int_equal(rules.rules[1].path, WF_FAULT_SHM | WF_FAULT_UDP);
    assert_int_equal(rules.rules[2].act, WF_FAULT_CORRUPT_ICRC);
    assert_int_equal(rules.rules[2].psn_hi, 4);
    assert_int_equal(rules.rules[3].dir, WF_FAULT_RX);
    assert_string_equal(rules.rules[4].verb, "reg_mr");
    assert_int_equal(rules.rules[5].nth_lo, 1);
    assert_int_equal(rules.rules[6].cm, 1u << 4);
    assert_string_equal(rules.rules[7].process, "srv*");
}

static void test_mistakes_are_named_with_their_line(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"explode", "line 1: no action \"explode\"; there are: drop"},
        {"\n\ndelay", "line 3: the delay is missing"},
        {"delay 5", "is a time as 20us"},
        {"drop p=2", "p is a probability"},
        {"drop p=x", "p is a probability"},
        {"drop op=wrote", "no kind of packet \"wrote\""},
        {"drop nth=0", "nth counts from 1"},
        {"drop nth=5..2", "is empty"},
        {"drop now", "\"now\" is neither"},
        {"drop color=red", "no condition \"color\""},
        {"corrupt", "what to corrupt"},
        {"corrupt header", "no part to corrupt \"header\""},
        {"fail reg_mr", "the errno is missing"},
        {"fail open EIO", "no verb \"open\""},
        {"nak access dir=tx", "dir=rx"},
        {"ecn cm=REQ", "CM messages can be"},
        {"seed x", "seed is a number"},
        {"seed", "seed takes one"},
        {"drop qp=0x1000000", "qp is a number"},
        {"drop after=2s before=1s", "before must be later"},
        {"port sideways", "no port state"},
        {"duplicate 0", "must not be 0"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_true(parse(bad[i].text) < 0);
        if (!strstr(err, bad[i].says))
            fail_msg("\"%s\" says \"%s\", not \"%s\"", bad[i].text, err, bad[i].says);
    }
}

static void test_text_that_is_none_is_refused(void **state)
{
    static const char zero[] = "drop\0p=1\n";
    char longest[600];
    assert_true(wf_fault_parse(zero, sizeof(zero), &rules, err, sizeof(err)) < 0);
    memset(longest, 'x', sizeof(longest));
    assert_true(wf_fault_parse(longest, sizeof(longest), &rules, err, sizeof(err)) < 0);
    assert_int_equal(parse(""), 0);
    assert_int_equal(rules.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_of_each_action_are_read),
        cmocka_unit_test(test_mistakes_are_named_with_their_line),
        cmocka_unit_test(test_text_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
