// SPDX-License-Identifier: BSD-2-Clause
#include "cm/mad.h"

#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Position of each field as the standard's tables give it, typed apart from the codec.
struct field {
    uint16_t attr;
    uint8_t byte, bit; // `bit` bits after the byte's most significant one
    uint16_t width;    // bits; wider than 64: bytes
    size_t member, size;
};

#define F(attr, byte, bit, width, m)                                                               \
    {                                                                                              \
        WF_CM_##attr, byte, bit, width, offsetof(struct wf_cm_msg, m),                             \
            sizeof(((struct wf_cm_msg *)0)->m)                                                     \
    }

#define REQ_PATH(base, m)                                                                          \
    F(REQ, base, 0, 16, m.local_lid), F(REQ, base + 2, 0, 16, m.remote_lid),                       \
        F(REQ, base + 4, 0, 128, m.local_gid), F(REQ, base + 20, 0, 128, m.remote_gid),            \
        F(REQ, base + 36, 0, 20, m.flow_label), F(REQ, base + 39, 2, 6, m.rate),                   \
        F(REQ, base + 40, 0, 8, m.tclass), F(REQ, base + 41, 0, 8, m.hop_limit),                   \
        F(REQ, base + 42, 0, 4, m.sl), F(REQ, base + 42, 4, 1, m.subnet_local),                    \
        F(REQ, base + 43, 0, 5, m.ack_timeout)

static const struct field fields[] = {
    F(REQ, 0, 0, 32, req.local_id),
    F(REQ, 5, 0, 24, req.vendor_id),
    F(REQ, 8, 0, 64, req.service_id),
    F(REQ, 16, 0, 64, req.ca_guid),
    F(REQ, 28, 0, 32, req.qkey),
    F(REQ, 32, 0, 24, req.qpn),
    F(REQ, 35, 0, 8, req.responder_resources),
    F(REQ, 36, 0, 24, req.local_eecn),
    F(REQ, 39, 0, 8, req.initiator_depth),
    F(REQ, 40, 0, 24, req.remote_eecn),
    F(REQ, 43, 0, 5, req.remote_response_timeout),
    F(REQ, 43, 5, 2, req.transport),
    F(REQ, 43, 7, 1, req.flow_control),
    F(REQ, 44, 0, 24, req.psn),
    F(REQ, 47, 0, 5, req.local_response_timeout),
    F(REQ, 47, 5, 3, req.retry_count),
    F(REQ, 48, 0, 16, req.pkey),
    F(REQ, 50, 0, 4, req.mtu),
    F(REQ, 50, 4, 1, req.rdc_exists),
    F(REQ, 50, 5, 3, req.rnr_retry),
    F(REQ, 51, 0, 4, req.max_cm_retries),
    F(REQ, 51, 4, 1, req.srq),
    F(REQ, 51, 5, 3, req.ext_transport),
    REQ_PATH(52, req.primary),
    REQ_PATH(96, req.alternate),
    F(REQ, 139, 5, 1, req.alternate.sap),
    F(REQ, 140, 0, 736, req.data),
    F(MRA, 0, 0, 32, mra.local_id),
    F(MRA, 4, 0, 32, mra.remote_id),
    F(MRA, 8, 0, 2, mra.what),
    F(MRA, 9, 0, 5, mra.service_timeout),
    F(MRA, 10, 0, 222 * 8, mra.data),
    F(REJ, 0, 0, 32, rej.local_id),
    F(REJ, 4, 0, 32, rej.remote_id),
    F(REJ, 8, 0, 2, rej.what),
    F(REJ, 9, 0, 7, rej.ari_len),
    F(REJ, 10, 0, 16, rej.reason),
    F(REJ, 12, 0, 576, rej.ari),
    F(REJ, 84, 0, 148 * 8, rej.data),
    F(REP, 0, 0, 32, rep.local_id),
    F(REP, 4, 0, 32, rep.remote_id),
    F(REP, 8, 0, 32, rep.qkey),
    F(REP, 12, 0, 24, rep.qpn),
    F(REP, 16, 0, 24, rep.eecn),
    F(REP, 20, 0, 24, rep.psn),
    F(REP, 24, 0, 8, rep.responder_resources),
    F(REP, 25, 0, 8, rep.initiator_depth),
    F(REP, 26, 0, 5, rep.target_ack_delay),
    F(REP, 26, 5, 2, rep.failover_accepted),
    F(REP, 26, 7, 1, rep.flow_control),
    F(REP, 27, 0, 3, rep.rnr_retry),
    F(REP, 27, 3, 1, rep.srq),
    F(REP, 28, 0, 64, rep.ca_guid),
    F(REP, 36, 0, 196 * 8, rep.data),
    F(RTU, 0, 0, 32, rtu.local_id),
    F(RTU, 4, 0, 32, rtu.remote_id),
    F(RTU, 8, 0, 224 * 8, rtu.data),
    F(DREQ, 0, 0, 32, dreq.local_id),
    F(DREQ, 4, 0, 32, dreq.remote_id),
    F(DREQ, 8, 0, 24, dreq.remote_qpn),
    F(DREQ, 12, 0, 220 * 8, dreq.data),
    F(DREP, 0, 0, 32, drep.local_id),
    F(DREP, 4, 0, 32, drep.remote_id),
    F(DREP, 8, 0, 224 * 8, drep.data),
    F(LAP, 0, 0, 32, lap.local_id),
    F(LAP, 4, 0, 32, lap.remote_id),
    F(LAP, 12, 0, 24, lap.remote_qpn),
    F(LAP, 15, 0, 5, lap.remote_response_timeout),
    F(LAP, 20, 0, 16, lap.path.local_lid),
    F(LAP, 22, 0, 16, lap.path.remote_lid),
    F(LAP, 24, 0, 128, lap.path.local_gid),
    F(LAP, 40, 0, 128, lap.path.remote_gid),
    F(LAP, 56, 0, 20, lap.path.flow_label),
    F(LAP, 59, 0, 8, lap.path.tclass),
    F(LAP, 60, 0, 8, lap.path.hop_limit),
    F(LAP, 61, 2, 6, lap.path.rate),
    F(LAP, 62, 0, 4, lap.path.sl),
    F(LAP, 62, 4, 1, lap.path.subnet_local),
    F(LAP, 63, 0, 5, lap.path.ack_timeout),
    F(LAP, 64, 0, 168 * 8, lap.data),
    F(APR, 0, 0, 32, apr.local_id),
    F(APR, 4, 0, 32, apr.remote_id),
    F(APR, 8, 0, 8, apr.info_len),
    F(APR, 9, 0, 8, apr.status),
    F(APR, 12, 0, 576, apr.info),
    F(APR, 84, 0, 148 * 8, apr.data),
    F(SIDR_REQ, 0, 0, 32, sidr_req.request_id),
    F(SIDR_REQ, 4, 0, 16, sidr_req.pkey),
    F(SIDR_REQ, 8, 0, 64, sidr_req.service_id),
    F(SIDR_REQ, 16, 0, 216 * 8, sidr_req.data),
    F(SIDR_REP, 0, 0, 32, sidr_rep.request_id),
    F(SIDR_REP, 4, 0, 8, sidr_rep.status),
    F(SIDR_REP, 5, 0, 8, sidr_rep.info_len),
    F(SIDR_REP, 8, 0, 24, sidr_rep.qpn),
    F(SIDR_REP, 12, 0, 64, sidr_rep.service_id),
    F(SIDR_REP, 20, 0, 32, sidr_rep.qkey),
    F(SIDR_REP, 24, 0, 576, sidr_rep.info),
    F(SIDR_REP, 96, 0, 136 * 8, sidr_rep.data),
};

static void empty_mad(uint8_t mad[WF_MAD_SIZE], uint16_t attr)
{
    memset(mad, 0, WF_MAD_SIZE);
    mad[0] = 1;
    mad[1] = WF_MAD_CLASS_CM;
    mad[2] = 2;
    mad[3] = attr == WF_CM_CLASS_PORT_INFO ? WF_MAD_GET_RESP : WF_MAD_SEND;
    mad[16] = (uint8_t)(attr >> 8);
    mad[17] = (uint8_t)attr;
}

static void set_bits(uint8_t *at, unsigned bit, unsigned width)
{
    for (unsigned i = bit; i < bit + width; i++)
        at[i / 8] |= (uint8_t)(0x80 >> i % 8);
}

static void check_all_ones(const struct wf_cm_msg *m, const struct field *f)
{
    const uint8_t *p = (const uint8_t *)m + f->member;
    if (f->width > 64) {
        assert_int_equal(f->size * 8, f->width);
        for (size_t i = 0; i < f->size; i++)
            assert_int_equal(p[i], 0xff);
        return;
    }
    uint64_t v = 0;
    memcpy(&v, p, f->size);
    assert_int_equal(v, f->width == 64 ? UINT64_MAX : (1ull << f->width) - 1);
}

static void test_mad_each_field_sits_where_the_standard_says(void **state)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        const struct field *f = &fields[i];
        uint8_t mad[WF_MAD_SIZE], again[WF_MAD_SIZE];
        struct wf_cm_msg m, none;
        empty_mad(mad, f->attr);
        memset(&none, 0, sizeof(none));
        assert_int_equal(wf_cm_decode(mad, &none), 0);
        set_bits(mad + WF_MAD_DATA + f->byte, f->bit, f->width);
        memset(&m, 0, sizeof(m));
        assert_int_equal(wf_cm_decode(mad, &m), 0);
        check_all_ones(&m, f);
        wf_cm_encode(&m, again);
        assert_memory_equal(mad, again, WF_MAD_SIZE);
        // No other member moved.
        memset((uint8_t *)&m + f->member, 0, f->size);
        assert_memory_equal(&m, &none, sizeof(m));
    }
}

static void test_mad_vendor_id_is_put_together_from_its_parts(void **state)
{
    uint8_t mad[WF_MAD_SIZE], again[WF_MAD_SIZE];
    struct wf_cm_msg m;
    memset(&m, 0, sizeof(m));
    empty_mad(mad, WF_CM_REP);
    mad[WF_MAD_DATA + 15] = 0x12;
    mad[WF_MAD_DATA + 19] = 0x34;
    mad[WF_MAD_DATA + 23] = 0x56;
    assert_int_equal(wf_cm_decode(mad, &m), 0);
    assert_int_equal(m.rep.vendor_id, 0x123456);
    wf_cm_encode(&m, again);
    assert_memory_equal(mad, again, WF_MAD_SIZE);

    empty_mad(mad, WF_CM_SIDR_REP);
    mad[WF_MAD_DATA + 6] = 0x12;
    mad[WF_MAD_DATA + 7] = 0x34;
    mad[WF_MAD_DATA + 11] = 0x56;
    assert_int_equal(wf_cm_decode(mad, &m), 0);
    assert_int_equal(m.sidr_rep.vendor_id, 0x123456);
    wf_cm_encode(&m, again);
    assert_memory_equal(mad, again, WF_MAD_SIZE);
}

static void test_mad_header_round_trips(void **state)
{
    struct wf_cm_msg m, back;
    uint8_t mad[WF_MAD_SIZE];
    memset(&m, 0, sizeof(m));
    memset(&back, 0, sizeof(back));
    m.hdr = (struct wf_cm_hdr){2, WF_MAD_SEND, 0x1122, 0x0102030405060708, WF_CM_RTU, 0x55667788};
    wf_cm_encode(&m, mad);
    assert_int_equal(mad[16] << 8 | mad[17], WF_CM_RTU);
    assert_int_equal(mad[8], 0x01);
    assert_int_equal(mad[15], 0x08);
    assert_int_equal(wf_cm_decode(mad, &back), 0);
    assert_memory_equal(&m, &back, sizeof(m));
}

static void test_mad_class_port_info_round_trips(void **state)
{
    struct wf_cm_msg m, back;
    uint8_t mad[WF_MAD_SIZE];
    memset(&m, 0, sizeof(m));
    memset(&back, 0, sizeof(back));
    m.hdr.class_version = 2;
    m.hdr.method = WF_MAD_GET_RESP;
    m.hdr.attr = WF_CM_CLASS_PORT_INFO;
    m.class_port_info.base_version = 1;
    m.class_port_info.class_version = 2;
    m.class_port_info.capabilities = 1 << 9 | 1 << 12 | 1 << 13;
    m.class_port_info.response_time = 0x12;
    memset(&m.class_port_info.redirect_gid, 0xa5, 16);
    m.class_port_info.redirect_lid = 0x1234;
    m.class_port_info.redirect_pkey = 0xffff;
    m.class_port_info.redirect_qpn = 0x010203;
    m.class_port_info.redirect_qkey = 0x80010000;
    wf_cm_encode(&m, mad);
    assert_int_equal(mad[WF_MAD_DATA + 7], 0x12);
    assert_int_equal(wf_cm_decode(mad, &back), 0);
    assert_memory_equal(&m, &back, sizeof(m));
}

static void test_mad_foreign_class_or_method_is_refused(void **state)
{
    uint8_t mad[WF_MAD_SIZE];
    struct wf_cm_msg m;
    empty_mad(mad, WF_CM_REQ);
    mad[0] = 2;
    assert_int_equal(wf_cm_decode(mad, &m), -EBADMSG);
    empty_mad(mad, WF_CM_REQ);
    mad[1] = 0x03;
    assert_int_equal(wf_cm_decode(mad, &m), -EBADMSG);
    empty_mad(mad, WF_CM_REQ);
    mad[3] = WF_MAD_GET;
    assert_int_equal(wf_cm_decode(mad, &m), -EOPNOTSUPP);
    empty_mad(mad, 0x001b);
    assert_int_equal(wf_cm_decode(mad, &m), -EOPNOTSUPP);
}

// ---- golden captures ----------------------------------------------------------------------------

struct capture {
    uint8_t *p;
    size_t len, at;
};

static uint32_t le32(const uint8_t *p)
{
    return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

static void capture_open(struct capture *c, const char *name)
{
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    c->p = malloc(1 << 20);
    c->len = fread(c->p, 1, 1 << 20, f);
    c->at = 24;
    fclose(f);
    assert_true(c->len > 24);
}

// The next packet to QP 1: its MAD, or NULL at the end of the file.
static const uint8_t *capture_mad(struct capture *c)
{
    while (c->at + 16 <= c->len) {
        uint32_t n = le32(c->p + c->at + 8);
        const uint8_t *eth = c->p + c->at + 16;
        c->at += 16 + n;
        assert_true(c->at <= c->len);
        const uint8_t *bth = eth + 14 + (eth[12] == 0x86 ? 40 : 20) + 8;
        if ((bth[5] << 16 | bth[6] << 8 | bth[7]) == 1)
            return bth + 20;
    }
    return NULL;
}

static void test_mad_golden_captures_decode_and_encode_to_the_same_bytes(void **state)
{
    glob_t g;
    unsigned seen[0x20] = {0};
    assert_int_equal(glob(WF_CAPTURES "/*.pcap", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        struct capture c;
        const uint8_t *mad;
        capture_open(&c, g.gl_pathv[i]);
        while ((mad = capture_mad(&c))) {
            struct wf_cm_msg m;
            uint8_t again[WF_MAD_SIZE];
            memset(&m, 0xee, sizeof(m));
            assert_int_equal(wf_cm_decode(mad, &m), 0);
            wf_cm_encode(&m, again);
            assert_memory_equal(mad, again, WF_MAD_SIZE);
            seen[m.hdr.attr & 0x1f]++;
        }
        free(c.p);
    }
    globfree(&g);
    assert_int_equal(seen[WF_CM_REQ], 31);
    assert_int_equal(seen[WF_CM_REP], 29);
    assert_int_equal(seen[WF_CM_REJ], 2);
    assert_int_equal(seen[WF_CM_SIDR_REQ], 1);
    assert_int_equal(seen[WF_CM_SIDR_REP], 1);
}

static void next(struct capture *c, struct wf_cm_msg *m, uint16_t attr)
{
    const uint8_t *mad = capture_mad(c);
    assert_non_null(mad);
    assert_int_equal(wf_cm_decode(mad, m), 0);
    assert_int_equal(m->hdr.attr, attr);
    assert_int_equal(m->hdr.class_version, 2);
}

static const uint8_t v4_2[16] = {[10] = 0xff, 0xff, 10, 77, 0, 2};
static const uint8_t v4_3[16] = {[10] = 0xff, 0xff, 10, 77, 0, 3};

static void check_req(const struct wf_cm_req *q)
{
    assert_int_equal(q->local_id, 0xf693d70d);
    assert_int_equal(q->service_id, 0x0000000001061d2f);
    assert_int_equal(q->ca_guid, 0x505400fffe770002);
    assert_int_equal(q->qpn, 0x11);
    assert_int_equal(q->responder_resources, 4);
    assert_int_equal(q->initiator_depth, 4);
    assert_int_equal(q->remote_response_timeout, 20);
    assert_int_equal(q->local_response_timeout, 20);
    assert_int_equal(q->transport, WF_CM_RC);
    assert_int_equal(q->psn, 0xdd0ca4);
    assert_int_equal(q->retry_count, 7);
    assert_int_equal(q->rnr_retry, 7);
    assert_int_equal(q->pkey, 0xffff);
    assert_int_equal(q->mtu, IBV_MTU_1024);
    assert_int_equal(q->max_cm_retries, 15);
    assert_int_equal(q->primary.local_lid, 0xffff);
    assert_memory_equal(&q->primary.local_gid, v4_2, 16);
    assert_memory_equal(&q->primary.remote_gid, v4_3, 16);
    assert_int_equal(q->primary.flow_label, 0x5b5d7);
    assert_int_equal(q->primary.rate, 0);
    assert_int_equal(q->primary.hop_limit, 64);
    assert_false(q->primary.subnet_local);
    assert_int_equal(q->primary.ack_timeout, 0x13);
    assert_string_equal((const char *)q->data + 36, "idle");
}

static void test_mad_golden_connection_has_the_listed_fields(void **state)
{
    struct capture c;
    struct wf_cm_msg m;
    capture_open(&c, WF_CAPTURES "/cm-idle.pcap");
    next(&c, &m, WF_CM_REQ);
    assert_int_equal(m.hdr.tid, 0x000000020dd793f6);
    check_req(&m.req);
    next(&c, &m, WF_CM_REP);
    assert_int_equal(m.rep.local_id, 0x1529d592);
    assert_int_equal(m.rep.remote_id, 0xf693d70d);
    assert_int_equal(m.rep.qpn, 0x11);
    assert_int_equal(m.rep.psn, 0xcf2e52);
    assert_int_equal(m.rep.responder_resources, 4);
    assert_int_equal(m.rep.initiator_depth, 4);
    assert_int_equal(m.rep.target_ack_delay, 15);
    assert_int_equal(m.rep.rnr_retry, 7);
    assert_int_equal(m.rep.ca_guid, 0x505400fffe770003);
    next(&c, &m, WF_CM_RTU);
    assert_int_equal(m.rtu.local_id, 0xf693d70d);
    assert_int_equal(m.rtu.remote_id, 0x1529d592);
    next(&c, &m, WF_CM_DREQ);
    assert_int_equal(m.dreq.remote_qpn, 0x11);
    next(&c, &m, WF_CM_DREP);
    assert_int_equal(m.drep.local_id, 0x1529d592);
    assert_null(capture_mad(&c));
    free(c.p);
}

static void test_mad_golden_rejects_have_the_listed_fields(void **state)
{
    struct capture c;
    struct wf_cm_msg m;
    capture_open(&c, WF_CAPTURES "/cm-reject.pcap");
    next(&c, &m, WF_CM_REQ);
    next(&c, &m, WF_CM_REJ);
    assert_int_equal(m.rej.reason, 28);
    assert_int_equal(m.rej.what, WF_CM_WHAT_REQ);
    assert_int_equal(m.rej.ari_len, 0);
    assert_string_equal((const char *)m.rej.data, "no thanks");
    free(c.p);
    capture_open(&c, WF_CAPTURES "/cm-nobody.pcap");
    next(&c, &m, WF_CM_REQ);
    next(&c, &m, WF_CM_REJ);
    assert_int_equal(m.rej.reason, 8);
    assert_int_equal(m.rej.local_id, 0);
    assert_int_equal(m.rej.remote_id, 0xf493d70d);
    free(c.p);
}

static void test_mad_golden_sidr_has_the_listed_fields(void **state)
{
    struct capture c;
    struct wf_cm_msg m;
    capture_open(&c, WF_CAPTURES "/ud-udaddy.pcap");
    next(&c, &m, WF_CM_SIDR_REQ);
    assert_int_equal(m.sidr_req.pkey, 0xffff);
    assert_int_equal(m.sidr_req.service_id >> 16, 0x0000000001110000 >> 16);
    uint32_t request = m.sidr_req.request_id;
    next(&c, &m, WF_CM_SIDR_REP);
    assert_int_equal(m.sidr_rep.request_id, request);
    assert_int_equal(m.sidr_rep.status, 0);
    assert_int_equal(m.sidr_rep.qkey, 0x01234567);
    assert_true(m.sidr_rep.qpn > 1);
    free(c.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mad_each_field_sits_where_the_standard_says),
        cmocka_unit_test(test_mad_vendor_id_is_put_together_from_its_parts),
        cmocka_unit_test(test_mad_header_round_trips),
        cmocka_unit_test(test_mad_class_port_info_round_trips),
        cmocka_unit_test(test_mad_foreign_class_or_method_is_refused),
        cmocka_unit_test(test_mad_golden_captures_decode_and_encode_to_the_same_bytes),
        cmocka_unit_test(test_mad_golden_connection_has_the_listed_fields),
        cmocka_unit_test(test_mad_golden_rejects_have_the_listed_fields),
        cmocka_unit_test(test_mad_golden_sidr_has_the_listed_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
