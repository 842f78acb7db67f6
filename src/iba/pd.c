// SPDX-License-Identifier: BSD-2-Clause
// Protection domains and address handles.
#include "iba/iba.h"

#include <errno.h>

// ---- protection domains -------------------------------------------------------------------------

static int destroy_pd(struct wf_iba_object *o)
{
    return wf_pd_destroy(CONTAINING_RECORD(o, struct wf_iba_pd, obj)->pd);
}

static const struct wf_iba_class pd_class = {WF_IBA_PD, destroy_pd, NULL};

struct wf_iba_pd *wf_iba_pd_of(const IB_PD *pub)
{
    return (struct wf_iba_pd *)wf_iba_object_of(pub, WF_IBA_PD);
}

static NTSTATUS run_create(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct wf_iba_ca *ca = CONTAINING_RECORD(op->target, struct wf_iba_ca, obj);
    struct wf_iba_pd *pd = (struct wf_iba_pd *)wf_iba_object_new(&pd_class, sizeof(*pd), ca);
    if (!pd)
        return STATUS_INSUFFICIENT_RESOURCES;
    pd->obj.nref = &pd->pub.nRef;
    pd->pub.pCa = &ca->pub;
    NTSTATUS status = wf_iba_adopt(&pd->obj, 0, &ca->obj);
    if (NT_SUCCESS(status))
        status = wf_iba_status(wf_pd_create(ca->ctx, &pd->pd));
    if (!NT_SUCCESS(status)) {
        wf_iba_object_discard(&pd->obj);
        return status;
    }
    *info = (ULONG_PTR)&pd->pub;
    return STATUS_SUCCESS;
}

NTSTATUS wf_iba_create_pd(IB_CA *const pCa, CI_UDATA *const pUserData, IRP *const pIrp)
{
    struct wf_iba_ca *ca = wf_iba_ca_of(pCa);
    struct wf_iba_op op = {0};
    if (!ca)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_start(&op, sizeof(op), run_create, &ca->obj, pUserData, pIrp);
}

NTSTATUS wf_iba_destroy_pd(IB_PD *const pPd, CI_UDATA *const pUserData, IRP *const pIrp)
{
    struct wf_iba_pd *pd = wf_iba_pd_of(pPd);
    return wf_iba_destroy(pd ? &pd->obj : NULL, pUserData, pIrp);
}

// ---- address handles ----------------------------------------------------------------------------

// DestroyAh is synchronous, so an AH never goes through the destroy machinery.
static const struct wf_iba_class ah_class = {WF_IBA_AH, NULL, NULL};

struct wf_iba_ah *wf_iba_ah_of(const IB_AH *pub)
{
    return (struct wf_iba_ah *)wf_iba_object_of(pub, WF_IBA_AH);
}

static NTSTATUS resolve(struct wf_iba_pd *pd, const IB_AH_ATTR *in, struct wf_ah **out)
{
    struct ibv_ah_attr attr;
    NTSTATUS status = wf_iba_ah_attr(in, &attr);
    return NT_SUCCESS(status) ? wf_iba_status(wf_ah_create(pd->pd, &attr, out)) : status;
}

NTSTATUS wf_iba_create_ah(IB_PD *const pPd, IB_AH_ATTR *const pAhAttr, IB_AH **const ppAh)
{
    struct wf_iba_pd *pd = wf_iba_pd_of(pPd);
    if (!pd || !pAhAttr || !ppAh)
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    struct wf_iba_ah *ah =
        (struct wf_iba_ah *)wf_iba_object_new(&ah_class, sizeof(*ah), pd->obj.ca);
    if (!ah)
        return STATUS_INSUFFICIENT_RESOURCES;
    ah->pub.pPd = &pd->pub;
    ah->attr = *pAhAttr;
    NTSTATUS status = wf_iba_adopt(&ah->obj, 0, &pd->obj);
    if (NT_SUCCESS(status))
        status = resolve(pd, pAhAttr, &ah->ah);
    if (!NT_SUCCESS(status)) {
        wf_iba_object_discard(&ah->obj);
        return status;
    }
    *ppAh = &ah->pub;
    return STATUS_SUCCESS;
}

NTSTATUS wf_iba_destroy_ah(IB_AH *const pAh)
{
    struct wf_iba_ah *ah = wf_iba_ah_of(pAh);
    if (!ah)
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    wf_ah_destroy(ah->ah);
    wf_iba_object_discard(&ah->obj);
    return STATUS_SUCCESS;
}

NTSTATUS wf_iba_modify_ah(IB_AH *const pAh, IB_AH_ATTR *const pModify)
{
    struct wf_iba_ah *ah = wf_iba_ah_of(pAh);
    struct wf_ah *fresh, *old;
    if (!ah || !pModify)
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    NTSTATUS status = wf_iba_alive(&ah->obj);
    if (NT_SUCCESS(status))
        status = resolve(wf_iba_pd_of(ah->pub.pPd), pModify, &fresh);
    if (!NT_SUCCESS(status))
        return status;
    pthread_rwlock_wrlock(&wf_iba_device.ah_lock);
    old = ah->ah;
    ah->ah = fresh;
    ah->attr = *pModify;
    pthread_rwlock_unlock(&wf_iba_device.ah_lock);
    wf_ah_destroy(old);
    return STATUS_SUCCESS;
}

NTSTATUS wf_iba_query_ah(IB_AH *const pAh, IB_AH_ATTR *const pAttr)
{
    struct wf_iba_ah *ah = wf_iba_ah_of(pAh);
    if (!ah || !pAttr)
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    NTSTATUS status = wf_iba_alive(&ah->obj);
    if (!NT_SUCCESS(status))
        return status;
    pthread_rwlock_rdlock(&wf_iba_device.ah_lock);
    *pAttr = ah->attr;
    pthread_rwlock_unlock(&wf_iba_device.ah_lock);
    return STATUS_SUCCESS;
}
