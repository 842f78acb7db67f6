// SPDX-License-Identifier: BSD-2-Clause
// From scatter/gather lists to addresses, and payload to where it belongs.
#include "qp/qp.h"

#include "base/guard.h"
#include "mem/segments.h"

#include "qp/kinds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE      4096u
#define LOOKED_AT (2u << 20) // no link has more under way

// Reads from a null region yield zeros: a read-only mapping of the zero page, as long as the
// longest message. Made on first use, kept for ever.
static void *zeros(void)
{
    static void *map;
    if (!map) {
        void *p =
            mmap(NULL, 1ull << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        map = p == MAP_FAILED ? NULL : p;
    }
    return map;
}

static enum wf_reason local_reason(enum wf_access a)
{
    switch (a) {
    case WF_ACCESS_PD:
        return WF_R_LKEY_PD;
    case WF_ACCESS_RANGE:
        return WF_R_LKEY_RANGE;
    case WF_ACCESS_RIGHT:
        return WF_R_LKEY_ACCESS;
    default:
        return WF_R_LKEY_UNKNOWN;
    }
}

struct sge_list {
    const struct ibv_sge *sge;
    uint32_t num;
    uint32_t pd;
    unsigned need;
};

static enum ibv_wc_status resolve(struct wf_qp *qp, const struct sge_list *l, uint32_t off,
                                  uint32_t *len, struct iovec *iov, int *niov, enum wf_reason *why)
{
    uint32_t left = *len;
    *niov = 0;
    for (uint32_t i = 0; i < l->num && left; i++) {
        const struct ibv_sge *s = &l->sge[i];
        // A length of 0 means 0 bytes, and its lkey is not looked at.
        if (off >= s->length) {
            off -= s->length;
            continue;
        }
        uint32_t take = s->length - off < left ? s->length - off : left;
        struct wf_access_req req = {
            .key = s->lkey, .pd = l->pd, .addr = s->addr + off, .len = take, .need = l->need};
        void *host;
        enum wf_access a = wf_access_check(qp->env->keys, &req, &host);
        if (a != WF_ACCESS_OK) {
            char text[180];
            wf_access_describe(qp->env->keys, &req, a, text, sizeof(text));
            *why = local_reason(a);
            qp->env->detail_qpn = qp->qpn;
            snprintf(qp->env->detail, sizeof(qp->env->detail), "SGE %u: %s", i, text);
            return IBV_WC_LOC_PROT_ERR;
        }
        off = 0;
        if (!wf_key_in_pieces(qp->env->keys, s->lkey)) {
            if (!host && !(l->need & IBV_ACCESS_LOCAL_WRITE))
                host = zeros();
            if (*niov == WF_MAX_IOV)
                break;
            iov[(*niov)++] = (struct iovec){.iov_base = host, .iov_len = take};
            left -= take;
            continue;
        }
        uint32_t got = (uint32_t)wf_access_map(qp->env->keys, &req, iov, niov);
        left -= got;
        if (got < take)
            break;
    }
    *len -= left;
    return IBV_WC_SUCCESS;
}

enum ibv_wc_status wf_gather(struct wf_qp *qp, const struct wf_swqe *w, uint32_t off, uint32_t *len,
                             unsigned need, struct iovec *iov, int *niov, enum wf_reason *why)
{
    if (w->flags & IBV_SEND_INLINE) {
        iov[0] = (struct iovec){.iov_base = (uint8_t *)w->sge + off, .iov_len = *len};
        *niov = *len ? 1 : 0;
        return IBV_WC_SUCCESS;
    }
    struct sge_list l = {.sge = w->sge, .num = w->num_sge, .pd = qp->pd, .need = need};
    return resolve(qp, &l, off, len, iov, niov, why);
}

enum ibv_wc_status wf_scatter(struct wf_qp *qp, uint32_t pd, const struct wf_rwqe *w, uint32_t off,
                              uint32_t *len, struct iovec *iov, int *niov, enum wf_reason *why)
{
    struct sge_list l = {
        .sge = w->sge, .num = w->num_sge, .pd = pd, .need = IBV_ACCESS_LOCAL_WRITE};
    return resolve(qp, &l, off, len, iov, niov, why);
}

struct touched {
    const struct iovec *iov;
    int niov;
    bool write;
};

static void touch_byte(const uint8_t *p, bool write)
{
    // Adding nothing writes without a race with the program's own stores.
    if (write)
        __atomic_fetch_or((uint8_t *)p, 0, __ATOMIC_RELAXED);
    else
        (void)*(const volatile uint8_t *)p;
}

static void touch(void *arg)
{
    const struct touched *t = arg;
    for (int i = 0; i < t->niov; i++) {
        const uint8_t *p = t->iov[i].iov_base;
        size_t len = t->iov[i].iov_len;
        if (!p || !len)
            continue;
        for (size_t off = 0; off < len; off += PAGE)
            touch_byte(p + off, t->write);
        touch_byte(p + len - 1, t->write);
    }
}

bool wf_memory_there(const struct iovec *iov, int niov, bool write)
{
    struct touched t = {iov, niov, write};
    return wf_guard_run(touch, &t) == 0;
}

bool wf_payload_gone(struct wf_qp *qp)
{
    const struct wf_swqe *w = wf_sq_slot(&qp->sq, qp->sq.una);
    if (qp->sq.una == qp->sq.head || w->state != WF_SWQE_STARTED || wf_wr_is_answered(w->opcode) ||
        w->flags & IBV_SEND_INLINE)
        return false;
    struct iovec iov[WF_MAX_IOV];
    int niov;
    enum wf_reason why;
    uint32_t off = ((qp->req.una_psn - w->psn) & WF_PSN_MASK) * qp->mtu;
    uint32_t end = w->len - off < LOOKED_AT ? w->len : off + LOOKED_AT;
    for (uint32_t n; off < end; off += n) {
        n = end - off;
        // A bad key is found, and told better, when the request is sent again.
        if (wf_gather(qp, w, off, &n, 0, iov, &niov, &why) != IBV_WC_SUCCESS || !n)
            return false;
        if (!wf_memory_there(iov, niov, false))
            return true;
    }
    return false;
}

struct local_copy {
    const struct wf_pkt *pkt;
    const struct iovec *dst;
    int ndst;
    uint32_t off; // of the payload
};

static void copy_local(void *arg)
{
    const struct local_copy *c = arg;
    const struct wf_pkt *pkt = c->pkt;
    const struct iovec *src = pkt->iov, *dst = c->dst;
    int ndst = c->ndst;
    size_t src_off = c->off, dst_off = 0;
    int s = 0, d = 0;
    while (s < pkt->niov && src_off >= src[s].iov_len)
        src_off -= src[s++].iov_len;
    while (d < ndst && s < pkt->niov) {
        size_t n = dst[d].iov_len - dst_off;
        if (n > src[s].iov_len - src_off)
            n = src[s].iov_len - src_off;
        // A null region takes data and drops it. Buffers may overlap when a QP talks to itself.
        if (dst[d].iov_base)
            memmove((uint8_t *)dst[d].iov_base + dst_off, (uint8_t *)src[s].iov_base + src_off, n);
        src_off += n;
        dst_off += n;
        if (src_off == src[s].iov_len) {
            s++;
            src_off = 0;
        }
        if (dst_off == dst[d].iov_len) {
            d++;
            dst_off = 0;
        }
    }
}

int wf_place(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t off, const struct iovec *iov,
             int niov)
{
    if (pkt->remote)
        return qp->env->ops->fetch(qp, pkt, off, iov, niov);
    // Registered memory is not pinned: the program may have unmapped it.
    struct local_copy copy = {pkt, iov, niov, off};
    return wf_guard_run(copy_local, &copy);
}

int wf_place_recv(struct wf_qp *qp, uint32_t pd, const struct wf_rwqe *w, uint32_t off,
                  const struct wf_pkt *pkt, enum ibv_wc_status *status, enum wf_reason *why)
{
    struct iovec iov[WF_MAX_IOV];
    int niov;
    for (uint32_t done = 0, n; done < pkt->len; done += n) {
        n = pkt->len - done;
        *status = wf_scatter(qp, pd, w, off + done, &n, iov, &niov, why);
        if (*status != IBV_WC_SUCCESS)
            return -EINVAL;
        int err = n ? wf_place(qp, pkt, done, iov, niov) : -EFAULT;
        if (err) {
            *status = IBV_WC_LOC_PROT_ERR;
            return err;
        }
    }
    *status = IBV_WC_SUCCESS;
    return 0;
}

// Links that leave payload in place carry a short list of addresses.
void wf_gather_trim(const struct wf_qp *qp, const struct iovec *iov, int *niov, uint32_t *len)
{
    uint32_t n = 0;
    if (*niov <= WF_MAX_SGE)
        return;
    for (int i = 0; i < WF_MAX_SGE; i++)
        n += (uint32_t)iov[i].iov_len;
    n -= n % qp->mtu;
    if (!n)
        n = qp->mtu; // such a packet is copied
    if (n < *len)
        *len = n;
}
