// SPDX-License-Identifier: BSD-2-Clause
// Memory windows: bind, unbind, invalidate (IBA 10.6.7, 10.6.7.2.6). No packet is involved.
#include "qp/qp.h"

#include <errno.h>

static void unbind(struct wf_qp *qp, uint32_t index)
{
    struct wf_keys *k = qp->env->keys;
    struct wf_key_info *info = wf_key_info(k, index);
    uint32_t key = wf_key_of(k, index);
    wf_key_revoke(k, index);
    if (key)
        qp->env->ops->revoked(qp, key);
    if (info->parent) {
        wf_key_info(k, info->parent)->bound--;
        info->parent = 0;
    }
}

static bool bind_allowed(struct wf_qp *qp, const struct wf_swqe *w, uint32_t mr)
{
    struct wf_keys *k = qp->env->keys;
    struct wf_key_info *info = wf_key_info(k, mr);
    if (!info || info->kind != WF_KEY_MR || wf_key_of(k, mr) != w->mr)
        return false;
    struct wf_access_req req = {.key = w->mr,
                                .pd = qp->pd,
                                .addr = w->raddr,
                                .len = w->compare,
                                .need = IBV_ACCESS_MW_BIND};
    unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    if (w->bind_access & writes)
        req.need |= IBV_ACCESS_LOCAL_WRITE;
    void *host;
    return wf_access_check(k, &req, &host) == WF_ACCESS_OK;
}

static enum ibv_wc_status bind(struct wf_qp *qp, const struct wf_swqe *w, enum wf_reason *why)
{
    struct wf_keys *k = qp->env->keys;
    struct wf_key_info *mw = wf_key_info(k, w->mw);
    *why = WF_R_MW_BIND;
    if (!mw || (mw->kind != WF_KEY_MW1 && mw->kind != WF_KEY_MW2) || mw->pd != qp->pd)
        return IBV_WC_MW_BIND_ERR;
    bool type2 = mw->kind == WF_KEY_MW2;
    // A type 2 window is bound once and must be invalidated before it is bound again.
    if (type2 && (mw->parent || WF_KEY_INDEX(w->rkey) != w->mw))
        return IBV_WC_MW_BIND_ERR;
    if (!w->compare) {
        unbind(qp, w->mw);
        return IBV_WC_SUCCESS;
    }
    uint32_t mr = WF_KEY_INDEX(w->mr);
    if (!bind_allowed(qp, w, mr))
        return IBV_WC_MW_BIND_ERR;
    unbind(qp, w->mw);
    const struct wf_key_entry *region = &k->entries[mr];
    struct wf_key_entry fields = {
        .access = w->bind_access & ~(uint32_t)IBV_ACCESS_ZERO_BASED,
        .pd = qp->pd,
        .qpn = type2 ? qp->qpn : 0,
        .iova = w->bind_access & IBV_ACCESS_ZERO_BASED ? 0 : w->raddr,
        .addr = region->addr + (w->raddr - region->iova),
        .len = w->compare,
        .flags = region->flags,
    };
    wf_key_publish(k, w->mw, &fields, w->rkey & 0xff);
    mw->parent = mr;
    wf_key_info(k, mr)->bound++;
    return IBV_WC_SUCCESS;
}

static int invalidate(struct wf_qp *qp, uint32_t key)
{
    struct wf_keys *k = qp->env->keys;
    uint32_t index = WF_KEY_INDEX(key);
    struct wf_key_info *info = wf_key_info(k, index);
    if (!index || !info || info->kind != WF_KEY_MW2 || wf_key_of(k, index) != key)
        return -EINVAL;
    const struct wf_key_entry *e = &k->entries[index];
    if (e->pd != qp->pd || (e->qpn && e->qpn != qp->qpn))
        return -EINVAL;
    unbind(qp, index);
    return 0;
}

int wf_local_invalidate(struct wf_qp *qp, uint32_t key)
{
    return invalidate(qp, key);
}

enum ibv_wc_status wf_local_execute(struct wf_qp *qp, const struct wf_swqe *w, enum wf_reason *why)
{
    if (w->opcode == IBV_WR_BIND_MW)
        return bind(qp, w, why);
    *why = WF_R_RKEY_UNKNOWN;
    return invalidate(qp, w->imm) ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS;
}
