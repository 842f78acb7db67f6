// SPDX-License-Identifier: BSD-2-Clause
#include "wire/grh.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const union ibv_gid v4a = {.raw = {[10] = 255, [11] = 255, 192, 168, 0, 7}};
static const union ibv_gid v4b = {.raw = {[10] = 255, [11] = 255, 10, 0, 0, 1}};
static const union ibv_gid v6a = {.raw = {0xfe, 0x80, [15] = 1}};
static const union ibv_gid v6b = {.raw = {0x20, 0x01, 0x0d, 0xb8, [15] = 2}};

static void test_ipv4_area_holds_header_at_20_with_right_checksum(void **state)
{
    struct wf_grh in = {&v4a, &v4b, 0x1a, 63, 0, 36};
    uint8_t area[WF_GRH_LEN];
    memset(area, 0xee, sizeof(area));
    wf_grh_build(area, &in);
    // Checksum by hand: 451a 0038 0000 4000 3f11 c0a8 0007 0a00 0001 add up to 18f13.
    static const uint8_t want[40] = {[20] = 0x45, 0x1a, 0,   56,  0, 0, 0x40, 0, 63, 17,
                                     0x70,        0xeb, 192, 168, 0, 7, 10,   0, 0,  1};
    assert_memory_equal(area, want, 40);
}

static void test_ipv6_area_is_the_ipv6_header(void **state)
{
    struct wf_grh in = {&v6a, &v6b, 0xff, 255, 0xfffff, 65535};
    uint8_t area[WF_GRH_LEN];
    wf_grh_build(area, &in);
    static const uint8_t head[8] = {0x6f, 0xff, 0xff, 0xff, 0xff, 0xff, 17, 255};
    assert_memory_equal(area, head, 8);
    assert_memory_equal(area + 8, v6a.raw, 16);
    assert_memory_equal(area + 24, v6b.raw, 16);
}

static void test_parse_returns_what_was_built(void **state)
{
    const struct wf_grh in[] = {{&v4a, &v4b, 3, 1, 0, 28}, {&v6a, &v6b, 3, 1, 0x12345, 28}};
    for (int i = 0; i < 2; i++) {
        uint8_t area[WF_GRH_LEN];
        struct wf_grh out;
        union ibv_gid sgid, dgid;
        wf_grh_build(area, &in[i]);
        assert_int_equal(wf_grh_parse(area, &out, &sgid, &dgid), 0);
        assert_memory_equal(&sgid, in[i].sgid, 16);
        assert_memory_equal(&dgid, in[i].dgid, 16);
        assert_int_equal(out.tclass, in[i].tclass);
        assert_int_equal(out.hop_limit, in[i].hop_limit);
        assert_int_equal(out.flow_label, in[i].flow_label);
        assert_int_equal(out.udp_len, in[i].udp_len);
    }
}

static void test_parse_of_garbage_is_refused(void **state)
{
    uint8_t area[WF_GRH_LEN] = {[20] = 0x45};
    struct wf_grh out;
    union ibv_gid sgid, dgid;
    assert_int_equal(wf_grh_parse(area, &out, &sgid, &dgid), -EBADMSG);
}

static void test_gid_kinds_are_told_apart(void **state)
{
    const union ibv_gid m4 = {.raw = {[10] = 255, [11] = 255, 224, 0, 0, 1}};
    const union ibv_gid m6 = {.raw = {0xff, 0x0e}};
    assert_true(wf_gid_is_ipv4(&v4a) && !wf_gid_is_multicast(&v4a));
    assert_true(!wf_gid_is_ipv4(&v6a) && !wf_gid_is_multicast(&v6a));
    assert_true(wf_gid_is_multicast(&m4) && wf_gid_is_multicast(&m6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ipv4_area_holds_header_at_20_with_right_checksum),
        cmocka_unit_test(test_ipv6_area_is_the_ipv6_header),
        cmocka_unit_test(test_parse_returns_what_was_built),
        cmocka_unit_test(test_parse_of_garbage_is_refused),
        cmocka_unit_test(test_gid_kinds_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
