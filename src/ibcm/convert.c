// SPDX-License-Identifier: BSD-2-Clause
#include "ibcm/ibcm.h"

#include <string.h>

void ibcm_route(const struct ib_sa_path_rec *rec, struct wf_cm_route *out)
{
    memset(out, 0, sizeof(*out));
    memcpy(&out->sgid, &rec->sgid, 16);
    memcpy(&out->dgid, &rec->dgid, 16);
    out->slid = be16toh(rec->slid);
    out->dlid = be16toh(rec->dlid);
    out->pkey = be16toh(rec->pkey);
    out->flow_label = be32toh(rec->flow_label) & 0xfffff;
    out->tclass = rec->traffic_class;
    out->hop_limit = rec->hop_limit;
    out->sl = rec->sl;
    out->mtu = rec->mtu;
    out->rate = rec->rate;
    out->life = rec->packet_life_time & 0x1f;
}

void ibcm_path_rec(const struct wf_cm_route *r, struct ib_sa_path_rec *out)
{
    memset(out, 0, sizeof(*out));
    memcpy(&out->sgid, &r->sgid, 16);
    memcpy(&out->dgid, &r->dgid, 16);
    out->slid = htobe16(r->slid);
    out->dlid = htobe16(r->dlid);
    out->pkey = htobe16(r->pkey);
    out->flow_label = htobe32(r->flow_label);
    out->traffic_class = r->tclass;
    out->hop_limit = r->hop_limit;
    out->sl = r->sl;
    out->reversible = 1;
    out->numb_path = 1;
    out->mtu_selector = out->rate_selector = out->packet_life_time_selector = IB_SA_EQ;
    out->mtu = r->mtu;
    out->rate = r->rate;
    out->packet_life_time = r->life;
}

static void ah_from_verbs(const struct ibv_ah_attr *from, struct ib_ah_attr *to)
{
    memset(to, 0, sizeof(*to));
    memcpy(&to->grh.dgid, &from->grh.dgid, 16);
    to->grh.flow_label = from->grh.flow_label;
    to->grh.sgid_index = from->grh.sgid_index;
    to->grh.hop_limit = from->grh.hop_limit;
    to->grh.traffic_class = from->grh.traffic_class;
    to->dlid = from->dlid;
    to->sl = from->sl;
    to->src_path_bits = from->src_path_bits;
    to->static_rate = from->static_rate;
    to->ah_flags = from->is_global ? IB_AH_GRH : 0;
    to->port_num = from->port_num;
}

static void ah_to_verbs(const struct ib_ah_attr *from, struct ibv_ah_attr *to)
{
    memset(to, 0, sizeof(*to));
    memcpy(&to->grh.dgid, &from->grh.dgid, 16);
    to->grh.flow_label = from->grh.flow_label;
    to->grh.sgid_index = from->grh.sgid_index;
    to->grh.hop_limit = from->grh.hop_limit;
    to->grh.traffic_class = from->grh.traffic_class;
    to->dlid = from->dlid;
    to->sl = from->sl;
    to->src_path_bits = from->src_path_bits;
    to->static_rate = from->static_rate;
    to->is_global = (from->ah_flags & IB_AH_GRH) != 0;
    to->port_num = from->port_num;
}

// Only what ib_cm_init_qp_attr() sets.
void ibcm_qp_attr(const struct ibv_qp_attr *from, struct ib_qp_attr *to)
{
    to->path_mtu = (enum ib_mtu)from->path_mtu;
    to->path_mig_state = (enum ib_mig_state)from->path_mig_state;
    to->rq_psn = from->rq_psn;
    to->sq_psn = from->sq_psn;
    to->dest_qp_num = from->dest_qp_num;
    to->qp_access_flags = (int)from->qp_access_flags;
    ah_from_verbs(&from->ah_attr, &to->ah_attr);
    ah_from_verbs(&from->alt_ah_attr, &to->alt_ah_attr);
    to->pkey_index = from->pkey_index;
    to->alt_pkey_index = from->alt_pkey_index;
    to->max_rd_atomic = from->max_rd_atomic;
    to->max_dest_rd_atomic = from->max_dest_rd_atomic;
    to->min_rnr_timer = from->min_rnr_timer;
    to->port_num = from->port_num;
    to->timeout = from->timeout;
    to->retry_cnt = from->retry_cnt;
    to->rnr_retry = from->rnr_retry;
    to->alt_port_num = from->alt_port_num;
    to->alt_timeout = from->alt_timeout;
}

void ibcm_qp_attr_to_verbs(const struct ib_qp_attr *from, struct ibv_qp_attr *to)
{
    memset(to, 0, sizeof(*to));
    to->qp_state = (enum ibv_qp_state)from->qp_state;
    to->cur_qp_state = (enum ibv_qp_state)from->cur_qp_state;
    to->path_mtu = (enum ibv_mtu)from->path_mtu;
    to->path_mig_state = (enum ibv_mig_state)from->path_mig_state;
    to->qkey = from->qkey;
    to->rq_psn = from->rq_psn;
    to->sq_psn = from->sq_psn;
    to->dest_qp_num = from->dest_qp_num;
    to->qp_access_flags = (unsigned)from->qp_access_flags;
    to->cap =
        (struct ibv_qp_cap){from->cap.max_send_wr, from->cap.max_recv_wr, from->cap.max_send_sge,
                            from->cap.max_recv_sge, from->cap.max_inline_data};
    ah_to_verbs(&from->ah_attr, &to->ah_attr);
    ah_to_verbs(&from->alt_ah_attr, &to->alt_ah_attr);
    to->pkey_index = from->pkey_index;
    to->alt_pkey_index = from->alt_pkey_index;
    to->en_sqd_async_notify = from->en_sqd_async_notify;
    to->max_rd_atomic = from->max_rd_atomic;
    to->max_dest_rd_atomic = from->max_dest_rd_atomic;
    to->min_rnr_timer = from->min_rnr_timer;
    to->port_num = from->port_num;
    to->timeout = from->timeout;
    to->retry_cnt = from->retry_cnt;
    to->rnr_retry = from->rnr_retry;
    to->alt_port_num = from->alt_port_num;
    to->alt_timeout = from->alt_timeout;
}
