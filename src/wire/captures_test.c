// SPDX-License-Identifier: BSD-2-Clause
// Packets of a real peer (Linux rxe): each decodes, encodes to the same bytes and has a right ICRC.
#include "wire/codec.h"
#include "wire/icrc.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint16_t be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

// Fill `s` from an IP packet; its UDP header, or NULL when it is not RoCEv2.
static const uint8_t *scope_of(const uint8_t *ip, struct wf_icrc_scope *s, uint16_t *id)
{
    *s = (struct wf_icrc_scope){.v6 = ip[0] >> 4 == 6};
    const uint8_t *udp = ip + (s->v6 ? 40 : 20);
    if (ip[s->v6 ? 6 : 9] != 17 || be16(udp + 2) != WF_ROCE_PORT)
        return NULL;
    memcpy(s->src, ip + (s->v6 ? 8 : 12), s->v6 ? 16 : 4);
    memcpy(s->dst, ip + (s->v6 ? 24 : 16), s->v6 ? 16 : 4);
    s->sport = be16(udp);
    s->dport = be16(udp + 2);
    *id = s->v6 ? 0 : be16(ip + 4);
    return udp;
}

static void check_packet(const uint8_t *bth, size_t len, struct wf_icrc_scope *s, uint16_t id)
{
    struct wf_pkt pkt;
    struct iovec iov;
    assert_int_equal(wf_packet_decode(bth, len, &pkt, &iov), 0);
    uint8_t hdr[WF_HDR_MAX];
    int hlen = wf_packet_encode_headers(&pkt, hdr, sizeof(hdr));
    assert_int_equal(hlen, wf_opcode_info(pkt.opcode)->hdr_len);
    assert_memory_equal(hdr, bth, (size_t)hlen);
    assert_int_equal((size_t)hlen + pkt.len + wf_packet_pad(pkt.len) + WF_ICRC_LEN, len);

    struct wf_icrc_seen seen;
    assert_int_equal(wf_icrc_check(s, bth, len, &seen), 0);
    assert_int_equal(seen.id, id);
    s->id = id;
    struct iovec parts[3] = {{hdr, (size_t)hlen}, iov, {(uint8_t[3]){0}, wf_packet_pad(pkt.len)}};
    uint8_t icrc[4];
    wf_icrc_store(icrc, wf_icrc(s, parts, 3));
    assert_memory_equal(icrc, bth + len - 4, 4);
}

static int check_file(const char *path)
{
    static uint8_t frame[16384];
    uint8_t head[24];
    int packets = 0;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(head, 1, 24, f), 24);
    assert_int_equal(le32(head), 0xa1b2c3d4);
    while (fread(head, 1, 16, f) == 16) {
        size_t n = le32(head + 8);
        assert_true(n <= sizeof(frame));
        assert_int_equal(fread(frame, 1, n, f), n);
        struct wf_icrc_scope s;
        uint16_t id;
        const uint8_t *udp = scope_of(frame + 14, &s, &id);
        if (n < 14 + 40 + 8 || !udp)
            continue;
        assert_true((size_t)(udp - frame) + be16(udp + 4) <= n);
        check_packet(udp + 8, be16(udp + 4) - 8u, &s, id);
        packets++;
    }
    fclose(f);
    return packets;
}

static void test_packets_of_rxe_decode_and_encode_to_the_same_bytes(void **state)
{
    int files = 0, packets = 0;
    DIR *dir = opendir(CAPTURES);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (!strstr(e->d_name, ".pcap"))
            continue;
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s", CAPTURES, e->d_name);
        int n = check_file(path);
        assert_true(n > 0);
        packets += n;
        files++;
    }
    closedir(dir);
    assert_true(files >= 30 && packets >= 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets_of_rxe_decode_and_encode_to_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
