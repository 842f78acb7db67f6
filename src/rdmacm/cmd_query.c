// SPDX-License-Identifier: BSD-2-Clause
// What the program may ask of an id: addresses, paths, QP attributes.
#include "rdmacm/internal.h"

#include "base/bytes.h"
#include <endian.h>
#include <errno.h>
#include <rdma/ib_user_sa.h>

#define NO_IBDEV_INDEX UINT32_MAX // librdmacm finds the device by its GUID then
#define SELECTOR_EQUAL 2
#define PATH_FLAGS     (1u | 2u | 8u) // GMP, primary, bidirectional: as Linux answers

static uint64_t guid_of(const struct rcm_id *id)
{
    return id->has_device ? htobe64(wf_hca_node_guid(wf_cm_host_hca(id->channel->host))) : 0;
}

static void copy_ip(struct sockaddr_in6 *to, const struct sockaddr_storage *from)
{
    size_t len = rcm_addr_len(from);
    memset(to, 0, sizeof(*to));
    if (len && len <= sizeof(*to))
        memcpy(to, from, len);
}

static void user_path(const struct rcm_id *id, struct ib_user_path_rec *p)
{
    const struct wf_cm_route *r = &id->path;
    memset(p, 0, sizeof(*p));
    memcpy(p->dgid, &r->dgid, 16);
    memcpy(p->sgid, &r->sgid, 16);
    p->pkey = htobe16(r->pkey ? r->pkey : 0xffff);
    p->flow_label = htobe32(r->flow_label);
    p->reversible = 1;
    p->mtu = r->mtu;
    p->hop_limit = r->hop_limit;
    p->traffic_class = r->tclass;
    p->sl = r->sl;
    p->mtu_selector = p->rate_selector = p->packet_life_time_selector = SELECTOR_EQUAL;
    p->rate = r->rate;
    p->packet_life_time = r->life;
}

int rcm_cmd_query_route(const struct rcm_call *c)
{
    const struct rdma_ucm_query *cmd = c->in;
    struct rdma_ucm_query_route_resp resp = {.ibdev_index = NO_IBDEV_INDEX};
    size_t old = offsetof(struct rdma_ucm_query_route_resp, ibdev_index);
    struct rcm_id *id;
    int rc = rcm_call_id(c, cmd->id, &id);
    if (rc)
        return rc;
    copy_ip(&resp.src_addr, &id->src);
    copy_ip(&resp.dst_addr, &id->dst);
    resp.node_guid = guid_of(id);
    if (id->has_device) {
        resp.port_num = 1;
        resp.num_paths = id->has_path;
        user_path(id, &resp.ib_route[0]);
    }
    if (c->out_len < old)
        return -ENOSPC;
    return rcm_reply(c, cmd->response, &resp, c->out_len < sizeof(resp) ? old : sizeof(resp));
}

static void fill_query(const struct rcm_id *id, struct rdma_ucm_query_addr_resp *resp)
{
    memset(resp, 0, sizeof(*resp));
    resp->node_guid = guid_of(id);
    resp->port_num = id->has_device ? 1 : 0;
    resp->pkey = id->has_device ? 0xffff : 0;
    resp->ibdev_index = NO_IBDEV_INDEX;
}

static int reply_query(const struct rcm_call *c, uint64_t response,
                       const struct rdma_ucm_query_addr_resp *resp)
{
    size_t old = offsetof(struct rdma_ucm_query_addr_resp, ibdev_index);
    if (c->out_len < old)
        return -ENOSPC;
    return rcm_reply(c, response, resp, c->out_len < sizeof(*resp) ? old : sizeof(*resp));
}

static int query_addr(const struct rcm_call *c, const struct rcm_id *id, uint64_t response)
{
    struct rdma_ucm_query_addr_resp resp;
    fill_query(id, &resp);
    resp.src_size = (uint16_t)rcm_addr_len(&id->src);
    resp.dst_size = (uint16_t)rcm_addr_len(&id->dst);
    memcpy(&resp.src_addr, &id->src, resp.src_size);
    memcpy(&resp.dst_addr, &id->dst, resp.dst_size);
    return reply_query(c, response, &resp);
}

static void to_sib(const struct rcm_id *id, const union ibv_gid *gid,
                   const struct sockaddr_storage *sa, void *out)
{
    struct sockaddr_ib ib;
    memset(&ib, 0, sizeof(ib));
    if (sa->ss_family == AF_IB)
        memcpy(&ib, sa, sizeof(ib));
    ib.sib_family = AF_IB;
    ib.sib_pkey = htobe16(0xffff);
    memcpy(&ib.sib_addr, gid, 16);
    if (sa->ss_family != AF_IB) {
        ib.sib_sid = htobe64(rcm_service_id(id->ps, rcm_addr_port(sa)));
        ib.sib_sid_mask = htobe64(UINT64_MAX);
    }
    memcpy(out, &ib, sizeof(ib));
}

static int query_gid(const struct rcm_call *c, const struct rcm_id *id, uint64_t response)
{
    struct rdma_ucm_query_addr_resp resp;
    fill_query(id, &resp);
    resp.src_size = resp.dst_size = sizeof(struct sockaddr_ib);
    to_sib(id, &id->path.sgid, &id->src, &resp.src_addr);
    to_sib(id, &id->path.dgid, &id->dst, &resp.dst_addr);
    return reply_query(c, response, &resp);
}

// PathRecord as it stands on the wire (15.2.5.16).
static void wire_path(const struct wf_cm_route *r, uint8_t out[64])
{
    struct wf_writer w = wf_writer_of(out, 64);
    wf_put_u64(&w, 0); // service id
    wf_put_bytes(&w, &r->dgid, 16);
    wf_put_bytes(&w, &r->sgid, 16);
    wf_put_u16(&w, r->dlid);
    wf_put_u16(&w, r->slid);
    wf_put_u32(&w, r->flow_label << 8 | r->hop_limit);
    wf_put_u8(&w, r->tclass);
    wf_put_u8(&w, 0x80); // reversible
    wf_put_u16(&w, r->pkey);
    wf_put_u16(&w, r->sl);
    wf_put_u8(&w, (uint8_t)(SELECTOR_EQUAL << 6 | r->mtu));
    wf_put_u8(&w, (uint8_t)(SELECTOR_EQUAL << 6 | r->rate));
    wf_put_u8(&w, (uint8_t)(SELECTOR_EQUAL << 6 | r->life));
    wf_put_zero(&w, 7);
}

static int query_path(const struct rcm_call *c, const struct rcm_id *id, uint64_t response)
{
    struct rdma_ucm_query_path_resp head = {.num_paths = id->has_path ? 1 : 0};
    struct ib_path_rec_data data = {.flags = PATH_FLAGS};
    uint8_t resp[sizeof(head) + sizeof(data)];
    if (c->out_len < sizeof(resp))
        head.num_paths = 0;
    size_t len = head.num_paths ? sizeof(resp) : sizeof(head);
    wire_path(&id->path, (uint8_t *)data.path_rec);
    memcpy(resp, &head, sizeof(head));
    memcpy(resp + sizeof(head), &data, sizeof(data));
    return rcm_reply(c, response, resp, len);
}

int rcm_cmd_query(const struct rcm_call *c)
{
    const struct rdma_ucm_query *cmd = c->in;
    struct rcm_id *id;
    int rc = rcm_call_id(c, cmd->id, &id);
    if (rc)
        return rc;
    switch (cmd->option) {
    case RDMA_USER_CM_QUERY_ADDR:
        return query_addr(c, id, cmd->response);
    case RDMA_USER_CM_QUERY_PATH:
        return query_path(c, id, cmd->response);
    case RDMA_USER_CM_QUERY_GID:
        return query_gid(c, id, cmd->response);
    default:
        return wf_refuse(ENOSYS, WF_R_NOT_SUPPORTED, "rdma_cm query %u", cmd->option);
    }
}

// ---- QP attributes ------------------------------------------------------------------------------

void rcm_ah_to_user(const struct ibv_ah_attr *from, struct ib_uverbs_ah_attr *to)
{
    memset(to, 0, sizeof(*to));
    memcpy(to->grh.dgid, &from->grh.dgid, 16);
    to->grh.flow_label = from->grh.flow_label;
    to->grh.sgid_index = from->grh.sgid_index;
    to->grh.hop_limit = from->grh.hop_limit;
    to->grh.traffic_class = from->grh.traffic_class;
    to->dlid = from->dlid;
    to->sl = from->sl;
    to->src_path_bits = from->src_path_bits;
    to->static_rate = from->static_rate;
    to->is_global = from->is_global;
    to->port_num = from->port_num;
}

void rcm_default_qkey(struct rcm_id *id)
{
    if (!id->qkey)
        id->qkey = RCM_UDP_QKEY;
}

// Before the connection manager knows the connection, and for datagrams always.
static int plain_attr(struct rcm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    if (!id->has_device)
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "QP attributes of an id without a device");
    attr->pkey_index = 0;
    attr->port_num = 1;
    *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (id->qp_type == IBV_QPT_UD) {
        rcm_default_qkey(id);
        attr->qkey = id->qkey;
        *mask |= IBV_QP_QKEY;
    } else {
        attr->qp_access_flags = 0;
        *mask |= IBV_QP_ACCESS_FLAGS;
    }
    return 0;
}

static int qp_attr(struct rcm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    if (!id->cm_id || id->qp_type == IBV_QPT_UD)
        return plain_attr(id, attr, mask);
    int rc = wf_cm_init_qp_attr(id->cm_id, attr, mask);
    if (attr->qp_state == IBV_QPS_RTR)
        attr->rq_psn = id->psn; // the REP that will tell it may not be sent yet
    if (rc == 0 && (*mask & IBV_QP_TIMEOUT) && id->ack_timeout_set)
        attr->timeout = id->ack_timeout;
    return rc;
}

static void attr_to_user(const struct ibv_qp_attr *a, int mask, struct ib_uverbs_qp_attr *u)
{
    memset(u, 0, sizeof(*u));
    u->qp_attr_mask = (uint32_t)mask;
    u->qp_state = a->qp_state;
    u->cur_qp_state = a->cur_qp_state;
    u->path_mtu = a->path_mtu;
    u->path_mig_state = a->path_mig_state;
    u->qkey = a->qkey;
    u->rq_psn = a->rq_psn;
    u->sq_psn = a->sq_psn;
    u->dest_qp_num = a->dest_qp_num;
    u->qp_access_flags = a->qp_access_flags;
    rcm_ah_to_user(&a->ah_attr, &u->ah_attr);
    rcm_ah_to_user(&a->alt_ah_attr, &u->alt_ah_attr);
    u->pkey_index = a->pkey_index;
    u->alt_pkey_index = a->alt_pkey_index;
    u->max_rd_atomic = a->max_rd_atomic;
    u->max_dest_rd_atomic = a->max_dest_rd_atomic;
    u->min_rnr_timer = a->min_rnr_timer;
    u->port_num = a->port_num;
    u->timeout = a->timeout;
    u->retry_cnt = a->retry_cnt;
    u->rnr_retry = a->rnr_retry;
    u->alt_port_num = a->alt_port_num;
    u->alt_timeout = a->alt_timeout;
}

int rcm_cmd_init_qp_attr(const struct rcm_call *c)
{
    const struct rdma_ucm_init_qp_attr *cmd = c->in;
    struct ib_uverbs_qp_attr resp;
    struct ibv_qp_attr attr;
    struct rcm_id *id;
    int mask = 0;
    if (c->out_len < sizeof(resp))
        return -ENOSPC;
    int rc = rcm_call_id(c, cmd->id, &id);
    if (rc)
        return rc;
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = (enum ibv_qp_state)cmd->qp_state;
    rc = qp_attr(id, &attr, &mask);
    if (rc)
        return rc;
    attr_to_user(&attr, mask, &resp);
    return rcm_reply(c, cmd->response, &resp, sizeof(resp));
}
