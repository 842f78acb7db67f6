// SPDX-License-Identifier: BSD-2-Clause
// Thread domains and parent domains, and memory from a parent domain's allocators.
#include "verbs/face.h"
#include <stdlib.h>
#include <string.h>

struct ibv_td *wf_op_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
    struct wf_vtd *td;

    if (attr->comp_mask)
        return wf_verb_null(
            wf_refuse(EINVAL, WF_R_ARG, "ibv_alloc_td: comp_mask 0x%x", attr->comp_mask));
    td = calloc(1, sizeof(*td));
    if (!td)
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_alloc_td"));
    td->ibv.context = ctx;
    return &td->ibv;
}

int wf_op_dealloc_td(struct ibv_td *ibv)
{
    struct wf_vtd *td = (struct wf_vtd *)ibv;

    if (atomic_load(&td->users))
        return wf_verb(wf_refuse(EBUSY, WF_R_BUSY, "thread domain: %u parent domains use it",
                                 atomic_load(&td->users)));
    free(td);
    return 0;
}

static int check_parent(const struct ibv_parent_domain_init_attr *attr)
{
    const uint32_t known =
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

    if (attr->comp_mask & ~known)
        return wf_refuse(EINVAL, WF_R_ARG, "ibv_alloc_parent_domain: comp_mask 0x%x",
                         attr->comp_mask);
    if (!attr->pd)
        return wf_refuse(EINVAL, WF_R_ARG, "ibv_alloc_parent_domain: no PD");
    if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) && (!attr->alloc || !attr->free))
        return wf_refuse(EINVAL, WF_R_ARG, "ibv_alloc_parent_domain: allocators come in pairs");
    return 0;
}

struct ibv_pd *wf_op_alloc_parent_domain(struct ibv_context *ctx,
                                         struct ibv_parent_domain_init_attr *attr)
{
    struct wf_vpd *pd;
    int rc = check_parent(attr);

    if (rc < 0)
        return wf_verb_null(rc);
    pd = calloc(1, sizeof(*pd));
    if (!pd)
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_alloc_parent_domain"));
    pd->ibv.context = ctx;
    pd->ibv.handle = attr->pd->handle;
    pd->kind = WF_VPD_PARENT;
    pd->base = wf_vpd(attr->pd);
    pd->pd = pd->base->pd;
    pd->td = attr->td;
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
        pd->alloc = attr->alloc;
        pd->free = attr->free;
    }
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
        pd->arg = attr->pd_context;
    wf_vpd_use(attr->pd);
    if (attr->td)
        atomic_fetch_add(&((struct wf_vtd *)attr->td)->users, 1);
    return &pd->ibv;
}

void *wf_vmem_alloc(struct ibv_pd *ibv, size_t size, enum wf_vmem_type type, struct wf_vmem *mem)
{
    struct wf_vpd *pd = ibv ? wf_vpd(ibv) : NULL;
    void *ptr;

    *mem = (struct wf_vmem){.type = type};
    if (pd && pd->alloc) {
        ptr = pd->alloc(ibv, pd->arg, size, 64, type);
        if (!ptr)
            return NULL;
        if (ptr != IBV_ALLOCATOR_USE_DEFAULT) {
            mem->domain = pd;
            return memset(ptr, 0, size);
        }
    }
    return calloc(1, size);
}

void wf_vmem_free(void *ptr, struct wf_vmem mem)
{
    if (mem.domain)
        mem.domain->free(&mem.domain->ibv, mem.domain->arg, ptr, mem.type);
    else
        free(ptr);
}
