// SPDX-License-Identifier: BSD-2-Clause
// Memory regions. A list is checked for the shape that the RFC asks for; an MDL list is one range
// then, a scatter/gather list one range or several pieces.
#include "iba/iba.h"

#include <errno.h>
#include <stdlib.h>

#define USER_SPACE_END 0x7ffffffff000ull

// ---- class --------------------------------------------------------------------------------------

static int destroy(struct wf_iba_object *o)
{
    weft_wdm_may_block("deregistering memory"); // waits for copies of peers
    return wf_mr_dereg(CONTAINING_RECORD(o, struct wf_iba_mr, obj)->mr);
}

static const struct wf_iba_class mr_class = {WF_IBA_MR, destroy, NULL};

struct wf_iba_mr *wf_iba_mr_of(const IB_MR *pub)
{
    return (struct wf_iba_mr *)wf_iba_object_of(pub, WF_IBA_MR);
}

// ---- the shape of lists -------------------------------------------------------------------------

struct range {
    uint64_t start, len;
};

static bool refuse_mdl(const MDL *mdl, const char *why)
{
    wf_refuse(EINVAL, WF_R_IBA_MDL, "MDL %p: %s", (const void *)mdl, why);
    return false;
}

static bool mdl_pages_filled(MDL *mdl)
{
    ULONG pages = ADDRESS_AND_SIZE_TO_SPAN_PAGES(MmGetMdlVirtualAddress(mdl), mdl->ByteCount);
    PFN_NUMBER first = (ULONG_PTR)mdl->StartVa >> PAGE_SHIFT;
    for (ULONG i = 0; i < pages; i++)
        if (MmGetMdlPfnArray(mdl)[i] != first + i)
            return false;
    return true;
}

static bool mdl_valid(MDL *mdl, bool first)
{
    ULONG_PTR start = (ULONG_PTR)MmGetMdlVirtualAddress(mdl), end = start + mdl->ByteCount;
    if (!mdl->ByteCount || mdl->ByteOffset >= PAGE_SIZE || end < start || BYTE_OFFSET(mdl->StartVa))
        return refuse_mdl(mdl, "empty, or not a page address and an offset in the page");
    if (!(mdl->MdlFlags & (MDL_PAGES_LOCKED | MDL_SOURCE_IS_NONPAGED_POOL)))
        return refuse_mdl(mdl, "pages are not locked");
    if ((SIZE_T)mdl->Size < MmSizeOfMdl((PVOID)start, mdl->ByteCount) || !mdl_pages_filled(mdl))
        return refuse_mdl(mdl, "page frame numbers are not filled");
    if (!first && mdl->ByteOffset)
        return refuse_mdl(mdl, "begins inside a page and is not the first");
    if (mdl->Next && end % PAGE_SIZE)
        return refuse_mdl(mdl, "ends inside a page and is not the last");
    if (mdl->Next && (ULONG_PTR)MmGetMdlVirtualAddress(mdl->Next) != end)
        return refuse_mdl(mdl->Next, "does not follow the one before");
    return true;
}

// Contiguity makes a loop in the list impossible: addresses only grow.
static bool range_of_mdls(MDL *list, struct range *out)
{
    out->start = (ULONG_PTR)MmGetMdlVirtualAddress(list);
    out->len = 0;
    for (MDL *mdl = list; mdl; mdl = mdl->Next) {
        if (!mdl_valid(mdl, mdl == list))
            return false;
        out->len += mdl->ByteCount;
    }
    return true;
}

static NTSTATUS refuse_sg(ULONG element, NTSTATUS status, const char *why)
{
    wf_refuse(EINVAL, WF_R_IBA_SG, "element %u: %s", element, why);
    return status;
}

static NTSTATUS range_of_sg(const SCATTER_GATHER_LIST *sg, struct range *out)
{
    ULONG n = sg->NumberOfElements;
    if (!n)
        return refuse_sg(0, STATUS_INVALID_PARAMETER, "the list is empty");
    out->start = (uint64_t)sg->Elements[0].Address.QuadPart;
    out->len = 0;
    for (ULONG i = 0; i < n; i++) {
        uint64_t at = (uint64_t)sg->Elements[i].Address.QuadPart, len = sg->Elements[i].Length;
        if (!len || at + len < at)
            return refuse_sg(i, STATUS_INVALID_PARAMETER, "empty, or wraps around");
        if (i && at % PAGE_SIZE)
            return refuse_sg(i, STATUS_INVALID_PARAMETER, "begins inside a page, not the first");
        if (i + 1 < n && (at + len) % PAGE_SIZE)
            return refuse_sg(i, STATUS_INVALID_PARAMETER, "ends inside a page, not the last");
        out->len += len;
    }
    return STATUS_SUCCESS;
}

// The elements as pieces, adjacent ones joined. NULL: out of memory.
static struct iovec *pieces_of_sg(const SCATTER_GATHER_LIST *sg, uint32_t *num)
{
    struct iovec *p = malloc(sg->NumberOfElements * sizeof(*p));
    uint32_t n = 0;
    for (ULONG i = 0; p && i < sg->NumberOfElements; i++) {
        char *at = (char *)(uintptr_t)sg->Elements[i].Address.QuadPart;
        if (n && (char *)p[n - 1].iov_base + p[n - 1].iov_len == at)
            p[n - 1].iov_len += sg->Elements[i].Length;
        else
            p[n++] = (struct iovec){at, sg->Elements[i].Length};
    }
    *num = n;
    return p;
}

// ---- registering --------------------------------------------------------------------------------

enum source { FROM_MDL, FROM_SG, FROM_ALL };

struct reg_op {
    struct wf_iba_op op;
    struct range range;
    uint64_t iova;
    int access;
    ULONG mask;
    MDL *mdl;
    const SCATTER_GATHER_LIST *sg;
    enum source source;
};

static void fill_public(struct wf_iba_mr *mr, struct wf_iba_pd *pd, const struct reg_op *a)
{
    UINT8 *start = (UINT8 *)(uintptr_t)a->iova, *end = start + a->range.len;
    mr->pub.pPd = &pd->pub;
    mr->pub.pLocalStart = mr->pub.pRemoteStart = start;
    mr->pub.pLocalEnd = mr->pub.pRemoteEnd = end;
    mr->pub.AccessMask = a->mask;
    mr->pub.LKey = wf_mr_lkey(mr->mr);
    mr->pub.RKey = wf_mr_rkey(mr->mr);
    if (a->source == FROM_MDL)
        mr->pub.pMdlList = a->mdl;
    else
        mr->pub.IoVa.QuadPart = 0;
    mr->obj.result = (ULONG_PTR)a->mdl;
}

static int register_memory(struct wf_pd *pd, const struct reg_op *a, struct wf_mr **out)
{
    uint32_t num = 0;
    struct iovec *pieces = a->sg ? pieces_of_sg(a->sg, &num) : NULL;
    if (a->sg && !pieces)
        return -ENOMEM;
    int rc = num > 1 ? wf_mr_reg_pieces(pd, pieces, num, a->iova, (unsigned)a->access, out)
                     : wf_mr_reg(pd, (void *)(uintptr_t)a->range.start, a->range.len, a->iova,
                                 (unsigned)a->access, out);
    free(pieces);
    return rc;
}

static NTSTATUS run_reg(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct reg_op *a = (struct reg_op *)op;
    struct wf_iba_pd *pd = CONTAINING_RECORD(op->target, struct wf_iba_pd, obj);
    struct wf_iba_mr *mr =
        (struct wf_iba_mr *)wf_iba_object_new(&mr_class, sizeof(*mr), pd->obj.ca);
    if (!mr)
        return STATUS_INSUFFICIENT_RESOURCES;
    mr->obj.nref = &mr->pub.nRef;
    NTSTATUS status = wf_iba_adopt(&mr->obj, 0, &pd->obj);
    if (NT_SUCCESS(status))
        status = wf_iba_status(register_memory(pd->pd, a, &mr->mr));
    if (!NT_SUCCESS(status)) {
        wf_iba_object_discard(&mr->obj);
        return status;
    }
    fill_public(mr, pd, a);
    *info = (ULONG_PTR)&mr->pub;
    return STATUS_SUCCESS;
}

static NTSTATUS reg(IB_PD *pub, ULONG mask, struct reg_op *a, PIRP irp)
{
    struct wf_iba_pd *pd = wf_iba_pd_of(pub);
    a->access = wf_iba_access(pd->obj.ca, mask);
    a->mask = mask;
    if (a->access < 0)
        return wf_iba_refuse(irp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_start(&a->op, sizeof(*a), run_reg, &pd->obj, NULL, irp);
}

NTSTATUS wf_iba_reg_mdl(IB_PD *const pPd, MDL *const pMdlList, const ULONG AccessMask,
                        IRP *const pIrp)
{
    struct reg_op op = {.source = FROM_MDL, .mdl = pMdlList};
    if (!wf_iba_pd_of(pPd) || !pMdlList || !range_of_mdls(pMdlList, &op.range))
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    op.iova = op.range.start;
    return reg(pPd, AccessMask, &op, pIrp);
}

NTSTATUS wf_iba_reg_sg(IB_PD *const pPd, SCATTER_GATHER_LIST *pScatterGather,
                       const ULONG AccessMask, IRP *const pIrp)
{
    struct reg_op op = {.source = FROM_SG, .sg = pScatterGather};
    if (!wf_iba_pd_of(pPd) || !pScatterGather)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    NTSTATUS status = range_of_sg(pScatterGather, &op.range);
    if (!NT_SUCCESS(status))
        return wf_iba_refuse(pIrp, status, __func__);
    return reg(pPd, AccessMask, &op, pIrp);
}

NTSTATUS wf_iba_get_dma_mr(IB_PD *const pPd, const ULONG AccessMask, IRP *const pIrp)
{
    struct reg_op op = {.source = FROM_ALL, .range = {0, USER_SPACE_END}};
    if (!wf_iba_pd_of(pPd))
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return reg(pPd, AccessMask, &op, pIrp);
}

NTSTATUS wf_iba_dereg_mr(IB_MR *const pMr, IRP *const pIrp)
{
    struct wf_iba_mr *mr = wf_iba_mr_of(pMr);
    return wf_iba_destroy(mr ? &mr->obj : NULL, NULL, pIrp);
}
