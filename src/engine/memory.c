// SPDX-License-Identifier: BSD-2-Clause
// Memory regions and windows.
#include "engine/engine.h"

#include "mem/segments.h"

#include "link/onesided.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <utlist.h>

#define ACCESS_KNOWN                                                                               \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |                       \
     IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB)
// Optional bits may be ignored (ibv_reg_mr(3)); flush bits are granted to every region.
#define ACCESS_OPTIONAL (IBV_ACCESS_OPTIONAL_RANGE | 1u << 8 | 1u << 9)

static int check_access(unsigned access)
{
    unsigned unknown = access & ~(ACCESS_KNOWN | ACCESS_OPTIONAL);
    if (unknown)
        return wf_refuse(EINVAL, WF_R_MR_ACCESS_FLAGS, "unknown access flags 0x%x", unknown);
    unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    if (access & writes && !(access & IBV_ACCESS_LOCAL_WRITE))
        return wf_refuse(EINVAL, WF_R_MR_ACCESS_FLAGS, "access flags 0x%x", access);
    return 0;
}

static int check_range(uint64_t addr, uint64_t len, uint64_t iova)
{
    if (addr + len < addr || (iova + len < iova && iova + len != 0))
        return wf_refuse(EINVAL, WF_R_ARG,
                         "region 0x%" PRIx64 ", +%" PRIu64 " wraps around the address space", addr,
                         len);
    return 0;
}

static void set_fields(struct wf_mr *mr, struct wf_pd *pd, uint64_t addr, uint64_t len,
                       uint64_t iova, unsigned access)
{
    mr->pd = pd;
    mr->fields = (struct wf_key_entry){
        .access = access, .pd = pd->num, .iova = iova, .addr = addr, .len = len};
}

int wf_mr_reg(struct wf_pd *pd, void *addr, uint64_t len, uint64_t iova, unsigned access,
              struct wf_mr **out)
{
    struct wf_hca *h = pd->ctx->hca;
    int err = check_access(access);
    if (!err)
        err = check_range((uintptr_t)addr, len, iova);
    if (!err)
        err = wf_verb_fault(h, "reg_mr");
    if (err)
        return err;
    struct wf_mr *mr = calloc(1, sizeof(*mr));
    if (!mr)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "memory region");
    wf_enter(h);
    err = wf_key_alloc(&h->keys, WF_KEY_MR, pd->num, &mr->index);
    if (!err) {
        set_fields(mr, pd, (uintptr_t)addr, len, iova, access);
        wf_key_publish(&h->keys, mr->index, &mr->fields, -1);
        pd->users++;
        DL_APPEND(pd->ctx->mrs, mr);
    }
    wf_exit(h);
    if (err) {
        free(mr);
        return wf_refuse(ENOMEM, WF_R_LIMIT, "%u memory regions", WF_LIMIT_MR);
    }
    *out = mr;
    return 0;
}

int wf_mr_reg_pieces(struct wf_pd *pd, const struct iovec *pieces, uint32_t num, uint64_t iova,
                     unsigned access, struct wf_mr **out)
{
    struct wf_segments *s = num ? wf_segments_make(pieces, num) : NULL;
    if (!s)
        return wf_refuse(EINVAL, WF_R_ARG, "a region of %u pieces: none, or one is empty", num);
    int err = wf_mr_reg(pd, NULL, s->seg[num].at, iova, access, out);
    if (err) {
        free(s);
        return err;
    }
    struct wf_hca *h = pd->ctx->hca;
    struct wf_mr *mr = *out;
    wf_enter(h);
    // Nobody knows the key yet.
    wf_key_info(&h->keys, mr->index)->segments = s;
    mr->fields.flags = h->keys.entries[mr->index].flags = WF_KEY_SEGMENTED;
    wf_exit(h);
    return 0;
}

int wf_mr_reg_null(struct wf_pd *pd, struct wf_mr **out)
{
    int err = wf_mr_reg(pd, NULL, 0, 0, IBV_ACCESS_LOCAL_WRITE, out);
    if (err)
        return err;
    struct wf_hca *h = pd->ctx->hca;
    wf_enter(h);
    wf_key_info(&h->keys, (*out)->index)->kind = WF_KEY_NULL_MR;
    wf_exit(h);
    return 0;
}

// Take the key out of use and wait until no peer copies under it.
static void quiesce(struct wf_hca *h, uint32_t index)
{
    uint32_t key = wf_key_of(&h->keys, index);
    wf_key_revoke(&h->keys, index);
    if (key)
        wf_hazard_wait(h->region, key);
}

int wf_mr_rereg(struct wf_mr *mr, int flags, struct wf_pd *pd, void *addr, uint64_t len,
                unsigned access)
{
    struct wf_hca *h = mr->pd->ctx->hca;
    struct wf_key_entry f = mr->fields;
    int known =
        IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
    if (!flags || flags & ~known)
        return wf_refuse(EINVAL, WF_R_ARG, "rereg_mr flags 0x%x", flags);
    if (flags & IBV_REREG_MR_CHANGE_PD && (!pd || pd->ctx->hca != h))
        return wf_refuse(EINVAL, WF_R_ARG, "rereg_mr needs a PD of the same device");
    if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
        f.access = access;
        int err = check_access(access);
        if (err)
            return err;
    }
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        f.addr = f.iova = (uintptr_t)addr;
        f.len = len;
        int err = !addr ? wf_refuse(EINVAL, WF_R_ARG, "rereg_mr of address NULL")
                        : check_range(f.addr, len, f.iova);
        if (err)
            return err;
    }
    wf_enter(h);
    int err = 0;
    if (f.flags & WF_KEY_SEGMENTED) {
        err = wf_refuse(EINVAL, WF_R_ARG, "rereg_mr of a region in pieces");
    } else if (wf_key_info(&h->keys, mr->index)->bound) {
        err = wf_refuse(EBUSY, WF_R_BUSY, "a memory window is bound to region 0x%08x",
                        wf_key_of(&h->keys, mr->index));
    } else {
        if (flags & IBV_REREG_MR_CHANGE_PD) {
            mr->pd->users--;
            pd->users++;
            mr->pd = pd;
            f.pd = pd->num;
        }
        uint32_t tag = wf_key_of(&h->keys, mr->index) & 0xff;
        quiesce(h, mr->index);
        mr->fields = f;
        wf_key_publish(&h->keys, mr->index, &f, (int)tag);
    }
    wf_exit(h);
    return err;
}

int wf_mr_dereg_locked(struct wf_mr *mr)
{
    struct wf_ctx *ctx = mr->pd->ctx;
    struct wf_hca *h = ctx->hca;
    if (wf_key_info(&h->keys, mr->index)->bound)
        return wf_refuse(EBUSY, WF_R_BUSY, "a memory window is bound to region 0x%08x",
                         wf_key_of(&h->keys, mr->index));
    quiesce(h, mr->index);
    wf_key_free(&h->keys, mr->index);
    mr->pd->users--;
    DL_DELETE(ctx->mrs, mr);
    free(mr);
    return 0;
}

int wf_mr_dereg(struct wf_mr *mr)
{
    struct wf_hca *h = mr->pd->ctx->hca;
    wf_enter(h);
    int err = wf_mr_dereg_locked(mr);
    wf_exit(h);
    return err;
}

uint32_t wf_mr_lkey(const struct wf_mr *mr)
{
    return wf_key_of(&mr->pd->ctx->hca->keys, mr->index);
}

uint32_t wf_mr_rkey(const struct wf_mr *mr)
{
    return wf_mr_lkey(mr);
}

int wf_mw_alloc(struct wf_pd *pd, enum ibv_mw_type type, struct wf_mw **out)
{
    struct wf_hca *h = pd->ctx->hca;
    if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
        return wf_refuse(EINVAL, WF_R_ARG, "memory window type %d", (int)type);
    struct wf_mw *mw = calloc(1, sizeof(*mw));
    if (!mw)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "memory window");
    wf_enter(h);
    enum wf_key_kind kind = type == IBV_MW_TYPE_1 ? WF_KEY_MW1 : WF_KEY_MW2;
    int err = wf_key_alloc(&h->keys, kind, pd->num, &mw->index);
    if (!err) {
        mw->pd = pd;
        mw->rkey = mw->index << 8 | (wf_key_info(&h->keys, mw->index)->tag + 1u) % 256;
        pd->users++;
        DL_APPEND(pd->ctx->mws, mw);
    }
    wf_exit(h);
    if (err) {
        free(mw);
        return wf_refuse(ENOMEM, WF_R_LIMIT, "%u memory windows", WF_LIMIT_MR);
    }
    *out = mw;
    return 0;
}

int wf_mw_dealloc_locked(struct wf_mw *mw)
{
    struct wf_ctx *ctx = mw->pd->ctx;
    struct wf_hca *h = ctx->hca;
    struct wf_key_info *info = wf_key_info(&h->keys, mw->index);
    quiesce(h, mw->index);
    if (info->parent)
        wf_key_info(&h->keys, info->parent)->bound--;
    wf_key_free(&h->keys, mw->index);
    mw->pd->users--;
    DL_DELETE(ctx->mws, mw);
    free(mw);
    return 0;
}

int wf_mw_dealloc(struct wf_mw *mw)
{
    struct wf_hca *h = mw->pd->ctx->hca;
    wf_enter(h);
    int err = wf_mw_dealloc_locked(mw);
    wf_exit(h);
    return err;
}

uint32_t wf_mw_rkey(const struct wf_mw *mw)
{
    return mw->rkey;
}

uint32_t wf_mw_handle(const struct wf_mw *mw)
{
    return mw->index;
}
