// SPDX-License-Identifier: BSD-2-Clause
// What connection management reports, in rdma_cm's words.
#include "rdmacm/internal.h"

#include <errno.h>
#include <string.h>

// While the program thinks, the peer must not give up: told only if the peer asks again.
#define THINKING (24 | WF_CM_MRA_DELAY)

static void set_data(uint8_t to[RDMA_MAX_PRIVATE_DATA], uint8_t *len, const uint8_t *from, size_t n)
{
    memcpy(to, from, n);
    *len = (uint8_t)n;
}

// ---- requests -----------------------------------------------------------------------------------

static bool wants(const struct rcm_id *l, const struct sockaddr_storage *dst)
{
    if (l->src.ss_family == AF_IB)
        return true;
    if (l->src.ss_family == dst->ss_family)
        return rcm_addr_any(&l->src) || rcm_addr_same(&l->src, dst) ||
               (l->loopback && rcm_addr_loopback(dst));
    // An IPv6 wildcard takes IPv4 too unless it was told not to.
    return l->src.ss_family == AF_INET6 && !l->afonly && rcm_addr_any(&l->src);
}

static struct rcm_id *find_listener(struct rcm_service *s, const struct wf_cm_event *e,
                                    struct sockaddr_storage *src, struct sockaddr_storage *dst)
{
    const uint8_t *data = e->type == WF_CM_REQ_RECEIVED ? e->msg.req.data : e->msg.sidr_req.data;
    bool has_header = rcm_hdr_get(data, s->service_id, src, dst) == 0;
    struct rcm_id *l, *wildcard = NULL;
    LIST_FOREACH(l, &s->listeners, of_service)
    {
        if ((!has_header && l->src.ss_family != AF_IB) || !wants(l, dst))
            continue;
        if (!rcm_addr_any(&l->src))
            return l;
        wildcard = l;
    }
    return wildcard;
}

static enum ibv_qp_type type_of(const struct wf_cm_event *e)
{
    if (e->type == WF_CM_SIDR_REQ_RECEIVED)
        return IBV_QPT_UD;
    switch (e->msg.req.transport) {
    case WF_CM_UC:
        return IBV_QPT_UC;
    case WF_CM_EXT:
        return IBV_QPT_XRC_SEND;
    default:
        return IBV_QPT_RC;
    }
}

// The other end of an XRC initiator is an XRC target.
static bool type_fits(const struct rcm_id *l, enum ibv_qp_type type)
{
    return l->qp_type == type || (l->qp_type == IBV_QPT_XRC_RECV && type == IBV_QPT_XRC_SEND);
}

static void gid_to_sib(const union ibv_gid *gid, uint64_t service_id, struct sockaddr_storage *out)
{
    struct sockaddr_ib *ib = (struct sockaddr_ib *)out;
    memset(out, 0, sizeof(*out));
    ib->sib_family = AF_IB;
    ib->sib_pkey = htobe16(0xffff);
    memcpy(&ib->sib_addr, gid, 16);
    ib->sib_sid = htobe64(service_id);
    ib->sib_sid_mask = htobe64(UINT64_MAX);
}

// A link-local address means something on its interface only.
static void set_scope(struct wf_cm_host *h, const union ibv_gid *gid, struct sockaddr_storage *sa)
{
    struct wf_gid_slot slot;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)sa;
    int index = wf_cm_host_gid_index(h, gid);
    if (sa->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) && index >= 0 &&
        wf_hca_query_gid(wf_cm_host_hca(h), 1, (uint32_t)index, &slot) == 0)
        six->sin6_scope_id = slot.ifindex;
}

static void fill_request(struct rcm_id *id, const struct rcm_id *l, const struct wf_cm_event *e,
                         const struct sockaddr_storage *src, const struct sockaddr_storage *dst)
{
    struct wf_cm_host *h = l->channel->host;
    int index = wf_cm_host_gid_index(h, &e->path.sgid);
    if (l->src.ss_family == AF_IB) {
        gid_to_sib(&e->path.sgid, l->service->service_id, &id->src);
        gid_to_sib(&e->path.dgid, 0, &id->dst);
    } else {
        id->src = *dst; // theirs is ours
        id->dst = *src;
        set_scope(h, &e->path.sgid, &id->src);
        set_scope(h, &e->path.sgid, &id->dst);
    }
    id->path = e->path;
    id->has_path = true;
    id->has_device = true;
    id->sgid_index = index < 0 ? 0 : (uint32_t)index;
    id->state = RCM_CONNECT;
    id->tos = l->tos;
    id->ack_timeout = l->ack_timeout;
    id->ack_timeout_set = l->ack_timeout_set;
}

static void request_params(const struct rcm_id *id, const struct wf_cm_event *e,
                           struct rdma_ucm_event_resp *r)
{
    const struct wf_cm_req *q = &e->msg.req;
    struct rdma_ucm_conn_param *p = &r->param.conn;
    unsigned offset = rcm_data_offset(id);
    if (e->type == WF_CM_SIDR_REQ_RECEIVED) {
        set_data(r->param.ud.private_data, &r->param.ud.private_data_len,
                 e->msg.sidr_req.data + offset, WF_CM_SIDR_REQ_DATA - offset);
        return;
    }
    set_data(p->private_data, &p->private_data_len, q->data + offset, WF_CM_REQ_DATA - offset);
    p->qp_num = q->qpn;
    p->srq = q->srq;
    // What they may start is what we must serve, and the reverse.
    p->responder_resources = q->initiator_depth;
    p->initiator_depth = q->responder_resources;
    p->flow_control = q->flow_control;
    p->retry_count = q->retry_count;
    p->rnr_retry_count = q->rnr_retry;
    r->ece.vendor_id = q->vendor_id;
    r->ece.attr_mod = e->msg.hdr.modifier;
}

static int announce(struct rcm_id *l, struct rcm_id *id, const struct wf_cm_event *e)
{
    struct rcm_queued *q = rcm_prepare(l, RCM_CONNECT_REQUEST, 0);
    if (!q)
        return -ENOMEM;
    q->request = id;
    q->resp.id = id->handle; // the name of the new id, on the listener's account
    request_params(id, e, &q->resp);
    rcm_queue(q);
    l->backlog--;
    return 0;
}

void rcm_on_request(struct wf_cm_owner *owner, const struct wf_cm_event *e)
{
    struct rcm_service *s = (struct rcm_service *)owner; // first member
    struct sockaddr_storage src, dst;
    struct rcm_id *id, *l = find_listener(s, e, &src, &dst);
    if (!l && rcm_hold(s, e))
        return;
    if (!l || !type_fits(l, type_of(e))) {
        wf_explain(WF_R_RDMACM_NO_LISTENER, "service id 0x%016llx",
                   (unsigned long long)s->service_id);
        wf_cm_id_destroy(e->id); // REJ 28
        return;
    }
    // Too many wait: the peer asks again later.
    if (l->backlog <= 0 || rcm_id_create(l->channel, 0, l->ps, l->qp_type, &id)) {
        wf_cm_id_forget(e->id);
        return;
    }
    fill_request(id, l, e, &src, &dst);
    id->cm_id = e->id;
    wf_cm_id_set_user(e->id, &id->owner);
    if (announce(l, id, e)) {
        id->cm_id = NULL;
        rcm_id_destroy(id);
        wf_cm_id_forget(e->id);
        return;
    }
    if (e->type == WF_CM_REQ_RECEIVED)
        (void)wf_cm_send_mra(e->id, THINKING, NULL, 0);
}

// ---- the rest -----------------------------------------------------------------------------------

static void on_reply(struct rcm_id *id, const struct wf_cm_event *e)
{
    const struct wf_cm_rep *r = &e->msg.rep;
    struct rcm_queued *q = rcm_prepare(id, RCM_CONNECT_RESPONSE, 0);
    if (id->state == RCM_CONNECT)
        (void)wf_cm_send_mra(id->cm_id, THINKING, NULL, 0);
    if (!q)
        return;
    struct rdma_ucm_conn_param *p = &q->resp.param.conn;
    set_data(p->private_data, &p->private_data_len, r->data, sizeof(r->data));
    p->qp_num = id->qp_type == IBV_QPT_XRC_SEND ? r->eecn : r->qpn;
    p->srq = r->srq;
    p->responder_resources = r->initiator_depth;
    p->initiator_depth = r->responder_resources;
    p->flow_control = r->flow_control;
    p->rnr_retry_count = r->rnr_retry;
    q->resp.ece.vendor_id = r->vendor_id;
    q->resp.ece.attr_mod = e->msg.hdr.modifier;
    rcm_queue(q);
}

static void on_reject(struct rcm_id *id, const struct wf_cm_event *e)
{
    struct rcm_queued *q = rcm_prepare(id, RCM_REJECTED, e->msg.rej.reason);
    if (!q)
        return;
    struct rdma_ucm_conn_param *p = &q->resp.param.conn;
    set_data(p->private_data, &p->private_data_len, e->msg.rej.data, sizeof(e->msg.rej.data));
    rcm_queue(q);
}

static void on_sidr_reply(struct rcm_id *id, const struct wf_cm_event *e)
{
    const struct wf_cm_sidr_rep *r = &e->msg.sidr_rep;
    bool good = r->status == WF_CM_SIDR_SUCCESS;
    struct rcm_queued *q =
        rcm_prepare(id, good ? RCM_ESTABLISHED : RCM_UNREACHABLE, good ? 0 : r->status);
    if (!q)
        return;
    struct rdma_ucm_ud_param *p = &q->resp.param.ud;
    set_data(p->private_data, &p->private_data_len, r->data, sizeof(r->data));
    p->qp_num = r->qpn;
    p->qkey = r->qkey;
    rcm_route_ah(id, &id->path.dgid, &p->ah_attr);
    q->resp.ece.vendor_id = r->vendor_id;
    q->resp.ece.attr_mod = e->msg.hdr.modifier;
    rcm_queue(q);
}

// Once for a connection, whoever began.
static void on_disconnect(struct rcm_id *id, int status)
{
    if (id->state != RCM_CONNECT)
        return;
    id->state = RCM_DISCONNECT;
    (void)rcm_emit(id, RCM_DISCONNECTED, status);
}

void rcm_on_event(struct wf_cm_owner *owner, const struct wf_cm_event *e)
{
    struct rcm_id *id = (struct rcm_id *)owner; // first member
    switch (e->type) {
    case WF_CM_REP_RECEIVED:
        on_reply(id, e);
        break;
    case WF_CM_RTU_RECEIVED:
    case WF_CM_USER_ESTABLISHED:
        (void)rcm_emit(id, RCM_ESTABLISHED, 0);
        break;
    case WF_CM_REQ_ERROR:
    case WF_CM_REP_ERROR:
    case WF_CM_SIDR_REQ_ERROR:
        (void)rcm_emit(id, RCM_UNREACHABLE, -ETIMEDOUT);
        break;
    case WF_CM_REJ_RECEIVED:
        on_reject(id, e);
        break;
    case WF_CM_DREQ_RECEIVED:
    case WF_CM_DREP_RECEIVED:
        on_disconnect(id, 0);
        break;
    case WF_CM_DREQ_ERROR:
        on_disconnect(id, -ETIMEDOUT);
        break;
    case WF_CM_TIMEWAIT_EXIT:
        (void)rcm_emit(id, RCM_TIMEWAIT_EXIT, 0);
        break;
    case WF_CM_SIDR_REP_RECEIVED:
        on_sidr_reply(id, e);
        break;
    case WF_CM_LAP_RECEIVED: // rdma_cm has no alternate paths
        (void)wf_cm_send_apr(e->id, WF_CM_APR_REJECT, NULL, 0, NULL, 0);
        break;
    case WF_CM_MRA_RECEIVED:
    case WF_CM_LAP_ERROR:
    case WF_CM_APR_RECEIVED:
    case WF_CM_REQ_RECEIVED: // these two come to a listener
    case WF_CM_SIDR_REQ_RECEIVED:
        break;
    }
}
