// SPDX-License-Identifier: BSD-2-Clause
// Communication domains and their attachment to the device.
#include "ugni/ce.h"
#include "ugni/dgram.h"
#include "ugni/job.h"
#include "ugni/msgq.h"
#include "ugni/state.h"

static gni_return_t create(uint32_t inst_id, uint8_t ptag, uint32_t cookie, uint32_t modes,
                           bool kernel, gni_cdm_handle_t *out)
{
    uint32_t both_fma = GNI_CDM_MODE_FMA_DEDICATED | GNI_CDM_MODE_FMA_SHARED;
    uint32_t both_mdd = GNI_CDM_MODE_MDD_DEDICATED | GNI_CDM_MODE_MDD_SHARED;
    if (!out || !ptag || (modes & both_fma) == both_fma || (modes & both_mdd) == both_mdd)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "CdmCreate: ptag %u, modes 0x%x", ptag, modes);
    struct gni_cdm *c = wf_gni_pool_get(&wf_gni.cdm_pool);
    if (!c)
        return GNI_RC_ERROR_NOMEM;
    c->inst_id = inst_id;
    c->ptag = ptag == GNI_FIND_ALLOC_PTAG ? wf_gni_ptag_of(cookie) : ptag;
    c->cookie = cookie;
    c->modes = modes;
    c->kernel = kernel;
    DL_APPEND(wf_gni.cdms, c);
    *out = c;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_CdmCreate(uint32_t inst_id, uint8_t ptag, uint32_t cookie, uint32_t modes,
                           gni_cdm_handle_t *cdm_hndl)
{
    wf_gni_lock();
    gni_return_t rc = create(inst_id, ptag, cookie, modes, false, cdm_hndl);
    wf_gni_unlock();
    return rc;
}

gni_return_t gni_cdm_create(uint32_t inst_id, uint8_t ptag, uint32_t cookie, uint32_t modes,
                            gni_cdm_handle_t *cdm_hndl)
{
    wf_gni_lock();
    gni_return_t rc = create(inst_id, ptag, cookie, modes, true, cdm_hndl);
    wf_gni_unlock();
    return rc;
}

// Whoever uses it first goes first.
void wf_gni_nic_release(struct gni_nic *nic)
{
    wf_gni_dgram_evict(nic);
    while (nic->msgqs)
        wf_gni_msgq_release(nic->msgqs);
    while (nic->ces)
        wf_gni_ce_release(nic->ces);
    while (nic->eps)
        wf_gni_ep_release(nic->eps);
    wf_gni_dgram_nic_release(nic);
    for (uint32_t i = 1; i < WF_GNI_REGIONS; i++)
        if ((wf_gni.region[i].live || wf_gni.region[i].held) && wf_gni.region[i].nic == nic)
            wf_gni_region_release(i);
    while (nic->cqs)
        wf_gni_cq_release(nic->cqs);
    while (nic->chans)
        wf_gni_chan_release(nic->chans);
    while (nic->errs)
        wf_gni_err_release(nic->errs);
    nic->cdm->nic = NULL;
    wf_gni_pool_put(&wf_gni.nic_pool, nic);
}

gni_return_t GNI_CdmDestroy(gni_cdm_handle_t cdm_hndl)
{
    wf_gni_lock();
    struct gni_cdm *c = wf_gni_cdm(cdm_hndl);
    if (c) {
        if (c->nic)
            wf_gni_nic_release(c->nic);
        DL_DELETE(wf_gni.cdms, c);
        wf_gni_pool_put(&wf_gni.cdm_pool, c);
    }
    wf_gni_unlock();
    return c ? GNI_RC_SUCCESS
             : wf_gni_refuse(GNI_RC_INVALID_PARAM, "CdmDestroy: %p", (void *)cdm_hndl);
}

gni_return_t GNI_CdmGetNicAddress(uint32_t device_id, uint32_t *address, uint32_t *cpu_id)
{
    if (device_id != WF_GNI_DEVICE_ID || !address || !cpu_id)
        return wf_gni_refuse(GNI_RC_NO_MATCH, "CdmGetNicAddress: device %u", device_id);
    wf_gni_lock();
    bool ok = wf_gni_join();
    *address = wf_gni.pe;
    *cpu_id = 0;
    wf_gni_unlock();
    return ok ? GNI_RC_SUCCESS : GNI_RC_NO_MATCH;
}

static bool taken(const struct gni_cdm *mine)
{
    struct gni_cdm *c;
    DL_FOREACH(wf_gni.cdms, c)
    if (c != mine && c->nic && c->inst_id == mine->inst_id && c->ptag == mine->ptag &&
        c->cookie == mine->cookie)
        return true;
    return false;
}

static gni_return_t attach(struct gni_cdm *c, uint32_t device_id, uint32_t *local_addr,
                           gni_nic_handle_t *out)
{
    if (!c || !local_addr || !out)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "CdmAttach: no domain or no place to answer");
    if (device_id != WF_GNI_DEVICE_ID && device_id != UINT32_MAX)
        return wf_gni_refuse(GNI_RC_NO_MATCH, "CdmAttach: device %u", device_id);
    if (c->nic)
        return wf_gni_refuse(GNI_RC_INVALID_STATE, "CdmAttach: the domain is attached already");
    if (taken(c))
        return wf_gni_refuse(GNI_RC_ERROR_RESOURCE,
                             "CdmAttach: instance %u of this tag and cookie exists", c->inst_id);
    if (!wf_gni_job_may_attach(c->ptag) || !wf_gni_join())
        return wf_gni_refuse(GNI_RC_ERROR_RESOURCE, "CdmAttach: limit of the job or the host");
    struct gni_nic *nic = wf_gni_pool_get(&wf_gni.nic_pool);
    if (!nic)
        return GNI_RC_ERROR_NOMEM;
    nic->cdm = c;
    nic->max_retrans = FMA_SMSG_MAX_RETRANS_DEFAULT;
    c->nic = nic;
    *local_addr = wf_gni.pe;
    *out = nic;
    wf_gni_dgram_nic_attached(nic);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_CdmAttach(gni_cdm_handle_t cdm_hndl, uint32_t device_id, uint32_t *local_addr,
                           gni_nic_handle_t *nic_hndl)
{
    wf_gni_lock();
    gni_return_t rc = attach(wf_gni_cdm(cdm_hndl), device_id, local_addr, nic_hndl);
    wf_gni_unlock();
    return rc;
}

static gni_return_t checkpoint(gni_cdm_handle_t h, bool on)
{
    wf_gni_lock();
    struct gni_cdm *c = wf_gni_cdm(h);
    if (c)
        c->checkpointed = on;
    wf_gni_unlock();
    return c ? GNI_RC_SUCCESS : wf_gni_refuse(GNI_RC_INVALID_PARAM, "checkpoint: %p", (void *)h);
}

gni_return_t GNI_CdmCheckpoint(gni_cdm_handle_t cdm_handle)
{
    return checkpoint(cdm_handle, true);
}

gni_return_t GNI_CdmResume(gni_cdm_handle_t cdm_handle)
{
    return checkpoint(cdm_handle, false);
}
