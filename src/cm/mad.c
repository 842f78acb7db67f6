// SPDX-License-Identifier: BSD-2-Clause
#include "cm/mad.h"

#include "base/bytes.h"
#include <errno.h>
#include <stddef.h>

// ---- REQ (12.6.5) -------------------------------------------------------------------------------

static void req_path_get(struct wf_reader *r, struct wf_cm_path *p)
{
    p->local_lid = wf_get_u16(r);
    p->remote_lid = wf_get_u16(r);
    wf_get_bytes(r, &p->local_gid, sizeof(p->local_gid));
    wf_get_bytes(r, &p->remote_gid, sizeof(p->remote_gid));
    uint32_t v = wf_get_u32(r);
    p->flow_label = v >> 12;
    p->rate = v & 0x3f;
    p->tclass = wf_get_u8(r);
    p->hop_limit = wf_get_u8(r);
    uint8_t b = wf_get_u8(r);
    p->sl = b >> 4;
    p->subnet_local = b >> 3 & 1;
    b = wf_get_u8(r);
    p->ack_timeout = b >> 3;
    p->sap = b >> 2 & 1;
}

static void req_path_put(struct wf_writer *w, const struct wf_cm_path *p)
{
    wf_put_u16(w, p->local_lid);
    wf_put_u16(w, p->remote_lid);
    wf_put_bytes(w, &p->local_gid, sizeof(p->local_gid));
    wf_put_bytes(w, &p->remote_gid, sizeof(p->remote_gid));
    wf_put_u32(w, p->flow_label << 12 | (p->rate & 0x3f));
    wf_put_u8(w, p->tclass);
    wf_put_u8(w, p->hop_limit);
    wf_put_u8(w, (uint8_t)(p->sl << 4 | p->subnet_local << 3));
    wf_put_u8(w, (uint8_t)(p->ack_timeout << 3 | p->sap << 2));
}

static void req_get(struct wf_reader *r, struct wf_cm_msg *m)
{
    struct wf_cm_req *q = &m->req;
    q->local_id = wf_get_u32(r);
    wf_skip(r, 1);
    q->vendor_id = wf_get_u24(r);
    q->service_id = wf_get_u64(r);
    q->ca_guid = wf_get_u64(r);
    wf_skip(r, 4);
    q->qkey = wf_get_u32(r);
    q->qpn = wf_get_u24(r);
    q->responder_resources = wf_get_u8(r);
    q->local_eecn = wf_get_u24(r);
    q->initiator_depth = wf_get_u8(r);
    q->remote_eecn = wf_get_u24(r);
    uint8_t b = wf_get_u8(r);
    q->remote_response_timeout = b >> 3;
    q->transport = b >> 1 & 3;
    q->flow_control = b & 1;
    q->psn = wf_get_u24(r);
    b = wf_get_u8(r);
    q->local_response_timeout = b >> 3;
    q->retry_count = b & 7;
    q->pkey = wf_get_u16(r);
    b = wf_get_u8(r);
    q->mtu = b >> 4;
    q->rdc_exists = b >> 3 & 1;
    q->rnr_retry = b & 7;
    b = wf_get_u8(r);
    q->max_cm_retries = b >> 4;
    q->srq = b >> 3 & 1;
    q->ext_transport = b & 7;
    req_path_get(r, &q->primary);
    req_path_get(r, &q->alternate);
    wf_get_bytes(r, q->data, sizeof(q->data));
}

static void req_put(struct wf_writer *w, const struct wf_cm_msg *m)
{
    const struct wf_cm_req *q = &m->req;
    wf_put_u32(w, q->local_id);
    wf_put_zero(w, 1);
    wf_put_u24(w, q->vendor_id);
    wf_put_u64(w, q->service_id);
    wf_put_u64(w, q->ca_guid);
    wf_put_zero(w, 4);
    wf_put_u32(w, q->qkey);
    wf_put_u24(w, q->qpn);
    wf_put_u8(w, q->responder_resources);
    wf_put_u24(w, q->local_eecn);
    wf_put_u8(w, q->initiator_depth);
    wf_put_u24(w, q->remote_eecn);
    wf_put_u8(
        w, (uint8_t)(q->remote_response_timeout << 3 | (q->transport & 3) << 1 | q->flow_control));
    wf_put_u24(w, q->psn);
    wf_put_u8(w, (uint8_t)(q->local_response_timeout << 3 | (q->retry_count & 7)));
    wf_put_u16(w, q->pkey);
    wf_put_u8(w, (uint8_t)(q->mtu << 4 | q->rdc_exists << 3 | (q->rnr_retry & 7)));
    wf_put_u8(w, (uint8_t)(q->max_cm_retries << 4 | q->srq << 3 | (q->ext_transport & 7)));
    req_path_put(w, &q->primary);
    req_path_put(w, &q->alternate);
    wf_put_bytes(w, q->data, sizeof(q->data));
}

// ---- MRA (12.6.6), REJ (12.6.7) -----------------------------------------------------------------

static void mra_get(struct wf_reader *r, struct wf_cm_msg *m)
{
    m->mra.local_id = wf_get_u32(r);
    m->mra.remote_id = wf_get_u32(r);
    m->mra.what = wf_get_u8(r) >> 6;
    m->mra.service_timeout = wf_get_u8(r) >> 3;
    wf_get_bytes(r, m->mra.data, sizeof(m->mra.data));
}

static void mra_put(struct wf_writer *w, const struct wf_cm_msg *m)
{
    wf_put_u32(w, m->mra.local_id);
    wf_put_u32(w, m->mra.remote_id);
    wf_put_u8(w, (uint8_t)(m->mra.what << 6));
    wf_put_u8(w, (uint8_t)(m->mra.service_timeout << 3));
    wf_put_bytes(w, m->mra.data, sizeof(m->mra.data));
}

static void rej_get(struct wf_reader *r, struct wf_cm_msg *m)
{
    m->rej.local_id = wf_get_u32(r);
    m->rej.remote_id = wf_get_u32(r);
    m->rej.what = wf_get_u8(r) >> 6;
    m->rej.ari_len = wf_get_u8(r) >> 1;
    m->rej.reason = wf_get_u16(r);
    wf_get_bytes(r, m->rej.ari, sizeof(m->rej.ari));
    wf_get_bytes(r, m->rej.data, sizeof(m->rej.data));
}

static void rej_put(struct wf_writer *w, const struct wf_cm_msg *m)
{
    wf_put_u32(w, m->rej.local_id);
    wf_put_u32(w, m->rej.remote_id);
    wf_put_u8(w, (uint8_t)(m->rej.what << 6));
    wf_put_u8(w, (uint8_t)(m->rej.ari_len << 1));
    wf_put_u16(w, m->rej.reason);
    wf_put_bytes(w, m->rej.ari, sizeof(m->rej.ari));
    wf_put_bytes(w, m->rej.data, sizeof(m->rej.data));
}

// ---- REP (12.6.8), RTU (12.6.9) -----------------------------------------------------------------

static void rep_get(struct wf_reader *r, struct wf_cm_msg *m)
{
    struct wf_cm_rep *p = &m->rep;
    p->local_id = wf_get_u32(r);
    p->remote_id = wf_get_u32(r);
    p->qkey = wf_get_u32(r);
    p->qpn = wf_get_u24(r);
    p->vendor_id = (uint32_t)wf_get_u8(r) << 16;
    p->eecn = wf_get_u24(r);
    p->vendor_id |= (uint32_t)wf_get_u8(r) << 8;
    p->psn = wf_get_u24(r);
    p->vendor_id |= wf_get_u8(r);
    p->responder_resources = wf_get_u8(r);
    p->initiator_depth = wf_get_u8(r);
    uint8_t b = wf_get_u8(r);
    p->target_ack_delay = b >> 3;
    p->failover_accepted = b >> 1 & 3;
    p->flow_control = b & 1;
    b = wf_get_u8(r);
    p->rnr_retry = b >> 5;
    p->srq = b >> 4 & 1;
    p->ca_guid = wf_get_u64(r);
    wf_get_bytes(r, p->data, sizeof(p->data));
}

static void rep_put(struct wf_writer *w, const struct wf_cm_msg *m)
{
    const struct wf_cm_rep *p = &m->rep;
    wf_put_u32(w, p->local_id);
    wf_put_u32(w, p->remote_id);
    wf_put_u32(w, p->qkey);
    wf_put_u24(w, p->qpn);
    wf_put_u8(w, (uint8_t)(p->vendor_id >> 16));
    wf_put_u24(w, p->eecn);
    wf_put_u8(w, (uint8_t)(p->vendor_id >> 8));
    wf_put_u24(w, p->psn);
    wf_put_u8(w, (uint8_t)p->vendor_id);
    wf_put_u8(w, p->responder_resources);
    wf_put_u8(w, p->initiator_depth);
    wf_put_u8(
        w, (uint8_t)(p->target_ack_delay << 3 | (p->failover_accepted & 3) << 1 | p->flow_control));
    wf_put_u8(w, (uint8_t)(p->rnr_retry << 5 | p->srq << 4));
    wf_put_u64(w, p->ca_guid);
    wf_put_bytes(w, p->data, sizeof(p->data));
}

static void rtu_get(struct wf_reader *r, struct wf_cm_msg *m)
{
    m->rtu.local_id = wf_get_u32(r);
    m->rtu.remote_id = wf_get_u32(r);
    wf_get_bytes(r, m->rtu.data, sizeof(m->rtu.data));
}

static void rtu_put(struct wf_writer *w, const struct wf_cm_msg *m)
{
    wf_put_u32(w, m->rtu.local_id);
    wf_put_u32(w, m->rtu.remote_id);
    wf_put_bytes(w, m->rtu.data, sizeof(m->rtu.data));
}

// ---- DREQ (12.6.10), DREP (12.6.11) -------------------------------------------------------------

static void dreq_get(struct wf_reader *r, struct wf_cm_msg *m)
{
    m->dreq.local_id = wf_get_u32(r);
    m->dreq.remote_id = wf_get_u32(r);
    m->dreq.remote_qpn = wf_get_u24(r);
    wf_skip(r, 1);
    wf_get_bytes(r, m->dreq.data, sizeof(m->dreq.data));
}

static void dreq_put(struct wf_writer *w, const struct wf_cm_msg *m)
{
    wf_put_u32(w, m->dreq.local_id);
    wf_put_u32(w, m->dreq.remote_id);
    wf_put_u24(w, m->dreq.remote_qpn);
    wf_put_zero(w, 1);
    wf_put_bytes(w, m->dreq.data, sizeof(m->dreq.data));
}

static void drep_get(struct wf_reader *r, struct wf_cm_msg *m)
{
    m->drep.local_id = wf_get_u32(r);
    m->drep.remote_id = wf_get_u32(r);
    wf_get_bytes(r, m->drep.data, sizeof(m->drep.data));
}

static void drep_put(struct wf_writer *w, const struct wf_cm_msg *m)
{
    wf_put_u32(w, m->drep.local_id);
    wf_put_u32(w, m->drep.remote_id);
    wf_put_bytes(w, m->drep.data, sizeof(m->drep.data));
}

// ---- LAP (12.8.1), APR (12.8.2) -----------------------------------------------------------------

static void lap_get(struct wf_reader *r, struct wf_cm_msg *m)
{
    struct wf_cm_lap *l = &m->lap;
    struct wf_cm_path *p = &l->path;
    l->local_id = wf_get_u32(r);
    l->remote_id = wf_get_u32(r);
    wf_skip(r, 4);
    l->remote_qpn = wf_get_u24(r);
    l->remote_response_timeout = wf_get_u8(r) >> 3;
    wf_skip(r, 4);
    p->local_lid = wf_get_u16(r);
    p->remote_lid = wf_get_u16(r);
    wf_get_bytes(r, &p->local_gid, sizeof(p->local_gid));
    wf_get_bytes(r, &p->remote_gid, sizeof(p->remote_gid));
    p->flow_label = wf_get_u24(r) >> 4;
    p->tclass = wf_get_u8(r);
    p->hop_limit = wf_get_u8(r);
    p->rate = wf_get_u8(r) & 0x3f;
    uint8_t b = wf_get_u8(r);
    p->sl = b >> 4;
    p->subnet_local = b >> 3 & 1;
    p->ack_timeout = wf_get_u8(r) >> 3;
    p->sap = false;
    wf_get_bytes(r, l->data, sizeof(l->data));
}

static void lap_put(struct wf_writer *w, const struct wf_cm_msg *m)
{
    const struct wf_cm_lap *l = &m->lap;
    const struct wf_cm_path *p = &l->path;
    wf_put_u32(w, l->local_id);
    wf_put_u32(w, l->remote_id);
    wf_put_zero(w, 4);
    wf_put_u24(w, l->remote_qpn);
    wf_put_u8(w, (uint8_t)(l->remote_response_timeout << 3));
    wf_put_zero(w, 4);
    wf_put_u16(w, p->local_lid);
    wf_put_u16(w, p->remote_lid);
    wf_put_bytes(w, &p->local_gid, sizeof(p->local_gid));
    wf_put_bytes(w, &p->remote_gid, sizeof(p->remote_gid));
    wf_put_u24(w, p->flow_label << 4);
    wf_put_u8(w, p->tclass);
    wf_put_u8(w, p->hop_limit);
    wf_put_u8(w, p->rate & 0x3f);
    wf_put_u8(w, (uint8_t)(p->sl << 4 | p->subnet_local << 3));
    wf_put_u8(w, (uint8_t)(p->ack_timeout << 3));
    wf_put_bytes(w, l->data, sizeof(l->data));
}

static void apr_get(struct wf_reader *r, struct wf_cm_msg *m)
{
    m->apr.local_id = wf_get_u32(r);
    m->apr.remote_id = wf_get_u32(r);
    m->apr.info_len = wf_get_u8(r);
    m->apr.status = wf_get_u8(r);
    wf_skip(r, 2);
    wf_get_bytes(r, m->apr.info, sizeof(m->apr.info));
    wf_get_bytes(r, m->apr.data, sizeof(m->apr.data));
}

static void apr_put(struct wf_writer *w, const struct wf_cm_msg *m)
{
    wf_put_u32(w, m->apr.local_id);
    wf_put_u32(w, m->apr.remote_id);
    wf_put_u8(w, m->apr.info_len);
    wf_put_u8(w, m->apr.status);
    wf_put_zero(w, 2);
    wf_put_bytes(w, m->apr.info, sizeof(m->apr.info));
    wf_put_bytes(w, m->apr.data, sizeof(m->apr.data));
}

// ---- SIDR_REQ (12.11.1), SIDR_REP (12.11.2) -----------------------------------------------------

static void sidr_req_get(struct wf_reader *r, struct wf_cm_msg *m)
{
    m->sidr_req.request_id = wf_get_u32(r);
    m->sidr_req.pkey = wf_get_u16(r);
    wf_skip(r, 2);
    m->sidr_req.service_id = wf_get_u64(r);
    wf_get_bytes(r, m->sidr_req.data, sizeof(m->sidr_req.data));
}

static void sidr_req_put(struct wf_writer *w, const struct wf_cm_msg *m)
{
    wf_put_u32(w, m->sidr_req.request_id);
    wf_put_u16(w, m->sidr_req.pkey);
    wf_put_zero(w, 2);
    wf_put_u64(w, m->sidr_req.service_id);
    wf_put_bytes(w, m->sidr_req.data, sizeof(m->sidr_req.data));
}

static void sidr_rep_get(struct wf_reader *r, struct wf_cm_msg *m)
{
    struct wf_cm_sidr_rep *p = &m->sidr_rep;
    p->request_id = wf_get_u32(r);
    p->status = wf_get_u8(r);
    p->info_len = wf_get_u8(r);
    p->vendor_id = (uint32_t)wf_get_u16(r) << 8;
    p->qpn = wf_get_u24(r);
    p->vendor_id |= wf_get_u8(r);
    p->service_id = wf_get_u64(r);
    p->qkey = wf_get_u32(r);
    wf_get_bytes(r, p->info, sizeof(p->info));
    wf_get_bytes(r, p->data, sizeof(p->data));
}

static void sidr_rep_put(struct wf_writer *w, const struct wf_cm_msg *m)
{
    const struct wf_cm_sidr_rep *p = &m->sidr_rep;
    wf_put_u32(w, p->request_id);
    wf_put_u8(w, p->status);
    wf_put_u8(w, p->info_len);
    wf_put_u16(w, (uint16_t)(p->vendor_id >> 8));
    wf_put_u24(w, p->qpn);
    wf_put_u8(w, (uint8_t)p->vendor_id);
    wf_put_u64(w, p->service_id);
    wf_put_u32(w, p->qkey);
    wf_put_bytes(w, p->info, sizeof(p->info));
    wf_put_bytes(w, p->data, sizeof(p->data));
}

// ---- ClassPortInfo (13.4.8.1) -------------------------------------------------------------------

static void class_port_info_get(struct wf_reader *r, struct wf_cm_msg *m)
{
    struct wf_class_port_info *c = &m->class_port_info;
    c->base_version = wf_get_u8(r);
    c->class_version = wf_get_u8(r);
    c->capabilities = wf_get_u16(r);
    c->response_time = wf_get_u32(r) & 0x1f;
    wf_get_bytes(r, &c->redirect_gid, sizeof(c->redirect_gid));
    wf_skip(r, 4); // redirect traffic class, SL, flow label
    c->redirect_lid = wf_get_u16(r);
    c->redirect_pkey = wf_get_u16(r);
    wf_skip(r, 1);
    c->redirect_qpn = wf_get_u24(r);
    c->redirect_qkey = wf_get_u32(r);
    wf_skip(r, 32); // traps: the class has none
}

static void class_port_info_put(struct wf_writer *w, const struct wf_cm_msg *m)
{
    const struct wf_class_port_info *c = &m->class_port_info;
    wf_put_u8(w, c->base_version);
    wf_put_u8(w, c->class_version);
    wf_put_u16(w, c->capabilities);
    wf_put_u32(w, c->response_time & 0x1f);
    wf_put_bytes(w, &c->redirect_gid, sizeof(c->redirect_gid));
    wf_put_zero(w, 4);
    wf_put_u16(w, c->redirect_lid);
    wf_put_u16(w, c->redirect_pkey);
    wf_put_zero(w, 1);
    wf_put_u24(w, c->redirect_qpn);
    wf_put_u32(w, c->redirect_qkey);
    wf_put_zero(w, 32);
}

// ---- all of them --------------------------------------------------------------------------------

struct codec {
    uint16_t attr;
    const char *name;
    void (*get)(struct wf_reader *r, struct wf_cm_msg *m);
    void (*put)(struct wf_writer *w, const struct wf_cm_msg *m);
    uint16_t data, data_len; // private data in struct wf_cm_msg
};

#define DATA(member) offsetof(struct wf_cm_msg, member), sizeof(((struct wf_cm_msg *)0)->member)

static const struct codec codecs[] = {
    {WF_CM_REQ, "REQ", req_get, req_put, DATA(req.data)},
    {WF_CM_MRA, "MRA", mra_get, mra_put, DATA(mra.data)},
    {WF_CM_REJ, "REJ", rej_get, rej_put, DATA(rej.data)},
    {WF_CM_REP, "REP", rep_get, rep_put, DATA(rep.data)},
    {WF_CM_RTU, "RTU", rtu_get, rtu_put, DATA(rtu.data)},
    {WF_CM_DREQ, "DREQ", dreq_get, dreq_put, DATA(dreq.data)},
    {WF_CM_DREP, "DREP", drep_get, drep_put, DATA(drep.data)},
    {WF_CM_LAP, "LAP", lap_get, lap_put, DATA(lap.data)},
    {WF_CM_APR, "APR", apr_get, apr_put, DATA(apr.data)},
    {WF_CM_SIDR_REQ, "SIDR_REQ", sidr_req_get, sidr_req_put, DATA(sidr_req.data)},
    {WF_CM_SIDR_REP, "SIDR_REP", sidr_rep_get, sidr_rep_put, DATA(sidr_rep.data)},
    {WF_CM_CLASS_PORT_INFO, "ClassPortInfo", class_port_info_get, class_port_info_put, 0, 0},
};

static const struct codec *codec_of(uint16_t attr)
{
    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++)
        if (codecs[i].attr == attr)
            return &codecs[i];
    return NULL;
}

static bool method_fits(const struct wf_cm_hdr *h)
{
    if (h->attr == WF_CM_CLASS_PORT_INFO)
        return h->method == WF_MAD_GET || h->method == WF_MAD_GET_RESP;
    return h->method == WF_MAD_SEND;
}

int wf_cm_decode(const uint8_t mad[WF_MAD_SIZE], struct wf_cm_msg *out)
{
    struct wf_reader r = wf_reader_of(mad, WF_MAD_SIZE);
    struct wf_cm_hdr *h = &out->hdr;
    uint8_t base_version = wf_get_u8(&r);
    uint8_t mgmt_class = wf_get_u8(&r);
    h->class_version = wf_get_u8(&r);
    h->method = wf_get_u8(&r);
    h->status = wf_get_u16(&r);
    wf_skip(&r, 2);
    h->tid = wf_get_u64(&r);
    h->attr = wf_get_u16(&r);
    wf_skip(&r, 2);
    h->modifier = wf_get_u32(&r);
    if (base_version != 1 || mgmt_class != WF_MAD_CLASS_CM)
        return -EBADMSG;
    const struct codec *c = codec_of(h->attr);
    if (!c || !method_fits(h))
        return -EOPNOTSUPP;
    c->get(&r, out);
    return wf_reader_ok(&r) ? 0 : -EBADMSG;
}

void wf_cm_encode(const struct wf_cm_msg *msg, uint8_t mad[WF_MAD_SIZE])
{
    const struct wf_cm_hdr *h = &msg->hdr;
    struct wf_writer w = wf_writer_of(mad, WF_MAD_SIZE);
    memset(mad, 0, WF_MAD_SIZE);
    wf_put_u8(&w, 1);
    wf_put_u8(&w, WF_MAD_CLASS_CM);
    wf_put_u8(&w, h->class_version);
    wf_put_u8(&w, h->method);
    wf_put_u16(&w, h->status);
    wf_put_zero(&w, 2);
    wf_put_u64(&w, h->tid);
    wf_put_u16(&w, h->attr);
    wf_put_zero(&w, 2);
    wf_put_u32(&w, h->modifier);
    const struct codec *c = codec_of(h->attr);
    if (c)
        c->put(&w, msg);
}

const char *wf_cm_attr_name(uint16_t attr)
{
    const struct codec *c = codec_of(attr);
    return c ? c->name : "?";
}

uint8_t *wf_cm_msg_data(struct wf_cm_msg *msg, uint32_t *len)
{
    const struct codec *c = codec_of(msg->hdr.attr);
    *len = c ? c->data_len : 0;
    return *len ? (uint8_t *)msg + c->data : NULL;
}
