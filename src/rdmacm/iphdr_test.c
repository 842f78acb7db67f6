// SPDX-License-Identifier: BSD-2-Clause
#include "rdmacm/iphdr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct sockaddr_in v4(const char *address, uint16_t port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET, address, &sa.sin_addr), 1);
    return sa;
}

static struct sockaddr_in6 v6(const char *address, uint16_t port)
{
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET6, address, &sa.sin6_addr), 1);
    return sa;
}

static void test_iphdr_ipv4_sits_in_the_last_bytes_of_its_fields(void **state)
{
    struct sockaddr_in a = v4("10.77.0.2", 0xb258), b = v4("10.77.0.3", 7471);
    // As Linux sent it (tests/data/captures/cm-idle.pcap).
    static const uint8_t golden[RCM_HDR_SIZE] = {
        [1] = 0x40, [2] = 0xb2, [3] = 0x58, [16] = 10, 77, 0, 2, [32] = 10, 77, 0, 3};
    uint8_t hdr[RCM_HDR_SIZE];
    assert_int_equal(rcm_hdr_put(hdr, (struct sockaddr *)&a, (struct sockaddr *)&b), 0);
    assert_memory_equal(hdr, golden, sizeof(hdr));

    struct sockaddr_storage src, dst;
    assert_int_equal(rcm_hdr_get(hdr, rcm_service_id(0x0106, 7471), &src, &dst), 0);
    assert_memory_equal(&src, &a, sizeof(a));
    assert_memory_equal(&dst, &b, sizeof(b));
}

static void test_iphdr_ipv6_round_trips(void **state)
{
    struct sockaddr_in6 a = v6("fd00:77::2", 1), b = v6("fe80::1", 65535);
    struct sockaddr_storage src, dst;
    uint8_t hdr[RCM_HDR_SIZE];
    assert_int_equal(rcm_hdr_put(hdr, (struct sockaddr *)&a, (struct sockaddr *)&b), 0);
    assert_int_equal(hdr[1], 0x60);
    assert_int_equal(rcm_hdr_get(hdr, rcm_service_id(0x0111, 65535), &src, &dst), 0);
    assert_memory_equal(&src, &a, sizeof(a));
    assert_memory_equal(&dst, &b, sizeof(b));
}

static void test_iphdr_mixed_families_are_refused(void **state)
{
    struct sockaddr_in a = v4("10.0.0.1", 1);
    struct sockaddr_in6 b = v6("::1", 2);
    uint8_t hdr[RCM_HDR_SIZE];
    assert_int_equal(rcm_hdr_put(hdr, (struct sockaddr *)&a, (struct sockaddr *)&b), -EINVAL);
}

static void test_iphdr_other_versions_are_refused(void **state)
{
    struct sockaddr_storage src, dst;
    uint8_t hdr[RCM_HDR_SIZE] = {0x01, 0x40};
    assert_int_equal(rcm_hdr_get(hdr, 0, &src, &dst), -EBADMSG);
    hdr[0] = 0x10;
    assert_int_equal(rcm_hdr_get(hdr, 0, &src, &dst), -EBADMSG);
    hdr[0] = 0;
    for (unsigned ip = 0; ip < 16; ip++) {
        hdr[1] = (uint8_t)(ip << 4);
        assert_int_equal(rcm_hdr_get(hdr, 0, &src, &dst), ip == 4 || ip == 6 ? 0 : -EBADMSG);
    }
}

static void test_iphdr_service_id_holds_port_space_and_port(void **state)
{
    assert_int_equal(rcm_service_id(0x0106, 7471), 0x0000000001061d2f);
    assert_int_equal(rcm_service_id(0x013f, 7471), 0x00000000013f1d2f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_iphdr_ipv4_sits_in_the_last_bytes_of_its_fields),
        cmocka_unit_test(test_iphdr_ipv6_round_trips),
        cmocka_unit_test(test_iphdr_mixed_families_are_refused),
        cmocka_unit_test(test_iphdr_other_versions_are_refused),
        cmocka_unit_test(test_iphdr_service_id_holds_port_space_and_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
