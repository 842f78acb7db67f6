// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/msgq.h"
#include "ugni/peer.h"
#include "ugni/state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct message {
    uint32_t id, pe; // sender
    uint8_t tag;
    uint32_t len;
    struct message *prev, *next;
    char data[GNI_MSGQ_MSG_SZ_MAX];
};

// Messages to one process that were not taken there yet.
struct flow {
    uint32_t pe;
    uint32_t under_way;
    UT_hash_handle hh;
};

struct gni_msgq {
    struct wf_gni_obj obj;
    struct gni_nic *nic;
    gni_msgq_rcv_cb_func *cb;
    void *cb_data;
    struct gni_cq *snd_cq;
    gni_msgq_attr_t attrs;
    struct wf_gni_msgq_table *table;
    struct message *messages;
    struct flow *flows;
    int fd;
    uint32_t waiters;
    bool in_progress; // a callback may release the queue only after it
    struct gni_msgq *prev, *next;
};

static struct wf_gni_pool pool = {.size = (sizeof(struct gni_msgq) + 63) & ~63ull, .max = 1u << 12};

static struct gni_msgq *queue(gni_msgq_handle_t h)
{
    return wf_gni_pool_check(&pool, h);
}

static bool attrs_ok(const gni_msgq_attr_t *a)
{
    return a && a->max_msg_sz && a->max_msg_sz <= GNI_MSGQ_MSG_SZ_MAX && a->smsg_q_sz &&
           (a->smsg_q_sz == 1 || a->smsg_q_sz % 2 == 0) && a->nloc_insts &&
           a->nloc_insts <= GNI_MSGQ_NODE_INSTS_MAX && !(a->modes & ~GNI_MSGQ_MODE_BLOCKING);
}

// ---- making -------------------------------------------------------------------------------------

static gni_return_t init(struct gni_nic *nic, struct gni_cq *cq, const gni_msgq_attr_t *attrs,
                         struct gni_msgq **out)
{
    bool agrees = false;
    if (nic->msgqs)
        return wf_gni_refuse(GNI_RC_INVALID_STATE, "MsgqInit: the NIC has a message queue");
    struct gni_msgq *q = wf_gni_pool_get(&pool);
    if (!q)
        return GNI_RC_ERROR_NOMEM;
    q->table = wf_gni_msgq_table_open(nic->cdm->ptag, nic->cdm->cookie, attrs, &agrees);
    if (!q->table || !agrees) {
        if (q->table)
            wf_gni_msgq_table_close(q->table);
        wf_gni_pool_put(&pool, q);
        return wf_gni_refuse(agrees || !q->table ? GNI_RC_ERROR_NOMEM : GNI_RC_INVALID_STATE,
                             "MsgqInit: no shared memory, or other attributes than the first");
    }
    q->nic = nic;
    q->snd_cq = cq;
    q->attrs = *attrs;
    q->fd = -1;
    cq->users++;
    if (cq->use == WF_GNI_CQ_UNUSED)
        cq->use = WF_GNI_CQ_SOURCE;
    DL_APPEND(nic->msgqs, q);
    *out = q;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_MsgqInit(gni_nic_handle_t nic_hndl, gni_msgq_rcv_cb_func *rcv_cb, void *cb_data,
                          gni_cq_handle_t snd_cq, gni_msgq_attr_t *attrs,
                          gni_msgq_handle_t *msgq_hndl)
{
    struct gni_msgq *q = NULL;
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    struct gni_cq *cq = wf_gni_cq(snd_cq);
    if (nic && rcv_cb && cq && cq->nic == nic && cq->use != WF_GNI_CQ_DESTINATION &&
        attrs_ok(attrs) && msgq_hndl)
        rc = init(nic, cq, attrs, &q);
    else
        wf_gni_refuse(rc, "MsgqInit: NIC, callback, queue or attributes");
    if (rc == GNI_RC_SUCCESS) {
        q->cb = rcv_cb;
        q->cb_data = cb_data;
        *msgq_hndl = q;
    }
    wf_gni_unlock();
    return rc;
}

void wf_gni_msgq_release(struct gni_msgq *q)
{
    struct message *m, *mt;
    struct flow *f, *ft;
    wf_gni_evict(&q->obj, q->fd, &q->waiters);
    DL_FOREACH_SAFE(q->messages, m, mt)
    free(m);
    HASH_ITER(hh, q->flows, f, ft)
    {
        HASH_DEL(q->flows, f);
        free(f);
    }
    if (q->fd >= 0)
        close(q->fd);
    wf_gni_msgq_table_close(q->table);
    q->snd_cq->users--;
    DL_DELETE(q->nic->msgqs, q);
    wf_gni_pool_put(&pool, q);
}

// Sends whose entries were not fetched.
static bool outstanding(const struct gni_msgq *q)
{
    const struct wf_gni_req *r;
    DL_FOREACH(q->snd_cq->reqs, r)
    if (r->type == GNI_CQ_EVENT_TYPE_MSGQ)
        return true;
    return false;
}

gni_return_t GNI_MsgqRelease(gni_msgq_handle_t msgq_hndl)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    wf_gni_lock();
    wf_gni_progress();
    struct gni_msgq *q = queue(msgq_hndl);
    if (!q)
        rc = GNI_RC_INVALID_PARAM;
    else if (q->in_progress || outstanding(q))
        rc = wf_gni_refuse(GNI_RC_NOT_DONE, "MsgqRelease: sends are under way");
    else
        wf_gni_msgq_release(q);
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_MsgqIdle(gni_msgq_handle_t msgq_hndl)
{
    wf_gni_lock();
    wf_gni_progress();
    struct gni_msgq *q = queue(msgq_hndl);
    gni_return_t rc = !q                              ? GNI_RC_INVALID_PARAM
                      : outstanding(q) || q->messages ? GNI_RC_NOT_DONE
                                                      : GNI_RC_SUCCESS;
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_MsgqSize(gni_msgq_attr_t *attrs, uint32_t *size)
{
    uint64_t huge = 2u << 20;
    if (!attrs_ok(attrs) || !size)
        return GNI_RC_INVALID_PARAM;
    uint64_t bytes =
        ((uint64_t)attrs->num_msgq_eps + 1) * attrs->smsg_q_sz * (attrs->max_msg_sz + 64);
    bytes = (bytes + huge - 1) / huge * huge;
    if (bytes > UINT32_MAX)
        return GNI_RC_INVALID_PARAM;
    *size = (uint32_t)bytes;
    return GNI_RC_SUCCESS;
}

// ---- connecting ---------------------------------------------------------------------------------

static gni_return_t get_attrs(struct gni_msgq *q, uint32_t pe, gni_msgq_ep_attr_t *attrs,
                              uint32_t *size)
{
    if (wf_gni_msgq_table_own(q->table, pe) != WF_GNI_CONN_NONE)
        return wf_gni_refuse(GNI_RC_INVALID_STATE, "MsgqGetConnAttrs: PE 0x%x has resources", pe);
    if (!wf_gni_msgq_table_assign(q->table, pe))
        return wf_gni_refuse(GNI_RC_ERROR_RESOURCE, "MsgqGetConnAttrs: no connection is left");
    // Exactly what is told is written: the array's length differs between revisions.
    attrs->pe_addr = wf_gni.pe;
    attrs->max_msg_sz = q->attrs.max_msg_sz;
    attrs->smsg_q_sz = q->attrs.smsg_q_sz;
    attrs->num_insts = 1;
    attrs->insts[0] = (gni_msgq_rem_inst_t){.id = q->nic->cdm->inst_id};
    if (size)
        *size = (uint32_t)(offsetof(gni_msgq_ep_attr_t, insts) + sizeof(attrs->insts[0]));
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_MsgqGetConnAttrs(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr,
                                  gni_msgq_ep_attr_t *attrs, uint32_t *attrs_size)
{
    wf_gni_lock();
    struct gni_msgq *q = queue(msgq_hndl);
    gni_return_t rc = q && attrs ? get_attrs(q, pe_addr, attrs, attrs_size) : GNI_RC_INVALID_PARAM;
    wf_gni_unlock();
    return rc;
}

static gni_return_t connect(struct gni_msgq *q, uint32_t pe, const gni_msgq_ep_attr_t *attrs)
{
    enum wf_gni_msgq_conn state = wf_gni_msgq_table_own(q->table, pe);
    if (state == WF_GNI_CONN_NONE)
        return wf_gni_refuse(GNI_RC_NO_MATCH, "MsgqConnect: PE 0x%x has no resources", pe);
    if (state == WF_GNI_CONN_UP)
        return wf_gni_refuse(GNI_RC_INVALID_STATE, "MsgqConnect: PE 0x%x is connected", pe);
    if (attrs->max_msg_sz != q->attrs.max_msg_sz || attrs->smsg_q_sz != q->attrs.smsg_q_sz ||
        WF_GNI_PE_HOST(attrs->pe_addr) != WF_GNI_PE_HOST(pe))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM,
                             "MsgqConnect: attributes of another PE or queue");
    wf_gni_msgq_table_connect(q->table, pe);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_MsgqConnect(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr,
                             gni_msgq_ep_attr_t *attrs)
{
    wf_gni_lock();
    struct gni_msgq *q = queue(msgq_hndl);
    gni_return_t rc = q && attrs ? connect(q, pe_addr, attrs) : GNI_RC_INVALID_PARAM;
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_MsgqConnRelease(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    wf_gni_lock();
    wf_gni_progress();
    struct gni_msgq *q = queue(msgq_hndl);
    if (!q)
        rc = GNI_RC_INVALID_PARAM;
    else if (wf_gni_msgq_table_own(q->table, pe_addr) == WF_GNI_CONN_NONE)
        rc = wf_gni_refuse(GNI_RC_NO_MATCH, "MsgqConnRelease: PE 0x%x", pe_addr);
    else if (outstanding(q))
        rc = GNI_RC_NOT_DONE;
    else
        wf_gni_msgq_table_release(q->table, pe_addr);
    wf_gni_unlock();
    return rc;
}

// ---- sending ------------------------------------------------------------------------------------

static struct flow *flow_to(struct gni_msgq *q, uint32_t pe)
{
    struct flow *f;
    HASH_FIND(hh, q->flows, &pe, sizeof(pe), f);
    if (!f && (f = calloc(1, sizeof(*f)))) {
        f->pe = pe;
        HASH_ADD(hh, q->flows, pe, sizeof(f->pe), f);
    }
    return f;
}

struct outgoing {
    const void *hdr, *msg;
    uint32_t hdr_len, msg_len, id;
    uint8_t tag;
};

static gni_return_t check_send(struct gni_msgq *q, struct gni_ep *ep, const struct outgoing *m)
{
    if (!q || !ep || ep->nic != q->nic || !ep->bound || !ep->cq || (m->hdr_len && !m->hdr) ||
        (m->msg_len && !m->msg))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "MsgqSend: queue, endpoint or buffers");
    if ((uint64_t)m->hdr_len + m->msg_len > q->attrs.max_msg_sz)
        return wf_gni_refuse(GNI_RC_SIZE_ERROR, "MsgqSend: %u + %u bytes, at most %u", m->hdr_len,
                             m->msg_len, q->attrs.max_msg_sz);
    switch (wf_gni_msgq_table_find(q->table, ep->pe)) {
    case WF_GNI_CONN_NONE:
        return wf_gni_refuse(GNI_RC_NO_MATCH, "MsgqSend: no connection to PE 0x%x", ep->pe);
    case WF_GNI_CONN_ASSIGNED:
        return wf_gni_refuse(GNI_RC_INVALID_STATE, "MsgqSend: PE 0x%x is not connected", ep->pe);
    case WF_GNI_CONN_UP:
        break;
    }
    return GNI_RC_SUCCESS;
}

static gni_return_t send_message(struct gni_msgq *q, struct gni_ep *ep, const struct outgoing *m)
{
    char data[GNI_MSGQ_MSG_SZ_MAX];
    gni_return_t rc = check_send(q, ep, m);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    wf_gni_progress();
    struct wf_gni_peer *peer = wf_gni_ep_peer(ep);
    struct flow *f = flow_to(q, ep->pe);
    bool dead = !peer || peer->dead;
    if (!f || (!dead && f->under_way >= q->attrs.smsg_q_sz))
        return GNI_RC_NOT_DONE;
    struct wf_gni_req *req = wf_gni_req_get(ep, ep->cq);
    if (!req)
        return GNI_RC_NOT_DONE;
    if (m->hdr_len)
        memcpy(data, m->hdr, m->hdr_len);
    if (m->msg_len)
        memcpy(data + m->hdr_len, m->msg, m->msg_len);
    struct wf_gni_am am = {.type = WF_GNI_AM_MSGQ,
                           .ptag = ep->nic->cdm->ptag,
                           .len = m->hdr_len + m->msg_len,
                           .region = ep->remote_id,
                           .event = ep->nic->cdm->inst_id,
                           .arg = m->tag,
                           .first = ep->nic->cdm->cookie};
    req->cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    req->source = WF_GNI_SRC_MESSAGE;
    req->type = GNI_CQ_EVENT_TYPE_MSGQ;
    req->local_event = m->id;
    bool sent = !dead && wf_gni_peer_send(peer, &am, data);
    f->under_way += sent;
    wf_gni_req_part_done(req, sent ? WF_GNI_ST_OK : WF_GNI_ST_PEER_DIED);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_MsgqSend(gni_msgq_handle_t msgq_hndl, gni_ep_handle_t ep_hndl, void *hdr,
                          uint32_t hdr_len, void *msg, uint32_t msg_len, uint32_t msg_id,
                          uint8_t msg_tag)
{
    struct outgoing m = {hdr, msg, hdr_len, msg_len, msg_id, msg_tag};
    wf_gni_lock();
    gni_return_t rc = send_message(queue(msgq_hndl), wf_gni_ep(ep_hndl), &m);
    wf_gni_unlock();
    wf_gni_idle(rc == GNI_RC_NOT_DONE);
    return rc;
}

// ---- receiving ----------------------------------------------------------------------------------

// The queue of the instance named, else the first of the job: only one process has this PE.
static struct gni_msgq *queue_for(const struct wf_gni_am *am)
{
    struct gni_msgq *any = NULL;
    struct gni_cdm *c;
    DL_FOREACH(wf_gni.cdms, c)
    {
        if (!c->nic || !c->nic->msgqs || c->ptag != am->ptag || c->cookie != (uint32_t)am->first)
            continue;
        if (c->inst_id == am->region)
            return c->nic->msgqs;
        if (!any)
            any = c->nic->msgqs;
    }
    return any;
}

void wf_gni_msgq_arrived(struct wf_gni_peer *from, const struct wf_gni_am *am, const void *payload)
{
    struct gni_msgq *q = queue_for(am);
    struct flow *f;
    struct message *m;
    if (!q)
        return;
    if (am->type == WF_GNI_AM_MSGQ_CREDIT) {
        f = flow_to(q, from->pe);
        if (f && f->under_way)
            f->under_way--;
        return;
    }
    if (am->len > GNI_MSGQ_MSG_SZ_MAX || !(m = malloc(sizeof(*m))))
        return;
    m->id = am->event;
    m->pe = from->pe;
    m->tag = (uint8_t)am->arg;
    m->len = am->len;
    memcpy(m->data, payload, am->len);
    DL_APPEND(q->messages, m);
    wf_gni_wake(q->fd, q->waiters);
}

static void give_credit(struct gni_msgq *q, const struct message *m)
{
    struct wf_gni_peer *p = wf_gni_peer_get(m->pe);
    struct wf_gni_am am = {.type = WF_GNI_AM_MSGQ_CREDIT,
                           .ptag = q->nic->cdm->ptag,
                           .region = m->id,
                           .first = q->nic->cdm->cookie};
    if (p)
        wf_gni_peer_send(p, &am, NULL);
}

// Locked; released while the callback runs. True to go on.
static bool call_back(struct gni_msgq *q)
{
    struct message *m = q->messages;
    DL_DELETE(q->messages, m);
    give_credit(q, m);
    q->in_progress = true;
    wf_gni_unlock();
    int go_on = q->cb(m->id, m->pe, m->data, m->tag, q->cb_data);
    wf_gni_lock();
    q->in_progress = false;
    free(m);
    return go_on != 0;
}

static gni_return_t progress(gni_msgq_handle_t h, uint32_t timeout)
{
    struct gni_msgq *q = queue(h);
    bool wait = timeout && timeout != UINT32_MAX;
    if (!q || (wait && !(q->attrs.modes & GNI_MSGQ_MODE_BLOCKING)))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM,
                             "MsgqProgress: no queue, or a timeout on a polling one");
    uint64_t deadline = wf_gni_deadline(wait ? timeout : 0, UINT64_MAX);
    for (;;) {
        wf_gni_progress();
        if (!(q = queue(h)))
            return GNI_RC_INVALID_PARAM;
        if (q->messages) {
            if (!call_back(q))
                return GNI_RC_NOT_DONE;
            deadline = wf_gni_deadline(wait ? timeout : 0, UINT64_MAX);
            continue;
        }
        if (!wait || wf_gni_deadline(0, UINT64_MAX) >= deadline)
            return GNI_RC_SUCCESS;
        wf_gni_sleep(&q->fd, &q->waiters, deadline);
    }
}

gni_return_t GNI_MsgqProgress(gni_msgq_handle_t msgq_hndl, uint32_t timeout)
{
    wf_gni_lock();
    gni_return_t rc = progress(msgq_hndl, timeout);
    wf_gni_unlock();
    return rc;
}
