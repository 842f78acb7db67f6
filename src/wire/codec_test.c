// SPDX-License-Identifier: BSD-2-Clause
#include "wire/codec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

// BTH flags that exist on the wire.
#define WIRE_FLAGS (WF_PKT_SOLICITED | WF_PKT_ACK_REQ | WF_PKT_MIG_REQ | WF_PKT_FECN | WF_PKT_BECN)

// A packet whose fields all hold `pattern`, cut to their width; only those that `opcode` carries.
static struct wf_pkt filled(uint8_t opcode, uint64_t pattern, uint32_t len)
{
    uint32_t f = wf_opcode_info(opcode)->flags, p32 = (uint32_t)pattern, p24 = p32 & 0xffffff;
    struct wf_pkt p = {.opcode = opcode, .npsn = 1, .pkey = (uint16_t)pattern, .dqpn = p24};
    p.psn = p24;
    p.flags = (uint8_t)pattern & WIRE_FLAGS;
    p.len = len;
    p.va = f & (WF_H_RETH | WF_H_ATOMICETH) ? pattern : 0;
    p.rkey = f & (WF_H_RETH | WF_H_ATOMICETH) ? p32 : 0;
    p.dma_len = f & WF_H_RETH ? p32 : 0;
    p.swap_add = f & WF_H_ATOMICETH ? pattern : 0;
    p.compare = f & WF_H_ATOMICETH ? pattern : 0;
    p.syndrome = f & WF_H_AETH ? (uint8_t)pattern : 0;
    p.msn = f & WF_H_AETH ? p24 : 0;
    p.atomic_orig = f & WF_H_ATOMICACK ? pattern : 0;
    p.imm = f & WF_H_IMM ? p32 : 0;
    p.ieth = f & WF_H_IETH ? p32 : 0;
    p.feth = f & WF_H_FETH ? p32 & 0x3f : 0;
    p.qkey = f & WF_H_DETH ? p32 : 0;
    p.sqpn = f & WF_H_DETH ? p24 : 0;
    p.xrc_srqn = f & WF_H_XRCETH ? p24 : 0;
    return p;
}

static void assert_same_fields(const struct wf_pkt *a, const struct wf_pkt *b)
{
    assert_int_equal(a->opcode, b->opcode);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->pkey, b->pkey);
    assert_int_equal(a->dqpn, b->dqpn);
    assert_int_equal(a->psn, b->psn);
    assert_int_equal(a->npsn, b->npsn);
    assert_true(a->va == b->va && a->swap_add == b->swap_add && a->compare == b->compare);
    assert_true(a->atomic_orig == b->atomic_orig);
    assert_int_equal(a->rkey, b->rkey);
    assert_int_equal(a->dma_len, b->dma_len);
    assert_int_equal(a->syndrome, b->syndrome);
    assert_int_equal(a->msn, b->msn);
    assert_int_equal(a->imm, b->imm);
    assert_int_equal(a->ieth, b->ieth);
    assert_int_equal(a->feth, b->feth);
    assert_int_equal(a->qkey, b->qkey);
    assert_int_equal(a->sqpn, b->sqpn);
    assert_int_equal(a->xrc_srqn, b->xrc_srqn);
    assert_int_equal(a->len, b->len);
}

// Headers, payload of bytes 0, 1, 2 ..., pad and room for the ICRC; the length of it all.
static size_t build(uint8_t *buf, size_t room, const struct wf_pkt *p)
{
    int hdr = wf_packet_encode_headers(p, buf, room);
    assert_int_equal(hdr, wf_opcode_info(p->opcode)->hdr_len);
    for (uint32_t i = 0; i < p->len; i++)
        buf[hdr + i] = (uint8_t)i;
    memset(buf + hdr + p->len, 0, wf_packet_pad(p->len) + WF_ICRC_LEN);
    return (size_t)hdr + p->len + wf_packet_pad(p->len) + WF_ICRC_LEN;
}

static void test_every_field_of_every_opcode_at_extremes_survives(void **state)
{
    static const uint64_t patterns[] = {0, UINT64_MAX, 0x0123456789abcdef, 0x8000000080800081};
    static const uint32_t lens[] = {0, 1, 2, 3, 4, 255, 4096};
    uint8_t buf[4096 + 64];
    int assigned = 0;
    for (int op = 0; op < 256; op++) {
        const struct wf_opcode_info *info = wf_opcode_info((uint8_t)op);
        assigned += info->name != NULL;
        for (size_t i = 0; info->name && i < sizeof(patterns) / sizeof(patterns[0]); i++)
            for (size_t j = 0; j < (info->flags & WF_F_PAYLOAD ? 7 : 1); j++) {
                struct wf_pkt in = filled((uint8_t)op, patterns[i], lens[j]), out;
                struct iovec iov;
                size_t len = build(buf, sizeof(buf), &in);
                assert_int_equal(wf_packet_decode(buf, len, &out, &iov), 0);
                assert_same_fields(&in, &out);
                assert_int_equal(iov.iov_len, in.len);
                assert_int_equal(out.niov, in.len != 0);
                assert_ptr_equal(iov.iov_base, buf + info->hdr_len);
            }
    }
    // 25 RC, 12 UC, 2 UD, 23 XRC, CNP
    assert_int_equal(assigned, 63);
}

static void test_decode_of_every_truncation_is_refused_or_shorter_payload(void **state)
{
    for (int op = 0; op < 256; op++) {
        const struct wf_opcode_info *info = wf_opcode_info((uint8_t)op);
        if (!info->name)
            continue;
        struct wf_pkt in = filled((uint8_t)op, UINT64_MAX, info->flags & WF_F_PAYLOAD ? 8 : 0), out;
        struct iovec iov;
        uint8_t buf[128];
        size_t full = build(buf, sizeof(buf), &in);
        for (size_t len = 0; len < full; len++) {
            // An own block of exactly this size lets the sanitizer see any read past it.
            uint8_t *cut = malloc(len + !len);
            memcpy(cut, buf, len);
            int rc = wf_packet_decode(cut, len, &out, &iov);
            bool headers_there = len >= info->hdr_len + WF_ICRC_LEN && len % 4 == 0;
            assert_int_equal(rc, headers_there ? 0 : -EBADMSG);
            if (!rc)
                assert_int_equal(out.len, len - info->hdr_len - WF_ICRC_LEN);
            free(cut);
        }
    }
}

static void test_encode_without_room_is_refused(void **state)
{
    uint8_t buf[64];
    for (int op = 0; op < 256; op++) {
        struct wf_pkt p = filled((uint8_t)op, UINT64_MAX, 0);
        const struct wf_opcode_info *info = wf_opcode_info((uint8_t)op);
        for (size_t room = 0; info->name && room < info->hdr_len; room++)
            assert_int_equal(wf_packet_encode_headers(&p, buf, room), -ENOSPC);
        if (!info->name)
            assert_int_equal(wf_packet_encode_headers(&p, buf, sizeof(buf)), -EINVAL);
    }
}

static void test_decode_of_unassigned_opcode_is_refused(void **state)
{
    for (int op = 0; op < 256; op++) {
        uint8_t buf[64] = {(uint8_t)op};
        struct wf_pkt out;
        struct iovec iov;
        if (!wf_opcode_info((uint8_t)op)->name)
            assert_int_equal(wf_packet_decode(buf, sizeof(buf), &out, &iov), -EBADMSG);
    }
}

static void test_decode_of_bad_version_pad_or_payload_is_refused(void **state)
{
    struct wf_pkt in = filled(WF_OPCODE(WF_SVC_RC, WF_OP_SEND_ONLY), 0, 5), out;
    struct iovec iov;
    uint8_t buf[64];
    size_t len = build(buf, sizeof(buf), &in);
    assert_int_equal(buf[1], 3 << 4);
    buf[1] |= 1; // TVer
    assert_int_equal(wf_packet_decode(buf, len, &out, &iov), -EBADMSG);
    buf[1] = 3 << 4;
    assert_int_equal(wf_packet_decode(buf, WF_BTH_LEN + WF_ICRC_LEN, &out, &iov), -EBADMSG);
    buf[0] = WF_OPCODE(WF_SVC_RC, WF_OP_ACK); // AETH, then payload that an ACK cannot have
    buf[1] = 0;
    assert_int_equal(wf_packet_decode(buf, len, &out, &iov), -EBADMSG);
    assert_int_equal(wf_packet_decode(buf, 16 + WF_ICRC_LEN, &out, &iov), 0);
}

static void test_reserved_bits_are_ignored_on_receive(void **state)
{
    struct wf_pkt in = filled(WF_OPCODE(WF_SVC_UD, WF_OP_SEND_ONLY), 0, 4), out;
    struct iovec iov;
    uint8_t buf[64];
    size_t len = build(buf, sizeof(buf), &in);
    buf[4] |= 0x3f;
    buf[8] |= 0x7f;
    buf[16] = 0xff;
    assert_int_equal(wf_packet_decode(buf, len, &out, &iov), 0);
    assert_same_fields(&in, &out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_of_every_opcode_at_extremes_survives),
        cmocka_unit_test(test_decode_of_every_truncation_is_refused_or_shorter_payload),
        cmocka_unit_test(test_encode_without_room_is_refused),
        cmocka_unit_test(test_decode_of_unassigned_opcode_is_refused),
        cmocka_unit_test(test_decode_of_bad_version_pad_or_payload_is_refused),
        cmocka_unit_test(test_reserved_bits_are_ignored_on_receive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
