// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/smsg.h"
#include "ugni/job.h"
#include "ugni/op.h"
#include "ugni/state.h"
#include "ugni/target.h"

#include <stdlib.h>
#include <string.h>

#define CONTROL_BYTES 64u
// A message may be longer than msg_maxsize by this much of header: libfabric sends so.
#define HEADER_ROOM 32u

enum { STAT_CREDITS_STALL = 2, STAT_REQ_STALL = 3 };

struct slot {
    uint32_t seq; // of the message, counted from 1
    uint32_t len;
    uint8_t tag;
    uint8_t pad[7];
    char data[];
};

struct control {
    uint32_t released; // by the peer, of the messages sent from here
};

struct wf_gni_smsg {
    gni_smsg_type_t type;
    uint32_t credits, max_size, stride;
    uint32_t region; // of the mailbox here
    char *box;
    uint32_t remote_region;
    uint64_t remote_box;
    uint32_t sent, received, returned; // `received`: released by the program
    bool current;
};

static uint32_t stride_of(uint32_t max_size)
{
    return (uint32_t)((sizeof(struct slot) + max_size + HEADER_ROOM + 15) & ~15u);
}

static uint64_t box_size(const gni_smsg_attr_t *a)
{
    uint64_t size = CONTROL_BYTES + (uint64_t)a->mbox_maxcredit * stride_of(a->msg_maxsize);
    return (size + 63) & ~63ull;
}

static bool attr_ok(const gni_smsg_attr_t *a)
{
    return a &&
           (a->msg_type == GNI_SMSG_TYPE_MBOX ||
            a->msg_type == GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT) &&
           a->mbox_maxcredit && a->msg_maxsize && a->msg_maxsize <= GNI_SMSG_MAX_SIZE;
}

gni_return_t GNI_SmsgBufferSizeNeeded(gni_smsg_attr_t *smsg_attr, unsigned int *size)
{
    if (!attr_ok(smsg_attr) || !size || box_size(smsg_attr) > UINT32_MAX)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM,
                             "SmsgBufferSizeNeeded: type, credits or message size");
    *size = (unsigned)box_size(smsg_attr);
    return GNI_RC_SUCCESS;
}

// Where the mailbox lies in its region. That of segments has no one address.
static uint64_t box_offset(const gni_smsg_attr_t *a)
{
    struct wf_gni_mh m = wf_gni_mh_unpack(&a->mem_hndl);
    uint64_t base =
        m.address || m.flags & WF_GNI_MH_VMDH ? (uintptr_t)a->msg_buffer - m.address : 0;
    return base + a->mbox_offset;
}

static gni_return_t check_init(const struct gni_ep *ep, const gni_smsg_attr_t *l,
                               const gni_smsg_attr_t *r)
{
    if (!ep || !attr_ok(l) || !attr_ok(r))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "SmsgInit: endpoint or attributes");
    if (!ep->bound || ep->smsg)
        return wf_gni_refuse(GNI_RC_INVALID_STATE, "SmsgInit: the endpoint is %s",
                             ep->bound ? "initialised already" : "not bound");
    if (l->msg_type != r->msg_type || l->mbox_maxcredit != r->mbox_maxcredit ||
        l->msg_maxsize != r->msg_maxsize)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "SmsgInit: the two sides do not agree");
    if (!ep->cq || !wf_gni_mh_region(&r->mem_hndl))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM,
                             "SmsgInit: no source queue, or no remote memory");
    int st = wf_gni_target_check(ep->nic->cdm->ptag, wf_gni_mh_region(&l->mem_hndl), box_offset(l),
                                 box_size(l), true);
    if (st || (l->buff_size && l->buff_size < box_size(l)) || box_offset(l) % 8)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM,
                             "SmsgInit: the mailbox of %llu bytes is not in the local memory, "
                             "misaligned, or buff_size is smaller",
                             (unsigned long long)box_size(l));
    return GNI_RC_SUCCESS;
}

static gni_return_t init(struct gni_ep *ep, const gni_smsg_attr_t *l, const gni_smsg_attr_t *r)
{
    gni_return_t rc = check_init(ep, l, r);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    uint32_t region = wf_gni_mh_region(&l->mem_hndl);
    char *box = wf_gni_target_pointer(region, box_offset(l), box_size(l));
    if (!box)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "SmsgInit: the mailbox spans two segments");
    struct wf_gni_smsg *s = calloc(1, sizeof(*s));
    if (!s)
        return GNI_RC_ERROR_NOMEM;
    *s = (struct wf_gni_smsg){.type = l->msg_type,
                              .credits = l->mbox_maxcredit,
                              .max_size = l->msg_maxsize,
                              .stride = stride_of(l->msg_maxsize),
                              .region = region,
                              .box = box,
                              .remote_region = wf_gni_mh_region(&r->mem_hndl),
                              .remote_box = box_offset(r)};
    ep->smsg = s;
    wf_gni_ep_peer(ep); // connected from now on: its death is noticed
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_SmsgInit(gni_ep_handle_t ep_hndl, gni_smsg_attr_t *local_smsg_attr,
                          gni_smsg_attr_t *remote_smsg_attr)
{
    wf_gni_lock();
    gni_return_t rc = init(wf_gni_ep(ep_hndl), local_smsg_attr, remote_smsg_attr);
    wf_gni_unlock();
    return rc;
}

void wf_gni_smsg_release(struct gni_ep *ep)
{
    free(ep->smsg);
    ep->smsg = NULL;
}

static struct slot *slot(const struct wf_gni_smsg *s, uint32_t k)
{
    return (struct slot *)(s->box + CONTROL_BYTES + (size_t)(k % s->credits) * s->stride);
}

static bool committed(const struct wf_gni_smsg *s, uint32_t k)
{
    return __atomic_load_n(&slot(s, k)->seq, __ATOMIC_ACQUIRE) == k + 1;
}

// ---- sending ------------------------------------------------------------------------------------

static bool too_long(const struct wf_gni_smsg *s, uint64_t header, uint64_t data)
{
    return header > s->max_size || data > s->max_size ||
           header + data > (uint64_t)s->max_size + HEADER_ROOM || header + data > GNI_SMSG_MAX_SIZE;
}

static bool has_credit(const struct wf_gni_smsg *s)
{
    const struct control *c = (const void *)s->box;
    return s->sent - __atomic_load_n(&c->released, __ATOMIC_ACQUIRE) < s->credits;
}

static void gather(char *to, uint64_t at, uint64_t n, const void *header, uint32_t header_len,
                   const void *data)
{
    uint64_t from_header = at < header_len ? header_len - at : 0;
    if (from_header > n)
        from_header = n;
    if (from_header)
        memcpy(to, (const char *)header + at, from_header);
    if (n > from_header)
        memcpy(to + from_header, (const char *)data + (at + from_header - header_len),
               n - from_header);
}

struct outgoing {
    const void *header, *data;
    uint32_t header_len, data_len;
    uint8_t tag;
};

static bool transmit(struct gni_ep *ep, struct wf_gni_peer *peer, const struct outgoing *m)
{
    static char buffer[WF_GNI_AM_PAYLOAD];
    struct wf_gni_smsg *s = ep->smsg;
    uint32_t total = m->header_len + m->data_len, at = 0;
    struct wf_gni_am am = {
        .type = WF_GNI_AM_SMSG,
        .ptag = ep->nic->cdm->ptag,
        .region = s->remote_region,
        .event = ep->remote_event,
        .addr = s->remote_box + CONTROL_BYTES + (uint64_t)(s->sent % s->credits) * s->stride,
        .first = s->sent + 1,
        .second = total | (uint64_t)m->tag << 32,
    };
    do {
        uint32_t n = total - at < sizeof(buffer) ? total - at : (uint32_t)sizeof(buffer);
        gather(buffer, at, n, m->header, m->header_len, m->data);
        am.arg = at;
        am.len = n;
        at += n;
        am.flags = at == total ? WF_GNI_AMF_LAST : 0;
        if (!wf_gni_peer_send(peer, &am, buffer))
            return false;
    } while (at < total);
    return true;
}

static gni_return_t send_message(struct gni_ep *ep, const struct outgoing *m, uint32_t msg_id)
{
    struct wf_gni_smsg *s = ep ? ep->smsg : NULL;
    if (!s || (!m->header && m->header_len) || (!m->data && m->data_len))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "SmsgSend: no endpoint with short messages, or "
                                                   "a length without a buffer");
    if (too_long(s, m->header_len, m->data_len) || wf_gni_job_suspended(ep->nic->cdm->ptag))
        return wf_gni_fail(ep->nic, GNI_RC_ERROR_RESOURCE, "SmsgSend",
                           "%u + %u bytes, at most %u; or the job is suspended", m->header_len,
                           m->data_len, s->max_size);
    struct wf_gni_peer *peer = wf_gni_ep_peer(ep);
    bool dead = !peer || peer->dead;
    if (!dead && !has_credit(s)) {
        wf_gni_progress();
        if (!has_credit(s)) {
            ep->nic->stats[STAT_CREDITS_STALL]++;
            return GNI_RC_NOT_DONE;
        }
    }
    struct wf_gni_req *req = wf_gni_req_get(ep, ep->cq);
    if (!req) {
        ep->nic->stats[STAT_REQ_STALL]++;
        return GNI_RC_NOT_DONE;
    }
    req->cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    req->source = WF_GNI_SRC_MESSAGE;
    req->type = GNI_CQ_EVENT_TYPE_SMSG;
    req->local_event = msg_id;
    bool sent = !dead && transmit(ep, peer, m);
    s->sent += sent;
    wf_gni_req_part_done(req, sent ? WF_GNI_ST_OK : WF_GNI_ST_PEER_DIED);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_SmsgSendWTag(gni_ep_handle_t ep_hndl, void *header, uint32_t header_length,
                              void *data, uint32_t data_length, uint32_t msg_id, uint8_t tag)
{
    struct outgoing m = {header, data, header_length, data_length, tag};
    wf_gni_lock();
    gni_return_t rc = send_message(wf_gni_ep(ep_hndl), &m, msg_id);
    wf_gni_unlock();
    wf_gni_idle(rc == GNI_RC_NOT_DONE);
    return rc;
}

gni_return_t GNI_SmsgSend(gni_ep_handle_t ep_hndl, void *header, uint32_t header_length, void *data,
                          uint32_t data_length, uint32_t msg_id)
{
    return GNI_SmsgSendWTag(ep_hndl, header, header_length, data, data_length, msg_id, 0);
}

// ---- arriving -----------------------------------------------------------------------------------

void wf_gni_smsg_arrived(const struct wf_gni_am *am, const void *payload)
{
    uint64_t total = (uint32_t)am->second, at = (uint32_t)am->arg;
    uint64_t size = sizeof(struct slot) + total;
    if (at + am->len > total || am->addr % 8 ||
        wf_gni_target_check(am->ptag, am->region, am->addr, size, true))
        return;
    struct slot *s = wf_gni_target_pointer(am->region, am->addr, size);
    if (!s)
        return;
    memcpy(s->data + at, payload, am->len);
    if (!(am->flags & WF_GNI_AMF_LAST))
        return;
    s->len = (uint32_t)total;
    s->tag = (uint8_t)(am->second >> 32);
    __atomic_store_n(&s->seq, (uint32_t)am->first, __ATOMIC_RELEASE);
    wf_gni_target_event(am->region, am->event);
}

void wf_gni_smsg_credit(const struct wf_gni_am *am)
{
    if (am->addr % 8 ||
        wf_gni_target_check(am->ptag, am->region, am->addr, sizeof(struct control), true))
        return;
    struct control *c = wf_gni_target_pointer(am->region, am->addr, sizeof(*c));
    if (c)
        __atomic_store_n(&c->released, (uint32_t)am->arg, __ATOMIC_RELEASE);
}

// ---- receiving ----------------------------------------------------------------------------------

static gni_return_t get_next(struct gni_ep *ep, void **header, uint8_t *tag)
{
    struct wf_gni_smsg *s = ep ? ep->smsg : NULL;
    if (!s || !header)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "SmsgGetNext: no endpoint with short messages");
    if (!wf_gni.region[s->region].live)
        return wf_gni_refuse(GNI_RC_INVALID_STATE, "SmsgGetNext: the mailbox is deregistered");
    if (!committed(s, s->received))
        wf_gni_progress();
    if (!committed(s, s->received)) {
        if (!ep->peer || !ep->peer->dead)
            return GNI_RC_NOT_DONE;
        return wf_gni_refuse(GNI_RC_INVALID_STATE, "SmsgGetNext: the peer died");
    }
    struct slot *m = slot(s, s->received);
    if (tag && *tag != GNI_SMSG_ANY_TAG && *tag != m->tag)
        return GNI_RC_NO_MATCH;
    if (tag)
        *tag = m->tag;
    s->current = true;
    *header = m->data;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_SmsgGetNextWTag(gni_ep_handle_t ep_hndl, void **header, uint8_t *tag)
{
    if (!tag)
        return GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    gni_return_t rc = get_next(wf_gni_ep(ep_hndl), header, tag);
    wf_gni_unlock();
    wf_gni_idle(rc == GNI_RC_NOT_DONE);
    return rc;
}

gni_return_t GNI_SmsgGetNext(gni_ep_handle_t ep_hndl, void **header)
{
    wf_gni_lock();
    gni_return_t rc = get_next(wf_gni_ep(ep_hndl), header, NULL);
    wf_gni_unlock();
    wf_gni_idle(rc == GNI_RC_NOT_DONE);
    return rc;
}

// Credits go back in lots, but at once to a sender that has used its last one.
static bool return_now(const struct wf_gni_smsg *s)
{
    uint32_t owed = s->received - s->returned;
    uint32_t lot = s->credits / 4 ? s->credits / 4 : 1;
    return owed >= lot || committed(s, s->returned + s->credits - 1) ||
           s->received == s->returned + s->credits;
}

static void give_credits(struct gni_ep *ep)
{
    struct wf_gni_smsg *s = ep->smsg;
    struct wf_gni_peer *peer = wf_gni_ep_peer(ep);
    struct wf_gni_am am = {.type = WF_GNI_AM_SMSG_CREDIT,
                           .ptag = ep->nic->cdm->ptag,
                           .region = s->remote_region,
                           .addr = s->remote_box,
                           .arg = s->received};
    s->returned = s->received;
    if (peer)
        wf_gni_peer_send(peer, &am, NULL);
}

static gni_return_t release(struct gni_ep *ep)
{
    struct wf_gni_smsg *s = ep ? ep->smsg : NULL;
    if (!s)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "SmsgRelease: no endpoint with short messages");
    if (!s->current)
        return GNI_RC_NOT_DONE;
    s->current = false;
    s->received++;
    if (return_now(s))
        give_credits(ep);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_SmsgRelease(gni_ep_handle_t ep_hndl)
{
    wf_gni_lock();
    gni_return_t rc = release(wf_gni_ep(ep_hndl));
    wf_gni_unlock();
    return rc;
}

// ---- settings -----------------------------------------------------------------------------------

gni_return_t GNI_SmsgSetDeliveryMode(gni_nic_handle_t nic_handle, uint16_t dlvr_mode)
{
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_handle);
    bool ok = nic && !(dlvr_mode & ~0x1ff);
    if (ok)
        nic->dlvr_mode = dlvr_mode;
    wf_gni_unlock();
    return ok ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_SmsgSetMaxRetrans(gni_nic_handle_t nic_handle, uint16_t max_retrans)
{
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_handle);
    if (nic)
        nic->max_retrans = max_retrans;
    wf_gni_unlock();
    return nic ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}
