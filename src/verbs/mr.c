// SPDX-License-Identifier: BSD-2-Clause
// Memory regions.
#include "verbs/face.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>

_Static_assert(sizeof(struct ibv_mr) == 48, "struct ibv_mr");

// Flags that a device may ignore: data is always in the strictest order here.
#define OPTIONAL_ACCESS 0x3ff00000u

static void keys_of(struct wf_vmr *v)
{
    v->ibv.lkey = wf_mr_lkey(v->mr);
    v->ibv.rkey = wf_mr_rkey(v->mr);
}

// Takes over a region of the engine; `rc` is what making it gave.
static struct ibv_mr *adopt(struct ibv_pd *pd, struct wf_vmr *v, int rc)
{
    struct wf_vfile *file = wf_vcontext(pd->context)->file;

    if (rc < 0) {
        free(v);
        return wf_verb_null(rc);
    }
    v->ibv.context = pd->context;
    v->ibv.pd = pd;
    keys_of(v);
    wf_vpd_use(pd);
    pthread_mutex_lock(&file->lock);
    v->ibv.handle = wf_vfile_handle(file);
    DL_APPEND(file->mrs, v);
    pthread_mutex_unlock(&file->lock);
    return &v->ibv;
}

struct ibv_mr *wf_vmr_new(struct ibv_pd *pd, void *addr, uint64_t len, uint64_t iova,
                          unsigned access)
{
    struct wf_vmr *v = calloc(1, sizeof(*v));

    if (!v)
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "memory region"));
    access &= ~OPTIONAL_ACCESS;
    if (access & IBV_ACCESS_ZERO_BASED)
        iova = 0;
    v->ibv.addr = addr;
    v->ibv.length = len;
    return adopt(pd, v, wf_mr_reg(wf_vpd(pd)->pd, addr, len, iova, access, &v->mr));
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
    return wf_vmr_new(pd, addr, len, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
    return wf_vmr_new(pd, addr, len, iova, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
                                unsigned access)
{
    return wf_vmr_new(pd, addr, len, iova, access);
}

// A dma-buf is a file whose pages devices share: mapped here, it is memory like any other.
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova,
                                 int fd, int access)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t lead = offset % page;
    size_t map_len = lead + len;
    struct ibv_mr *mr;
    void *map;

    if (!len || offset + len < offset || map_len < len)
        return wf_verb_null(wf_refuse(EINVAL, WF_R_ARG, "ibv_reg_dmabuf_mr: length %zu", len));
    map = mmap(NULL, map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset - lead));
    if (map == MAP_FAILED)
        return wf_verb_null(wf_refuse(errno, WF_R_ARG,
                                      "ibv_reg_dmabuf_mr: descriptor %d cannot be mapped at %llu",
                                      fd, (unsigned long long)offset));
    mr = wf_vmr_new(pd, (char *)map + lead, len, iova, (unsigned)access);
    if (!mr) {
        int err = errno;

        munmap(map, map_len);
        return wf_verb_null(-err);
    }
    ((struct wf_vmr *)mr)->map = map;
    ((struct wf_vmr *)mr)->map_len = map_len;
    mr->addr = (void *)(uintptr_t)offset;
    return mr;
}

// The documented results of ibv_rereg_mr(3) are negative codes; whatever goes wrong here leaves the
// old region valid, which IBV_REREG_MR_ERR_INPUT says.
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len,
                 int access)
{
    struct wf_vmr *v = (struct wf_vmr *)mr;
    bool move = flags & IBV_REREG_MR_CHANGE_PD;
    int rc;

    if (!flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
        rc = wf_refuse(EINVAL, WF_R_ARG, "ibv_rereg_mr: flags 0x%x", flags);
    else if (move && !pd)
        rc = wf_refuse(EINVAL, WF_R_ARG, "ibv_rereg_mr: no PD to move to");
    else if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!addr || !len))
        rc = wf_refuse(EINVAL, WF_R_ARG, "ibv_rereg_mr: no memory to move to");
    else if (!v->mr || v->dm || v->map)
        rc = wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED,
                       "ibv_rereg_mr: an imported, device memory or dma-buf region");
    else
        rc = wf_mr_rereg(v->mr, flags, move ? wf_vpd(pd)->pd : NULL, addr, len,
                         (unsigned)access & ~OPTIONAL_ACCESS);
    if (rc < 0) {
        errno = -rc;
        return IBV_REREG_MR_ERR_INPUT;
    }
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        mr->addr = addr;
        mr->length = len;
    }
    if (move) {
        wf_vpd_unuse(mr->pd);
        wf_vpd_use(pd);
        mr->pd = pd;
    }
    keys_of(v);
    return 0;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    struct wf_vfile *file = wf_vcontext(mr->context)->file;
    struct wf_vmr *v = (struct wf_vmr *)mr;
    int rc = 0;

    if (!v->mr)
        return wf_verb(wf_refuse(EINVAL, WF_R_ARG,
                                 "MR %u is imported: ibv_unimport_mr() releases it", mr->handle));
    if (!wf_vforeign(mr->context))
        rc = wf_mr_dereg(v->mr);
    if (rc < 0)
        return wf_verb(rc);
    pthread_mutex_lock(&file->lock);
    DL_DELETE(file->mrs, v);
    pthread_mutex_unlock(&file->lock);
    if (v->map)
        munmap(v->map, v->map_len);
    if (v->dm)
        atomic_fetch_sub(&v->dm->users, 1);
    wf_vpd_unuse(mr->pd);
    free(v);
    return 0;
}

// The importer knows the keys; address and length stay zero, as ibv_import_mr(3) says.
struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    struct wf_vfile *file = wf_vcontext(pd->context)->file;
    struct wf_vmr *v = calloc(1, sizeof(*v));
    struct wf_vmr *base;

    if (!v)
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_import_mr"));
    pthread_mutex_lock(&file->lock);
    DL_SEARCH_SCALAR(file->mrs, base, ibv.handle, handle);
    if (base) {
        v->ibv.lkey = base->ibv.lkey;
        v->ibv.rkey = base->ibv.rkey;
    }
    pthread_mutex_unlock(&file->lock);
    if (!base) {
        free(v);
        return wf_verb_null(wf_refuse(ENOENT, WF_R_ARG, "ibv_import_mr: no MR %u", handle));
    }
    v->ibv.context = pd->context;
    v->ibv.pd = pd;
    v->ibv.handle = handle;
    wf_vpd_use(pd);
    return &v->ibv;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
    struct wf_vmr *v = (struct wf_vmr *)mr;

    if (v->mr)
        return;
    wf_vpd_unuse(mr->pd);
    free(v);
}

// Nothing is pinned, so there is nothing to fetch ahead; the request is checked all the same.
int wf_op_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                    struct ibv_sge *sg, uint32_t n)
{
    struct wf_vfile *file = wf_vcontext(pd->context)->file;
    struct wf_vmr *mr;
    int rc = 0;

    if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
        return wf_verb(
            wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "ibv_advise_mr: advice %d", advice));
    if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || !n)
        return wf_verb(wf_refuse(EINVAL, WF_R_ARG, "ibv_advise_mr: flags 0x%x, %u SGEs", flags, n));
    pthread_mutex_lock(&file->lock);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        DL_SEARCH_SCALAR(file->mrs, mr, ibv.lkey, sg[i].lkey);
        if (!mr)
            rc = ENOENT;
        else if (wf_vpd(mr->ibv.pd)->pd != wf_vpd(pd)->pd)
            rc = ENOENT;
    }
    pthread_mutex_unlock(&file->lock);
    if (rc)
        return wf_verb(
            wf_refuse(rc, WF_R_LKEY_UNKNOWN, "ibv_advise_mr: an lkey is not of this PD"));
    return 0;
}

struct ibv_mr *wf_op_alloc_null_mr(struct ibv_pd *pd)
{
    struct wf_vmr *v = calloc(1, sizeof(*v));

    if (!v)
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "memory region"));
    return adopt(pd, v, wf_mr_reg_null(wf_vpd(pd)->pd, &v->mr));
}
