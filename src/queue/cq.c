// SPDX-License-Identifier: BSD-2-Clause
#include "queue/cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Byte offsets inside an entry; fields are big-endian dwords.
enum {
    B_QPN = 0,
    B_RQPN = 8,
    B_SL_G = 12,
    B_IMM = 16,
    B_BYTES = 20,
    B_WQE = 24,
    B_OPCODE = 28,
    B_S = 29,
    B_OWNER = 31
};
enum { OWNER_HW = 0x80, OPCODE_RECV_ERR = 0xfe, OPCODE_SEND_ERR = 0xff, SYNDROME_OTHER = 0x7f };

static const uint8_t syndromes[] = {
    [IBV_WC_SUCCESS] = 0,
    [IBV_WC_LOC_LEN_ERR] = 0x01,
    [IBV_WC_LOC_QP_OP_ERR] = 0x02,
    [IBV_WC_LOC_EEC_OP_ERR] = 0x03,
    [IBV_WC_LOC_PROT_ERR] = 0x04,
    [IBV_WC_WR_FLUSH_ERR] = 0x05,
    [IBV_WC_MW_BIND_ERR] = 0x06,
    [IBV_WC_BAD_RESP_ERR] = 0x10,
    [IBV_WC_LOC_ACCESS_ERR] = 0x11,
    [IBV_WC_REM_INV_REQ_ERR] = 0x12,
    [IBV_WC_REM_ACCESS_ERR] = 0x13,
    [IBV_WC_REM_OP_ERR] = 0x14,
    [IBV_WC_RETRY_EXC_ERR] = 0x15,
    [IBV_WC_RNR_RETRY_EXC_ERR] = 0x16,
    [IBV_WC_LOC_RDD_VIOL_ERR] = 0x20,
    [IBV_WC_REM_INV_RD_REQ_ERR] = 0x21,
    [IBV_WC_REM_ABORT_ERR] = 0x22,
    [IBV_WC_INV_EECN_ERR] = 0x23,
    [IBV_WC_INV_EEC_STATE_ERR] = 0x24,
};

uint8_t wf_arbel_syndrome(enum ibv_wc_status status)
{
    return status < sizeof(syndromes) ? syndromes[status] : SYNDROME_OTHER;
}

static uint32_t ring_size(uint32_t cqe)
{
    uint32_t size = 1;
    while (size < cqe)
        size <<= 1;
    return size;
}

static inline uint8_t *entry(uint8_t *ring, uint32_t size, uint32_t index)
{
    return ring + (size_t)(index & (size - 1)) * WF_CQE_BYTES;
}

static uint8_t *map_ring(uint32_t size)
{
    void *p = mmap(NULL, (size_t)size * WF_CQE_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void mark_all_free(uint8_t *ring, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++)
        entry(ring, size, i)[B_OWNER] = OWNER_HW;
}

int wf_cqring_init(struct wf_cq *cq, uint32_t cqe)
{
    cq->size = ring_size(cqe);
    cq->ring = map_ring(cq->size);
    cq->side = calloc(cq->size, sizeof(*cq->side));
    if (!cq->ring || !cq->side) {
        wf_cqring_fini(cq);
        return -ENOMEM;
    }
    mark_all_free(cq->ring, cq->size);
    return 0;
}

void wf_cqring_fini(struct wf_cq *cq)
{
    if (cq->ring)
        munmap(cq->ring, (size_t)cq->size * WF_CQE_BYTES);
    free(cq->side);
    cq->ring = NULL;
    cq->side = NULL;
}

static inline uint32_t ci_of(const struct wf_cq *cq)
{
    // Pairs with the release in consume(): an entry given back is no longer being read.
    return atomic_load_explicit(&cq->ci, memory_order_acquire);
}

uint32_t wf_cqring_pending(const struct wf_cq *cq)
{
    return cq->pi - ci_of(cq);
}

void wf_cqring_reap(struct wf_cq *cq)
{
    uint32_t ci = ci_of(cq);
    for (; cq->retired != ci; cq->retired++)
        if (cq->on_retire)
            cq->on_retire(cq, &cq->side[cq->retired & (cq->size - 1)]);
}

int wf_cqring_resize(struct wf_cq *cq, uint32_t cqe)
{
    wf_cqring_reap(cq);
    uint32_t size = ring_size(cqe), ci = ci_of(cq);
    if (cq->pi - ci > cqe)
        return -EINVAL;
    if (size == cq->size)
        return 0;
    uint8_t *ring = map_ring(size);
    struct wf_cq_side *side = calloc(size, sizeof(*side));
    if (!ring || !side) {
        if (ring)
            munmap(ring, (size_t)size * WF_CQE_BYTES);
        free(side);
        return -ENOMEM;
    }
    mark_all_free(ring, size);
    for (uint32_t i = ci; i != cq->pi; i++) {
        memcpy(entry(ring, size, i), entry(cq->ring, cq->size, i), WF_CQE_BYTES);
        side[i & (size - 1)] = cq->side[i & (cq->size - 1)];
    }
    wf_cqring_fini(cq);
    cq->ring = ring;
    cq->side = side;
    cq->size = size;
    return 0;
}

static inline void put32(uint8_t *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}

static inline uint32_t get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}

static void write_entry(uint8_t *e, const struct wf_completion *c)
{
    memset(e, 0, B_OWNER);
    put32(e + B_QPN, c->qpn);
    put32(e + B_WQE, c->wqe_adr);
    if (c->status != IBV_WC_SUCCESS) {
        e[B_IMM] = wf_arbel_syndrome(c->status);
        e[B_IMM + 1] = (uint8_t)c->reason;
        e[B_OPCODE] = c->send ? OPCODE_SEND_ERR : OPCODE_RECV_ERR;
    } else {
        put32(e + B_RQPN, c->src_qp);
        put32(e + B_BYTES, c->byte_len);
        if (c->wc_flags & IBV_WC_WITH_IMM)
            memcpy(e + B_IMM, &c->imm, 4);
        else if (c->wc_flags & IBV_WC_WITH_INV)
            put32(e + B_IMM, c->imm);
        e[B_SL_G] = (uint8_t)(c->sl << 4);
        e[B_SL_G + 1] = c->wc_flags & IBV_WC_GRH ? 0x80 : 0;
        e[B_OPCODE] = c->arbel_opcode;
        e[B_S] = c->send ? 0x80 : 0;
    }
    // The owner byte goes last: a poller outside the lock reads the rest only after it.
    __atomic_store_n(e + B_OWNER, 0, __ATOMIC_RELEASE);
}

static void fire(struct wf_cq *cq)
{
    cq->armed = WF_CQ_IDLE;
    cq->moderate_seen = 0;
    cq->moderate_deadline = 0;
    if (cq->on_comp)
        cq->on_comp(cq->user);
}

static void raise_event(struct wf_cq *cq, const struct wf_completion *c)
{
    if (cq->armed == WF_CQ_IDLE)
        return;
    bool urgent = c->solicited || c->status != IBV_WC_SUCCESS;
    if (cq->armed == WF_CQ_ARMED_SOLICITED && !urgent)
        return;
    if (cq->moderate_count > 1 && ++cq->moderate_seen < cq->moderate_count) {
        if (!cq->moderate_deadline && cq->moderate_usec)
            cq->moderate_deadline = c->timestamp + cq->moderate_usec * 1000ull;
        return;
    }
    fire(cq);
}

void wf_cqring_expire(struct wf_cq *cq, uint64_t now)
{
    if (cq->moderate_deadline && now >= cq->moderate_deadline && cq->armed != WF_CQ_IDLE)
        fire(cq);
}

bool wf_cqring_add(struct wf_cq *cq, const struct wf_completion *c)
{
    if (cq->failed)
        return false;
    if (cq->pi - ci_of(cq) >= cq->size) {
        if (!cq->ignore_overrun) {
            cq->failed = true;
            return false;
        }
        atomic_fetch_add_explicit(&cq->ci, 1, memory_order_acq_rel);
    }
    if (cq->pi - cq->retired >= cq->size)
        wf_cqring_reap(cq);
    cq->side[cq->pi & (cq->size - 1)] = (struct wf_cq_side){
        .timestamp = c->timestamp,
        .reason = c->reason,
        .srqn = c->srqn,
        .imm = c->imm,
        .opcode = (uint8_t)c->opcode,
        .status = (uint8_t)c->status,
        .wc_flags = (uint8_t)c->wc_flags,
        .send = c->send,
        .qpn = c->qpn,
        .wqe_adr = c->wqe_adr,
    };
    write_entry(entry(cq->ring, cq->size, cq->pi), c);
    cq->pi++;
    raise_event(cq, c);
    return true;
}

// libibverbs numbers receive opcodes from 1 << 7: they fit the side array's byte.
static void read_entry(const struct wf_cq *cq, uint32_t index, struct wf_completion *out)
{
    const uint8_t *e = entry(cq->ring, cq->size, index);
    const struct wf_cq_side *s = &cq->side[index & (cq->size - 1)];
    bool err = e[B_OPCODE] >= OPCODE_RECV_ERR;
    out->qpn = get32(e + B_QPN);
    out->wqe_adr = get32(e + B_WQE);
    out->send = err ? e[B_OPCODE] == OPCODE_SEND_ERR : e[B_S] & 0x80;
    out->solicited = false;
    out->arbel_opcode = e[B_OPCODE];
    out->sl = e[B_SL_G] >> 4;
    out->status = (enum ibv_wc_status)s->status;
    out->opcode = (enum ibv_wc_opcode)s->opcode;
    out->reason = s->reason;
    out->byte_len = get32(e + B_BYTES);
    out->imm = s->imm;
    out->wc_flags = s->wc_flags;
    out->src_qp = get32(e + B_RQPN);
    out->srqn = s->srqn;
    out->timestamp = s->timestamp;
}

bool wf_cqring_peek(const struct wf_cq *cq, struct wf_completion *out)
{
    uint32_t ci = ci_of(cq);
    if (ci == cq->pi)
        return false;
    read_entry(cq, ci, out);
    return true;
}

void wf_cqring_consume(struct wf_cq *cq)
{
    uint32_t ci = atomic_load_explicit(&cq->ci, memory_order_relaxed);
    entry(cq->ring, cq->size, ci)[B_OWNER] = OWNER_HW;
    atomic_store_explicit(&cq->ci, ci + 1, memory_order_release);
    cq->retired = ci + 1;
}

void wf_cqring_clean(struct wf_cq *cq, uint32_t qpn,
                     void (*gone)(void *arg, const struct wf_completion *c), void *arg)
{
    wf_cqring_reap(cq);
    uint32_t keep = cq->retired, end = cq->pi;
    for (uint32_t i = keep; i != end; i++) {
        struct wf_completion c;
        read_entry(cq, i, &c);
        if (c.qpn == qpn) {
            gone(arg, &c);
            continue;
        }
        if (keep != i) {
            memcpy(entry(cq->ring, cq->size, keep), entry(cq->ring, cq->size, i), WF_CQE_BYTES);
            cq->side[keep & (cq->size - 1)] = cq->side[i & (cq->size - 1)];
        }
        keep++;
    }
    for (uint32_t i = keep; i != end; i++)
        entry(cq->ring, cq->size, i)[B_OWNER] = OWNER_HW;
    cq->pi = keep;
}
