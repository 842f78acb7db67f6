// SPDX-License-Identifier: BSD-2-Clause
// The ibv_wr_* builders: requests are collected between wr_start and wr_complete and then posted as
// one chain. Lists and inline data are copied when they are given, as ibv_wr_post(3) allows the
// caller to reuse them at once.
#include "verbs/face.h"
#include <stdlib.h>
#include <string.h>

static struct wf_vbuild *build_of(struct ibv_qp_ex *qp)
{
    return ((struct wf_vqp *)qp)->build;
}

static void fail(struct wf_vbuild *b, int err)
{
    if (!b->err)
        b->err = err;
}

// Room for `more` elements of `size` behind the first `n`; false and an error noted when there is
// none.
static bool grow(struct wf_vbuild *b, void **array, uint32_t *room, uint32_t n, uint32_t more,
                 size_t size)
{
    uint32_t want = *room ? *room : 16;
    void *bigger;

    if (more <= *room - n)
        return true;
    while (want - n < more && want < 1u << 31)
        want *= 2;
    bigger = realloc(*array, want * size);
    if (!bigger || want - n < more) {
        fail(b, -wf_refuse(ENOMEM, WF_R_NO_MEMORY, "work request builder"));
        return false;
    }
    *array = bigger;
    *room = want;
    return true;
}

static struct wf_vwr *begin(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint64_t op)
{
    struct wf_vbuild *b = build_of(qp);
    struct wf_vwr *w;

    if (!(b->ops & op))
        fail(b, -wf_refuse(EINVAL, WF_R_BAD_OPCODE,
                           "QP 0x%06x was not created for opcode %d: set it in send_ops_flags",
                           qp->qp_base.qp_num, opcode));
    if (b->err || !grow(b, (void **)&b->wrs, &b->room, b->n, 1, sizeof(*b->wrs)))
        return NULL;
    w = &b->wrs[b->n++];
    *w = (struct wf_vwr){.wr = {.wr_id = qp->wr_id,
                                .opcode = opcode,
                                .send_flags = qp->wr_flags & ~IBV_SEND_INLINE}};
    return w;
}

static struct wf_vwr *current(struct wf_vbuild *b)
{
    if (!b->err && !b->n)
        fail(b, EINVAL);
    return b->err ? NULL : &b->wrs[b->n - 1];
}

static void begin_rdma(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint64_t op, uint32_t rkey,
                       uint64_t addr, __be32 imm)
{
    struct wf_vwr *w = begin(qp, opcode, op);

    if (!w)
        return;
    w->wr.wr.rdma.rkey = rkey;
    w->wr.wr.rdma.remote_addr = addr;
    w->wr.imm_data = imm;
}

static void begin_atomic(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint64_t op,
                         uint32_t rkey, uint64_t addr, uint64_t compare_add, uint64_t swap)
{
    struct wf_vwr *w = begin(qp, opcode, op);

    if (!w)
        return;
    w->wr.wr.atomic.rkey = rkey;
    w->wr.wr.atomic.remote_addr = addr;
    w->wr.wr.atomic.compare_add = compare_add;
    w->wr.wr.atomic.swap = swap;
}

static void inline_bytes(struct wf_vbuild *b, struct wf_vwr *w, const void *addr, size_t len)
{
    if (len > UINT32_MAX / 2) {
        fail(b, EINVAL);
        return;
    }
    if (!grow(b, (void **)&b->bytes, &b->byte_room, b->n_bytes, (uint32_t)len, 1))
        return;
    if (!w->inlined)
        w->data = b->n_bytes;
    if (len)
        memcpy(b->bytes + b->n_bytes, addr, len);
    b->n_bytes += (uint32_t)len;
    w->len += (uint32_t)len;
    w->inlined = true;
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
    begin_rdma(qp, IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE, rkey, addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 imm)
{
    begin_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
    begin_rdma(qp, IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ, rkey, addr, 0);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare,
                              uint64_t swap)
{
    begin_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, rkey, addr,
                 compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t add)
{
    begin_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, rkey, addr,
                 add, 0);
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, const void *value)
{
    begin_rdma(qp, IBV_WR_ATOMIC_WRITE, IBV_QP_EX_WITH_ATOMIC_WRITE, rkey, addr, 0);
    struct wf_vbuild *b = build_of(qp);

    if (!b->err)
        inline_bytes(b, current(b), value, 8);
}

static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type,
                     uint8_t level)
{
    struct wf_vbuild *b = build_of(qp);

    begin_rdma(qp, (enum ibv_wr_opcode)WF_WR_FLUSH, WF_QP_EX_WITH_FLUSH, rkey, addr,
               type | (uint32_t)level << 4);
    if (b->err)
        return;
    if (len > UINT32_MAX) {
        fail(b, EINVAL);
        return;
    }
    // The range's length travels in an SGE that names no memory.
    if (!grow(b, (void **)&b->sges, &b->sge_room, b->n_sges, 1, sizeof(*b->sges)))
        return;
    b->sges[b->n_sges] = (struct ibv_sge){.length = (uint32_t)len};
    current(b)->sge = b->n_sges++;
    current(b)->num_sge = 1;
}

static void wr_send(struct ibv_qp_ex *qp)
{
    begin(qp, IBV_WR_SEND, IBV_QP_EX_WITH_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
    struct wf_vwr *w = begin(qp, IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM);

    if (w)
        w->wr.imm_data = imm;
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
    struct wf_vwr *w = begin(qp, IBV_WR_SEND_WITH_INV, IBV_QP_EX_WITH_SEND_WITH_INV);

    if (w)
        w->wr.invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
    struct wf_vwr *w = begin(qp, IBV_WR_LOCAL_INV, IBV_QP_EX_WITH_LOCAL_INV);

    if (w)
        w->wr.invalidate_rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
                       const struct ibv_mw_bind_info *info)
{
    struct wf_vwr *w = begin(qp, IBV_WR_BIND_MW, IBV_QP_EX_WITH_BIND_MW);

    if (!w)
        return;
    w->wr.bind_mw.mw = mw;
    w->wr.bind_mw.rkey = rkey;
    w->wr.bind_mw.bind_info = *info;
}

static void wr_send_tso(struct ibv_qp_ex *qp, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
    fail(build_of(qp), -wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "ibv_wr_send_tso"));
}

static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct wf_vwr *w = current(build_of(qp));

    if (!w)
        return;
    w->wr.wr.ud.ah = ah;
    w->wr.wr.ud.remote_qpn = qpn;
    w->wr.wr.ud.remote_qkey = qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *qp, uint32_t srqn)
{
    struct wf_vwr *w = current(build_of(qp));

    if (w)
        w->wr.qp_type.xrc.remote_srqn = srqn;
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t len)
{
    struct wf_vbuild *b = build_of(qp);
    struct wf_vwr *w = current(b);

    if (w)
        inline_bytes(b, w, addr, len);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_data_buf *bufs)
{
    struct wf_vbuild *b = build_of(qp);
    struct wf_vwr *w = current(b);

    for (size_t i = 0; w && i < n; i++)
        inline_bytes(b, w, bufs[i].addr, bufs[i].length);
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_sge *sg)
{
    struct wf_vbuild *b = build_of(qp);
    struct wf_vqp *v = (struct wf_vqp *)qp;
    struct wf_vwr *w = current(b);

    if (!w)
        return;
    if (n > v->cap.max_send_sge) {
        fail(b, -wf_refuse(EINVAL, WF_R_TOO_MANY_SGE, "QP 0x%06x: %zu SGEs of %u",
                           qp->qp_base.qp_num, n, v->cap.max_send_sge));
        return;
    }
    if (!grow(b, (void **)&b->sges, &b->sge_room, b->n_sges, (uint32_t)n, sizeof(*b->sges)))
        return;
    if (n)
        memcpy(b->sges + b->n_sges, sg, n * sizeof(*sg));
    w->sge = b->n_sges;
    w->num_sge = (uint32_t)n;
    b->n_sges += (uint32_t)n;
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

    wr_set_sge_list(qp, 1, &sge);
}

static void forget(struct wf_vbuild *b)
{
    b->err = 0;
    b->n = b->n_sges = b->n_bytes = 0;
}

// The lock is held from wr_start to wr_complete or wr_abort.
static void wr_start(struct ibv_qp_ex *qp)
{
    struct wf_vbuild *b = build_of(qp);

    pthread_mutex_lock(&b->lock);
    forget(b);
}

// The arenas have stopped moving: turn places into pointers. Inline data needs one SGE each.
static int resolve(struct wf_vqp *v)
{
    struct wf_vbuild *b = v->build;

    if (!grow(b, (void **)&b->sges, &b->sge_room, b->n_sges, b->n, sizeof(*b->sges)))
        return b->err;
    for (uint32_t i = 0; i < b->n; i++) {
        struct wf_vwr *w = &b->wrs[i];

        if (w->inlined) {
            if (w->wr.opcode != IBV_WR_ATOMIC_WRITE && w->len > v->cap.max_inline_data)
                return -wf_refuse(EINVAL, WF_R_INLINE_TOO_LONG, "QP 0x%06x: %u inline bytes of %u",
                                  v->ibv.qp_base.qp_num, w->len, v->cap.max_inline_data);
            w->sge = b->n_sges++;
            w->num_sge = 1;
            w->wr.send_flags |= IBV_SEND_INLINE;
            b->sges[w->sge] =
                (struct ibv_sge){.addr = (uintptr_t)(b->bytes + w->data), .length = w->len};
        }
        w->wr.sg_list = b->sges + w->sge;
        w->wr.num_sge = (int)w->num_sge;
        w->wr.next = i + 1 < b->n ? &b->wrs[i + 1].wr : NULL;
    }
    return 0;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
    struct wf_vqp *v = (struct wf_vqp *)qp;
    struct wf_vbuild *b = v->build;
    struct ibv_send_wr *bad;
    int rc = b->err;

    if (!rc && b->n)
        rc = resolve(v);
    // All or nothing (ibv_wr_post(3)): a chain must not end in the middle for want of room.
    if (!rc && b->n > 1 && wf_qp_send_room(v->qp) < b->n)
        rc = -wf_refuse(ENOMEM, WF_R_SQ_FULL, "QP 0x%06x: no room for %u requests",
                        qp->qp_base.qp_num, b->n);
    if (!rc && b->n)
        rc = -wf_qp_post_send(v->qp, &b->wrs[0].wr, &bad);
    forget(b);
    pthread_mutex_unlock(&b->lock);
    if (rc)
        errno = rc;
    return rc;
}

static void wr_abort(struct ibv_qp_ex *qp)
{
    struct wf_vbuild *b = build_of(qp);

    forget(b);
    pthread_mutex_unlock(&b->lock);
}

#define OPS_WRITE (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define OPS_SEND  (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_KEYS  (IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)
#define OPS_RC                                                                                     \
    (OPS_WRITE | OPS_SEND | OPS_KEYS | IBV_QP_EX_WITH_RDMA_READ |                                  \
     IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |                     \
     IBV_QP_EX_WITH_ATOMIC_WRITE | WF_QP_EX_WITH_FLUSH)

static uint64_t allowed(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_XRC_SEND:
        return OPS_RC;
    case IBV_QPT_UC:
        return OPS_WRITE | OPS_SEND | OPS_KEYS;
    case IBV_QPT_UD:
        return OPS_SEND;
    default:
        return 0;
    }
}

static void table(struct wf_vqp *v)
{
    struct ibv_qp_ex *ex = &v->ibv;

    ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
    ex->wr_bind_mw = wr_bind_mw;
    ex->wr_local_inv = wr_local_inv;
    ex->wr_rdma_read = wr_rdma_read;
    ex->wr_rdma_write = wr_rdma_write;
    ex->wr_rdma_write_imm = wr_rdma_write_imm;
    ex->wr_send = wr_send;
    ex->wr_send_imm = wr_send_imm;
    ex->wr_send_inv = wr_send_inv;
    ex->wr_send_tso = wr_send_tso;
    ex->wr_set_ud_addr = wr_set_ud_addr;
    ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
    ex->wr_set_inline_data = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
    ex->wr_atomic_write = wr_atomic_write;
    v->wr_flush = wr_flush;
}

int wf_vbuild_new(struct wf_vqp *v, uint64_t ops)
{
    enum ibv_qp_type type = v->ibv.qp_base.qp_type;

    if (ops & ~allowed(type))
        return wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "send_ops_flags 0x%llx on QP type %d",
                         (unsigned long long)ops, type);
    v->build = calloc(1, sizeof(*v->build));
    if (!v->build)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "work request builder");
    pthread_mutex_init(&v->build->lock, NULL);
    v->build->ops = ops;
    table(v);
    return 0;
}

void wf_vbuild_free(struct wf_vqp *v)
{
    struct wf_vbuild *b = v->build;

    if (!b)
        return;
    pthread_mutex_destroy(&b->lock);
    free(b->wrs);
    free(b->sges);
    free(b->bytes);
    free(b);
}
