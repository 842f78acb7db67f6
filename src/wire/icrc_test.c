// SPDX-License-Identifier: BSD-2-Clause
#include "wire/icrc.h"

#include "wire/crc32.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct vector {
    struct wf_icrc_scope scope;
    size_t len;
    uint8_t bytes[64];
    uint8_t icrc[4];
};

// A CNP and a UC SEND of adapters (their Identification is not 0), and one over IPv6.
static const struct vector vectors[] = {
    {{false, 0x718c, 0, 4791, {10, 0, 17, 1}, {10, 0, 18, 1}},
     28,
     {0x81, 0, 0xff, 0xff, 0x40, 0, 1, 0x18},
     {0x82, 0xfd, 0x00, 0x2a}},
    {{false, 0x0478, 0xc000, 4791, {192, 168, 0, 7}, {192, 168, 0, 7}},
     32,
     {0x24, 0x60, 0xff, 0xff, 0,    0,    0,    0xd3, 0,    0xcf, 0x17,
      0x10, 0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a,
      0x95, 0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0,    0},
     {0x78, 0xf3, 0x53, 0xf3}},
    {{true, 0, 0xc000, 4791, {0xfe, 0x80, [15] = 1}, {0xfe, 0x80, [15] = 2}},
     16,
     {4, 0x40, 0xff, 0xff, 0, 0, 0, 0x12, 0x80, 0, 0, 1, 'R', 'o', 'C', 'E'},
     {0x93, 0x7a, 0x63, 0x5c}},
};

static void test_icrc_of_known_vectors_is_right_in_any_split(void **state)
{
    for (size_t v = 0; v < 3; v++)
        for (size_t cut = 12; cut <= vectors[v].len; cut++) {
            uint8_t *bytes = (uint8_t *)vectors[v].bytes, out[4];
            struct iovec iov[3] = {{bytes, cut}, {NULL, 0}, {bytes + cut, vectors[v].len - cut}};
            wf_icrc_store(out, wf_icrc(&vectors[v].scope, iov, 3));
            assert_memory_equal(out, vectors[v].icrc, 4);
        }
}

static void test_check_of_unknown_identification_finds_it(void **state)
{
    for (size_t v = 0; v < 3; v++) {
        struct wf_icrc_scope s = vectors[v].scope;
        uint8_t buf[68];
        memcpy(buf, vectors[v].bytes, vectors[v].len);
        memcpy(buf + vectors[v].len, vectors[v].icrc, 4);
        uint16_t id = s.id;
        s.id = 0;
        struct wf_icrc_seen seen;
        assert_int_equal(wf_icrc_check(&s, buf, vectors[v].len + 4, &seen), 0);
        assert_int_equal(seen.id, id);
        assert_true(seen.df);
    }
}

// CRC over header bytes made here, as a second opinion and to clear DF.
static uint32_t by_hand(const struct wf_icrc_scope *s, uint16_t flags, const uint8_t *bth,
                        size_t len)
{
    uint8_t b[8 + 20 + 8 + 8192];
    size_t ip_len = 28 + len + 4, udp_len = 8 + len + 4;
    memset(b, 0xff, sizeof(b));
    memcpy(b + 8,
           (uint8_t[]){0x45, 0xff, (uint8_t)(ip_len >> 8), (uint8_t)ip_len, (uint8_t)(s->id >> 8),
                       (uint8_t)s->id, (uint8_t)(flags >> 8), (uint8_t)flags, 0xff, 17, 0xff, 0xff},
           12);
    memcpy(b + 20, s->src, 4);
    memcpy(b + 24, s->dst, 4);
    memcpy(b + 28,
           (uint8_t[]){(uint8_t)(s->sport >> 8), (uint8_t)s->sport, (uint8_t)(s->dport >> 8),
                       (uint8_t)s->dport, (uint8_t)(udp_len >> 8), (uint8_t)udp_len},
           6);
    memcpy(b + 36, bth, len);
    b[40] = 0xff;
    return wf_crc32_portable(0, b, 36 + len);
}

static void test_check_of_every_identification_and_df_accepts_and_names_it(void **state)
{
    static uint8_t buf[4096 + 32];
    static const size_t lens[] = {12, 16, 1052, 4112, 4124};
    for (size_t i = 0; i < sizeof(buf); i++)
        buf[i] = (uint8_t)(i * 7);
    for (uint32_t id = 0; id < 65536; id += 251)
        for (size_t l = 0; l < 5; l++)
            for (int df = 0; df < 2; df++) {
                struct wf_icrc_scope s = vectors[1].scope;
                struct wf_icrc_seen seen;
                s.id = (uint16_t)id;
                size_t at = lens[l];
                wf_icrc_store(buf + at, by_hand(&s, df ? 0x4000 : 0, buf, at));
                s.id = 5;
                assert_int_equal(wf_icrc_check(&s, buf, at + 4, &seen), 0);
                assert_int_equal(seen.id, id);
                assert_int_equal(seen.df, df);
            }
}

// Flip bits: whatever is accepted must be blamed on an Identification other than the sender's, and
// over IPv6 nothing is.
static void test_check_of_corrupt_packet_is_refused(void **state)
{
    uint8_t buf[512];
    srand(1);
    for (int v6 = 0; v6 < 2; v6++) {
        int accepted = 0;
        for (int round = 0; round < 20000; round++) {
            struct wf_icrc_scope s = vectors[v6 ? 2 : 1].scope;
            struct wf_icrc_seen seen;
            s.id = 0;
            for (size_t i = 0; i < sizeof(buf); i++)
                buf[i] = (uint8_t)rand();
            struct iovec iov = {buf, sizeof(buf) - 4};
            wf_icrc_store(buf + sizeof(buf) - 4, wf_icrc(&s, &iov, 1));
            size_t at;
            do
                at = (size_t)rand() % sizeof(buf);
            while (at == 4); // FECN, BECN and reserved bits are not covered
            buf[at] ^= (uint8_t)(1u << rand() % 8);
            if (wf_icrc_check(&s, buf, sizeof(buf), &seen) == 0) {
                accepted++;
                assert_true(seen.id != 0 || !seen.df);
            }
        }
        assert_true(accepted <= (v6 ? 0 : 8));
    }
}

static void test_check_of_bad_length_is_refused(void **state)
{
    uint8_t buf[32] = {0};
    struct wf_icrc_seen seen;
    for (size_t len = 0; len < 16; len++)
        assert_int_equal(wf_icrc_check(&vectors[0].scope, buf, len, &seen), -EBADMSG);
    assert_int_equal(wf_icrc_check(&vectors[0].scope, buf, 17, &seen), -EBADMSG);
}

static void test_portable_crc_equals_the_fast_one(void **state)
{
    uint8_t buf[300];
    for (size_t i = 0; i < sizeof(buf); i++)
        buf[i] = (uint8_t)(i * i + 3);
    assert_int_equal(wf_crc32_portable(0, "123456789", 9), 0xcbf43926);
    for (size_t from = 0; from < 9; from++)
        for (size_t len = 0; len + from <= sizeof(buf); len++)
            assert_int_equal(wf_crc32_portable(77, buf + from, len), wf_crc32(77, buf + from, len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_icrc_of_known_vectors_is_right_in_any_split),
        cmocka_unit_test(test_check_of_unknown_identification_finds_it),
        cmocka_unit_test(test_check_of_every_identification_and_df_accepts_and_names_it),
        cmocka_unit_test(test_check_of_corrupt_packet_is_refused),
        cmocka_unit_test(test_check_of_bad_length_is_refused),
        cmocka_unit_test(test_portable_crc_equals_the_fast_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
