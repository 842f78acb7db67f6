// SPDX-License-Identifier: BSD-2-Clause
// A small engine for the face's unit tests: objects are counted and checked, sends complete at
// once, nothing moves. Tests see and steer it through fake_hca.h.
#include "verbs/fake_hca.h"
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fake_hca fake;

struct wf_ctx {
    const struct wf_ctx_ops *ops;
    void *user;
};
struct wf_pd {
    int users;
};
struct wf_mr {
    struct wf_pd *pd;
    uint32_t key;
};
struct wf_mw {
    uint32_t rkey;
};
struct wf_cq {
    struct wf_cq_init init;
    struct wf_wc ring[64];
    uint32_t head, tail;
    bool armed;
    int users;
};
struct wf_srq {
    struct wf_srq_init init;
};
struct wf_qp {
    struct wf_qp_init init;
    enum ibv_qp_state state;
    uint32_t num;
};
struct wf_xrcd {
    int unused;
};

int wf_hca_get(struct wf_hca **out)
{
    *out = (struct wf_hca *)&fake;
    fake.gets++;
    return 0;
}

void wf_hca_put(struct wf_hca *hca)
{
    fake.gets--;
}

void wf_hca_doze(struct wf_hca *hca)
{
    fake.dozes++;
}

void wf_hca_query_device(struct wf_hca *hca, struct ibv_device_attr *attr)
{
    *attr = (struct ibv_device_attr){.node_guid = htobe64(0x1122),
                                     .sys_image_guid = htobe64(0x1122),
                                     .vendor_id = 0x1234,
                                     .max_cqe = 1 << 16,
                                     .max_qp_wr = 1 << 14,
                                     .phys_port_cnt = 1};
}

int wf_hca_query_port(struct wf_hca *hca, uint8_t port, struct ibv_port_attr *attr)
{
    attr->state = IBV_PORT_ACTIVE;
    attr->gid_tbl_len = WF_GIDS;
    attr->pkey_tbl_len = 1;
    attr->port_cap_flags2 = 0xabcd;
    attr->link_layer = IBV_LINK_LAYER_ETHERNET;
    return 0;
}

int wf_hca_query_gid(struct wf_hca *hca, uint8_t port, uint32_t index, struct wf_gid_slot *out)
{
    memset(out, 0, sizeof(*out));
    if (index < 2)
        out->gid = fake.gids[index];
    return 0;
}

int wf_hca_query_pkey(struct wf_hca *hca, uint8_t port, uint32_t index, uint16_t *pkey)
{
    *pkey = 0xffff;
    return index ? -EINVAL : 0;
}

uint64_t wf_hca_node_guid(struct wf_hca *hca)
{
    return 0x1122;
}

uint64_t wf_hca_clock(struct wf_hca *hca)
{
    return 5000000123u;
}

int wf_ctx_open(struct wf_hca *hca, const struct wf_ctx_ops *ops, void *user, struct wf_ctx **out)
{
    *out = calloc(1, sizeof(**out));
    (*out)->ops = ops;
    (*out)->user = user;
    fake.ctx = *out;
    return 0;
}

int wf_ctx_close(struct wf_ctx *ctx)
{
    free(ctx);
    return 0;
}

void fake_async(enum ibv_event_type type, void *object, uint8_t port)
{
    fake.ctx->ops->async(fake.ctx->user, type, object, port);
}

int wf_pd_create(struct wf_ctx *ctx, struct wf_pd **out)
{
    *out = calloc(1, sizeof(**out));
    return 0;
}

int wf_pd_destroy(struct wf_pd *pd)
{
    if (pd->users)
        return -EBUSY;
    free(pd);
    return 0;
}

int wf_mr_reg(struct wf_pd *pd, void *addr, uint64_t len, uint64_t iova, unsigned access,
              struct wf_mr **out)
{
    fake.iova = iova;
    fake.access = access;
    if ((access & IBV_ACCESS_REMOTE_WRITE) && !(access & IBV_ACCESS_LOCAL_WRITE))
        return -EINVAL;
    *out = calloc(1, sizeof(**out));
    (*out)->key = ++fake.keys;
    (*out)->pd = pd;
    pd->users++;
    return 0;
}

int wf_mr_reg_null(struct wf_pd *pd, struct wf_mr **out)
{
    return wf_mr_reg(pd, NULL, UINT64_MAX, 0, 0, out);
}

int wf_mr_rereg(struct wf_mr *mr, int flags, struct wf_pd *pd, void *addr, uint64_t len,
                unsigned access)
{
    if (fake.fail)
        return -fake.fail;
    mr->key = ++fake.keys;
    if (flags & IBV_REREG_MR_CHANGE_PD) {
        mr->pd->users--;
        pd->users++;
        mr->pd = pd;
    }
    return 0;
}

int wf_mr_dereg(struct wf_mr *mr)
{
    mr->pd->users--;
    free(mr);
    return 0;
}

uint32_t wf_mr_lkey(const struct wf_mr *mr)
{
    return mr->key;
}

uint32_t wf_mr_rkey(const struct wf_mr *mr)
{
    return mr->key;
}

int wf_mw_alloc(struct wf_pd *pd, enum ibv_mw_type type, struct wf_mw **out)
{
    *out = calloc(1, sizeof(**out));
    (*out)->rkey = 0x100;
    return 0;
}

int wf_mw_dealloc(struct wf_mw *mw)
{
    free(mw);
    return 0;
}

uint32_t wf_mw_rkey(const struct wf_mw *mw)
{
    return mw->rkey;
}

uint32_t wf_mw_handle(const struct wf_mw *mw)
{
    return 77;
}

int wf_cq_create(struct wf_ctx *ctx, const struct wf_cq_init *init, struct wf_cq **out)
{
    *out = calloc(1, sizeof(**out));
    (*out)->init = *init;
    return 0;
}

uint32_t wf_cq_size(const struct wf_cq *cq)
{
    return cq->init.cqe;
}

int wf_cq_resize(struct wf_cq *cq, uint32_t cqe)
{
    if (cqe < cq->tail - cq->head)
        return -EINVAL;
    cq->init.cqe = cqe;
    return 0;
}

int wf_cq_destroy(struct wf_cq *cq)
{
    if (cq->users)
        return -EBUSY;
    free(cq);
    return 0;
}

int wf_cq_poll_ex(struct wf_cq *cq, struct wf_wc *wc)
{
    if (cq->head == cq->tail)
        return 0;
    *wc = cq->ring[cq->head++ % 64];
    return 1;
}

int wf_cq_poll(struct wf_cq *cq, int n, struct ibv_wc *wc)
{
    struct wf_wc one;
    int got = 0;

    while (got < n && wf_cq_poll_ex(cq, &one))
        wc[got++] = one.wc;
    return got;
}

int wf_cq_arm(struct wf_cq *cq, bool solicited_only)
{
    cq->armed = true;
    return 0;
}

int wf_cq_moderate(struct wf_cq *cq, uint16_t count, uint16_t usec)
{
    return 0;
}

void wf_cq_ring(struct wf_cq *cq, struct wf_cq_ring *out)
{
    static _Atomic uint32_t ci;

    *out = (struct wf_cq_ring){.cqe = cq->ring, .entries = 64, .ci = &ci};
}

static void complete(struct wf_cq *cq, const struct wf_wc *wc)
{
    cq->ring[cq->tail++ % 64] = *wc;
    if (cq->armed && cq->init.on_comp) {
        cq->armed = false;
        cq->init.on_comp(cq->init.user);
    }
}

int wf_ah_create(struct wf_pd *pd, const struct ibv_ah_attr *attr, struct wf_ah **out)
{
    *out = calloc(1, sizeof(**out));
    (*out)->attr = *attr;
    return 0;
}

int wf_ah_destroy(struct wf_ah *ah)
{
    free(ah);
    return 0;
}

int wf_srq_create(struct wf_pd *pd, struct wf_srq_init *init, struct wf_srq **out)
{
    *out = calloc(1, sizeof(**out));
    (*out)->init = *init;
    return 0;
}

int wf_srq_modify(struct wf_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
    return 0;
}

int wf_srq_query(struct wf_srq *srq, struct ibv_srq_attr *attr)
{
    attr->max_wr = srq->init.max_wr;
    return 0;
}

int wf_srq_destroy(struct wf_srq *srq)
{
    free(srq);
    return 0;
}

uint32_t wf_srq_num(const struct wf_srq *srq)
{
    return 9;
}

int wf_srq_post(struct wf_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    *bad = wr;
    return -ENOMEM;
}

int wf_xrcd_open(struct wf_ctx *ctx, int fd, int oflags, struct wf_xrcd **out)
{
    *out = calloc(1, sizeof(**out));
    return 0;
}

int wf_xrcd_close(struct wf_xrcd *xrcd)
{
    free(xrcd);
    return 0;
}

int wf_qp_create(struct wf_ctx *ctx, struct wf_pd *pd, struct wf_qp_init *init, struct wf_qp **out)
{
    *out = calloc(1, sizeof(**out));
    init->cap.max_inline_data = 64;
    (*out)->init = *init;
    (*out)->num = ++fake.qpns;
    if (init->send_cq)
        init->send_cq->users++;
    return 0;
}

int wf_qp_modify(struct wf_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    if (fake.fail)
        return -fake.fail;
    if (mask & IBV_QP_STATE)
        qp->state = attr->qp_state;
    return 0;
}

int wf_qp_query(struct wf_qp *qp, struct ibv_qp_attr *attr, struct wf_qp_init *init)
{
    memset(attr, 0, sizeof(*attr));
    attr->qp_state = qp->state;
    *init = qp->init;
    return 0;
}

int wf_qp_destroy(struct wf_qp *qp)
{
    if (qp->init.send_cq)
        qp->init.send_cq->users--;
    free(qp);
    return 0;
}

uint32_t wf_qp_num(const struct wf_qp *qp)
{
    return qp->num;
}

enum ibv_qp_state wf_qp_state(const struct wf_qp *qp)
{
    return qp->state;
}

int wf_qp_attach_mcast(struct wf_qp *qp, const union ibv_gid *mgid)
{
    return 0;
}

int wf_qp_detach_mcast(struct wf_qp *qp, const union ibv_gid *mgid)
{
    return 0;
}

// Keeps a copy of each request and of the bytes it names, and completes it.
int wf_qp_post_send(struct wf_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    if (qp->state != IBV_QPS_RTS) {
        *bad = wr;
        return -EINVAL;
    }
    for (; wr; wr = wr->next) {
        struct fake_send *s = &fake.sends[fake.n_sends++ % FAKE_SENDS];

        s->wr = *wr;
        s->len = 0;
        for (int i = 0; i < wr->num_sge; i++) {
            const struct ibv_sge *sge = &wr->sg_list[i];

            s->sges[i] = *sge;
            if ((wr->send_flags & IBV_SEND_INLINE) && s->len + sge->length <= sizeof(s->data)) {
                memcpy(s->data + s->len, (void *)(uintptr_t)sge->addr, sge->length);
                s->len += sge->length;
            }
        }
        complete(qp->init.send_cq, &(struct wf_wc){
                                       .wc = {.wr_id = wr->wr_id, .qp_num = qp->num},
                                       .timestamp = 5000000000u,
                                   });
    }
    return 0;
}

void wf_qp_wqes(struct wf_qp *qp, struct wf_wqes *out)
{
    *out = (struct wf_wqes){.send_offset = 64, .send_stride = 64, .send_slots = 8};
}

uint32_t wf_qp_send_room(struct wf_qp *qp)
{
    return FAKE_SENDS;
}

int wf_qp_post_recv(struct wf_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    *bad = wr;
    return -EINVAL;
}
