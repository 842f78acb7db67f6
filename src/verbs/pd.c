// SPDX-License-Identifier: BSD-2-Clause
// Protection domains: own, and imported by handle from another context of the same file.
#include "verbs/face.h"
#include <stdlib.h>
#include <utlist.h>

_Static_assert(sizeof(struct ibv_pd) == 16, "struct ibv_pd");

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
    struct wf_vfile *file = wf_vcontext(ctx)->file;
    struct wf_vpd *pd = calloc(1, sizeof(*pd));
    int rc;

    if (!pd)
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_alloc_pd"));
    rc = wf_pd_create(file->ctx, &pd->pd);
    if (rc < 0) {
        free(pd);
        return wf_verb_null(rc);
    }
    pd->ibv.context = ctx;
    pthread_mutex_lock(&file->lock);
    pd->ibv.handle = wf_vfile_handle(file);
    DL_APPEND(file->pds, pd);
    pthread_mutex_unlock(&file->lock);
    return &pd->ibv;
}

// A parent domain or an imported one is a view: only its own structure goes.
static void view_free(struct wf_vpd *pd)
{
    wf_vpd_unuse(&pd->base->ibv);
    if (pd->td)
        atomic_fetch_sub(&((struct wf_vtd *)pd->td)->users, 1);
    free(pd);
}

void wf_vpd_unuse(struct ibv_pd *pd)
{
    if (pd && atomic_fetch_sub(&wf_vpd(pd)->users, 1) == (WF_VPD_ORPHAN | 1))
        view_free(wf_vpd(pd));
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    struct wf_vpd *pd = wf_vpd(ibv);
    struct wf_vfile *file = wf_vcontext(ibv->context)->file;
    uint32_t users = atomic_load(&pd->users);
    int rc = 0;

    if (users)
        return wf_verb(wf_refuse(EBUSY, WF_R_BUSY, "PD %u: %u objects use it", ibv->handle, users));
    if (pd->kind != WF_VPD_OWN) {
        view_free(pd);
        return 0;
    }
    if (!wf_vforeign(ibv->context))
        rc = wf_pd_destroy(pd->pd);
    if (rc < 0)
        return wf_verb(rc);
    pthread_mutex_lock(&file->lock);
    DL_DELETE(file->pds, pd);
    pthread_mutex_unlock(&file->lock);
    free(pd);
    return 0;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t handle)
{
    struct wf_vfile *file = wf_vcontext(ctx)->file;
    struct wf_vpd *view = calloc(1, sizeof(*view));
    struct wf_vpd *base;

    if (!view)
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_import_pd"));
    pthread_mutex_lock(&file->lock);
    DL_SEARCH_SCALAR(file->pds, base, ibv.handle, handle);
    if (base)
        wf_vpd_use(&base->ibv);
    pthread_mutex_unlock(&file->lock);
    if (!base) {
        free(view);
        return wf_verb_null(wf_refuse(ENOENT, WF_R_ARG, "ibv_import_pd: no PD %u", handle));
    }
    view->ibv.context = ctx;
    view->ibv.handle = handle;
    view->pd = base->pd;
    view->base = base;
    view->kind = WF_VPD_IMPORTED;
    return &view->ibv;
}

void ibv_unimport_pd(struct ibv_pd *ibv)
{
    struct wf_vpd *pd = wf_vpd(ibv);

    if (pd->kind == WF_VPD_IMPORTED && atomic_fetch_or(&pd->users, WF_VPD_ORPHAN) == 0)
        view_free(pd);
}
