// SPDX-License-Identifier: BSD-2-Clause
// Device memory: memory that programs reach only through copies and regions. Here it is anonymous
// memory with a budget, as a device's would have.
#include "verbs/face.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <utlist.h>

_Static_assert(sizeof(struct ibv_dm) == 32, "struct ibv_dm");

#define DM_ALIGN 4 // of offsets and lengths of copies, as the hardware that has device memory asks

static _Atomic size_t dm_used;

static int check_copy(const struct wf_vdm *dm, uint64_t offset, size_t len)
{
    if (offset % DM_ALIGN || len % DM_ALIGN)
        return wf_refuse(EINVAL, WF_R_ARG,
                         "device memory copy: offset %llu and length %zu must be multiples of %d",
                         (unsigned long long)offset, len, DM_ALIGN);
    if (offset > dm->len || len > dm->len - offset)
        return wf_refuse(EINVAL, WF_R_ARG, "device memory copy: %zu bytes at %llu of %zu", len,
                         (unsigned long long)offset, dm->len);
    return 0;
}

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *host, size_t len)
{
    struct wf_vdm *dm = (struct wf_vdm *)ibv;
    int rc = check_copy(dm, offset, len);

    if (rc == 0)
        memcpy(dm->mem + offset, host, len);
    return wf_verb(rc);
}

static int copy_from(void *host, struct ibv_dm *ibv, uint64_t offset, size_t len)
{
    struct wf_vdm *dm = (struct wf_vdm *)ibv;
    int rc = check_copy(dm, offset, len);

    if (rc == 0)
        memcpy(host, dm->mem + offset, len);
    return wf_verb(rc);
}

static struct wf_vdm *dm_new(struct ibv_context *ctx, uint8_t *mem, size_t len)
{
    struct wf_vdm *dm = calloc(1, sizeof(*dm));

    if (!dm)
        return NULL;
    dm->ibv.context = ctx;
    dm->ibv.memcpy_to_dm = copy_to;
    dm->ibv.memcpy_from_dm = copy_from;
    dm->ibv.comp_mask = IBV_DM_MASK_HANDLE;
    dm->mem = mem;
    dm->len = len;
    return dm;
}

static int check_alloc(const struct ibv_alloc_dm_attr *attr)
{
    if (attr->comp_mask || attr->log_align_req > 12)
        return wf_refuse(EINVAL, WF_R_ARG, "ibv_alloc_dm: comp_mask 0x%x, alignment 2^%u",
                         attr->comp_mask, attr->log_align_req);
    if (!attr->length || attr->length > WF_FACE_DM_BYTES)
        return wf_refuse(EINVAL, WF_R_LIMIT, "ibv_alloc_dm: %zu of %u bytes", attr->length,
                         WF_FACE_DM_BYTES);
    return 0;
}

struct ibv_dm *wf_op_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr)
{
    struct wf_vfile *file = wf_vcontext(ctx)->file;
    struct wf_vdm *dm;
    uint8_t *mem;
    int rc = check_alloc(attr);

    if (rc < 0)
        return wf_verb_null(rc);
    if (atomic_fetch_add(&dm_used, attr->length) + attr->length > WF_FACE_DM_BYTES) {
        atomic_fetch_sub(&dm_used, attr->length);
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_LIMIT,
                                      "ibv_alloc_dm: %zu bytes do not fit into what is left of %u",
                                      attr->length, WF_FACE_DM_BYTES));
    }
    mem = mmap(NULL, attr->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    dm = mem == MAP_FAILED ? NULL : dm_new(ctx, mem, attr->length);
    if (!dm) {
        if (mem != MAP_FAILED)
            munmap(mem, attr->length);
        atomic_fetch_sub(&dm_used, attr->length);
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_alloc_dm"));
    }
    pthread_mutex_lock(&file->lock);
    dm->ibv.handle = wf_vfile_handle(file);
    DL_APPEND(file->dms, dm);
    pthread_mutex_unlock(&file->lock);
    return &dm->ibv;
}

int wf_op_free_dm(struct ibv_dm *ibv)
{
    struct wf_vfile *file = wf_vcontext(ibv->context)->file;
    struct wf_vdm *dm = (struct wf_vdm *)ibv;
    uint32_t users = atomic_load(&dm->users);

    if (dm->base)
        return wf_verb(wf_refuse(EINVAL, WF_R_ARG,
                                 "device memory %u is imported: ibv_unimport_dm() releases it",
                                 ibv->handle));
    if (users)
        return wf_verb(wf_refuse(EBUSY, WF_R_BUSY, "device memory %u: %u regions or imports use it",
                                 ibv->handle, users));
    pthread_mutex_lock(&file->lock);
    DL_DELETE(file->dms, dm);
    pthread_mutex_unlock(&file->lock);
    munmap(dm->mem, dm->len);
    atomic_fetch_sub(&dm_used, dm->len);
    free(dm);
    return 0;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t handle)
{
    struct wf_vfile *file = wf_vcontext(ctx)->file;
    struct wf_vdm *base, *dm = NULL;

    pthread_mutex_lock(&file->lock);
    DL_SEARCH_SCALAR(file->dms, base, ibv.handle, handle);
    if (base)
        dm = dm_new(ctx, base->mem, base->len);
    if (dm) {
        dm->base = base;
        dm->ibv.handle = handle;
        atomic_fetch_add(&base->users, 1);
    }
    pthread_mutex_unlock(&file->lock);
    if (!base)
        return wf_verb_null(
            wf_refuse(ENOENT, WF_R_ARG, "ibv_import_dm: no device memory %u", handle));
    if (!dm)
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_import_dm"));
    return &dm->ibv;
}

void ibv_unimport_dm(struct ibv_dm *ibv)
{
    struct wf_vdm *dm = (struct wf_vdm *)ibv;

    if (!dm->base)
        return;
    atomic_fetch_sub(&dm->base->users, 1);
    free(dm);
}

struct ibv_mr *wf_op_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t len,
                               unsigned access)
{
    struct wf_vdm *dm = (struct wf_vdm *)ibv;
    struct ibv_mr *mr;

    if (!(access & IBV_ACCESS_ZERO_BASED))
        return wf_verb_null(
            wf_refuse(EINVAL, WF_R_MR_ACCESS_FLAGS, "ibv_reg_dm_mr needs IBV_ACCESS_ZERO_BASED"));
    if (offset > dm->len || len > dm->len - offset)
        return wf_verb_null(wf_refuse(EINVAL, WF_R_ARG, "ibv_reg_dm_mr: %zu bytes at %llu of %zu",
                                      len, (unsigned long long)offset, dm->len));
    mr = wf_vmr_new(pd, dm->mem + offset, len, 0, access);
    if (!mr)
        return NULL;
    // The memory has no address that the program could use.
    mr->addr = NULL;
    ((struct wf_vmr *)mr)->dm = dm;
    atomic_fetch_add(&dm->users, 1);
    return mr;
}
