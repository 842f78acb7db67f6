// SPDX-License-Identifier: BSD-2-Clause
// Jobs as their launcher configures them. All of it is this process's view: a launcher that wants
// limits for a job sets them in the job's processes.
#include "ugni/job.h"
#include "base/gnijob.h"
#include "ugni/service.h"
#include "ugni/state.h"

#include <string.h>
#include <unistd.h>

#define NTT_ENTRIES 8192u
#define MAX_CQS     4096u
#define MAX_FMAS    1024u
#define MAX_RDMA    65536u
#define MAX_DLA     16384u
#define CE_CHANNELS 4u

struct job {
    bool known;
    uint64_t id;
    uint32_t cookie;
    gni_job_limits_t limits;
    bool suspended;
};

static struct job jobs[256]; // by tag
static uint8_t ntt_used[NTT_ENTRIES];
static uint32_t ntt_table[NTT_ENTRIES];
static uint8_t ntt_granularity = 0;
static gni_bi_desc_t bi = {.current_bw = GNI_BI_INJECT_BW_MAX,
                           .current_aot_bw = GNI_BI_INJECT_BW_MAX,
                           .current_norbs = GNI_BI_INJECT_BW_ORB_MAX,
                           .sys_def_bw = GNI_BI_INJECT_BW_MAX,
                           .sys_def_aot_bw = GNI_BI_INJECT_BW_MAX};

static bool root(void)
{
    return geteuid() == 0;
}

static uint32_t attached(uint8_t ptag)
{
    uint32_t n = 0;
    struct gni_cdm *c;
    DL_FOREACH(wf_gni.cdms, c)
    n += c->nic && c->ptag == ptag;
    return n;
}

static uint32_t regions(uint8_t ptag)
{
    uint32_t n = 0;
    struct gni_cdm *c;
    DL_FOREACH(wf_gni.cdms, c)
    if (c->nic && c->ptag == ptag)
        n += c->nic->regions;
    return n;
}

static uint32_t queues(uint8_t ptag)
{
    uint32_t n = 0;
    struct gni_cdm *c;
    struct gni_cq *q;
    DL_FOREACH(wf_gni.cdms, c)
    if (c->nic && c->ptag == ptag)
        DL_FOREACH(c->nic->cqs, q)
    n++;
    return n;
}

static bool below(int32_t limit, uint32_t used)
{
    return limit == GNI_JOB_INVALID_LIMIT || used < (uint32_t)limit;
}

bool wf_gni_job_may_attach(uint8_t ptag)
{
    return !jobs[ptag].known || below(jobs[ptag].limits.fma_limit, attached(ptag));
}

bool wf_gni_job_may_register(uint8_t ptag)
{
    return !jobs[ptag].known || below(jobs[ptag].limits.mdd_limit, regions(ptag));
}

bool wf_gni_job_suspended(uint8_t ptag)
{
    return jobs[ptag].suspended;
}

uint32_t wf_gni_job_vmdh_entries(void)
{
    uint32_t most = 0;
    struct gni_cdm *c;
    DL_FOREACH(wf_gni.cdms, c)
    if (c->nic && c->nic->mdd_entries > most)
        most = c->nic->mdd_entries;
    return most;
}

// Tags of Gemini jobs were handed out by the launcher; here a cookie decides.
uint8_t wf_gni_ptag_of(uint32_t cookie)
{
    for (uint32_t t = GNI_PTAG_USER_START; t <= GNI_PTAG_USER_END; t++)
        if (jobs[t].known && jobs[t].cookie == cookie)
            return (uint8_t)t;
    return wf_gni_job_ptag(cookie);
}

// ---- configuration ------------------------------------------------------------------------------

static void take_limit(int32_t *to, int32_t from)
{
    if (from != GNI_JOB_INVALID_LIMIT)
        *to = from;
}

static gni_return_t configure_job(uint64_t job_id, uint8_t ptag, uint32_t cookie,
                                  const gni_job_limits_t *l)
{
    struct job *j = &jobs[ptag];
    if (j->known && (j->id != job_id || j->cookie != cookie))
        return wf_gni_refuse(GNI_RC_INVALID_STATE, "ConfigureJob: tag %u belongs to another job",
                             ptag);
    if (!j->known) {
        *j = (struct job){.known = true, .id = job_id, .cookie = cookie};
        memset(&j->limits, 0xff, sizeof(j->limits));
    }
    if (!l)
        return GNI_RC_SUCCESS;
    if (l->ntt_base != GNI_JOB_INVALID_LIMIT && l->ntt_size > 0) {
        if (l->ntt_base < 0 || (uint32_t)l->ntt_base >= NTT_ENTRIES || !ntt_used[l->ntt_base])
            return wf_gni_refuse(GNI_RC_NO_MATCH, "ConfigureJob: no translation entries at %d",
                                 l->ntt_base);
        if (j->limits.ntt_size > 0 && j->limits.ntt_size != l->ntt_size)
            return wf_gni_refuse(GNI_RC_ILLEGAL_OP, "ConfigureJob: translation entries resized");
    }
    take_limit(&j->limits.mdd_limit, l->mdd_limit);
    take_limit(&j->limits.a.mrt_limit, l->a.mrt_limit);
    take_limit(&j->limits.b.dla_limit, l->b.dla_limit);
    take_limit(&j->limits.fma_limit, l->fma_limit);
    take_limit(&j->limits.bte_limit, l->bte_limit);
    take_limit(&j->limits.cq_limit, l->cq_limit);
    take_limit(&j->limits.ntt_ctrl, l->ntt_ctrl);
    take_limit(&j->limits.ntt_base, l->ntt_base);
    take_limit(&j->limits.ntt_size, l->ntt_size);
    return GNI_RC_SUCCESS;
}

static gni_return_t clear_ntt(const gni_ntt_descriptor_t *d, uint32_t base)
{
    uint32_t first = base, n = d->group_size;
    if (base == UINT32_MAX && n == UINT32_MAX) {
        first = 0;
        n = NTT_ENTRIES;
    }
    if (first >= NTT_ENTRIES || n > NTT_ENTRIES - first)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "ConfigureNTT: entries %u + %u of %u", first, n,
                             NTT_ENTRIES);
    memset(ntt_used + first, 0, n);
    memset(ntt_table + first, 0, n * sizeof(*ntt_table));
    return GNI_RC_SUCCESS;
}

// Room for a group: a run of free entries.
static gni_return_t set_ntt(const gni_ntt_descriptor_t *d, uint32_t *base)
{
    uint32_t run = 0;
    if (!d->group_size || d->granularity > 31)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "ConfigureNTT: group size or granularity");
    for (uint32_t i = 0; i < NTT_ENTRIES; i++) {
        run = ntt_used[i] ? 0 : run + 1;
        if (run < d->group_size)
            continue;
        *base = i + 1 - run;
        memset(ntt_used + *base, 1, run);
        memcpy(ntt_table + *base, d->u.table, run * sizeof(*ntt_table));
        ntt_granularity = d->granularity;
        return GNI_RC_SUCCESS;
    }
    return wf_gni_refuse(GNI_RC_ERROR_RESOURCE, "ConfigureNTT: no %u entries in a row are free",
                         d->group_size);
}

static gni_return_t check_launcher(int device_id, bool args)
{
    if (device_id != (int)WF_GNI_DEVICE_ID)
        return wf_gni_refuse(GNI_RC_NO_MATCH, "configuration: device %d", device_id);
    if (!args)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "configuration: an argument is null or 0");
    if (!root())
        return wf_gni_refuse(GNI_RC_PERMISSION_ERROR, "configuration: not root");
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_ConfigureNTT(int device_id, gni_ntt_descriptor_t *ntt_desc, uint32_t *ntt_base)
{
    gni_return_t rc = check_launcher(device_id, ntt_desc && ntt_base);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    wf_gni_lock();
    rc = ntt_desc->u.table ? set_ntt(ntt_desc, ntt_base) : clear_ntt(ntt_desc, *ntt_base);
    wf_gni_unlock();
    return rc;
}

// A process may configure the job it is to be part of; the tag of another user's job is not there.
gni_return_t GNI_ConfigureJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                              gni_job_limits_t *limits)
{
    gni_return_t rc = check_launcher((int)device_id, ptag != 0);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    wf_gni_lock();
    rc = configure_job(job_id, ptag, cookie, limits);
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_ConfigureNTTandJob(int device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                                    gni_job_limits_t *limits, gni_ntt_descriptor_t *ntt_desc,
                                    uint32_t *ntt_base)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    if (ntt_desc && !ntt_desc->u.table)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "ConfigureNTTandJob does not clear tables");
    if (ntt_desc)
        rc = GNI_ConfigureNTT(device_id, ntt_desc, ntt_base);
    return rc == GNI_RC_SUCCESS
               ? GNI_ConfigureJob((uint32_t)device_id, job_id, ptag, cookie, limits)
               : rc;
}

gni_return_t GNI_GetNttGran(uint32_t device_id, uint32_t *ntt_gran)
{
    if (device_id != WF_GNI_DEVICE_ID || !ntt_gran)
        return GNI_RC_INVALID_PARAM;
    *ntt_gran = ntt_granularity;
    return GNI_RC_SUCCESS;
}

// ---- suspension ---------------------------------------------------------------------------------

static gni_return_t check_job(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie)
{
    const struct job *j = &jobs[ptag];
    if (device_id != WF_GNI_DEVICE_ID || !ptag ||
        (j->known && (j->id != job_id || j->cookie != cookie)))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "job: device, tag, id or cookie");
    if (!root())
        return wf_gni_refuse(GNI_RC_PERMISSION_ERROR, "job: not root");
    return GNI_RC_SUCCESS;
}

static void call_quiesce(void *fn, uint64_t nic, uint64_t msecs)
{
    ((void (*)(gni_nic_handle_t, uint64_t))fn)((gni_nic_handle_t)(uintptr_t)nic, msecs);
}

static void tell_quiesce(uint8_t ptag, uint32_t msecs)
{
    struct gni_cdm *c;
    DL_FOREACH(wf_gni.cdms, c)
    if (c->nic && c->ptag == ptag && c->nic->quiesce)
        wf_gni_service_call(
            (struct wf_gni_call){call_quiesce, (void *)c->nic->quiesce, (uintptr_t)c->nic, msecs});
}

static bool traffic(uint8_t ptag)
{
    struct gni_cdm *c;
    struct gni_ep *ep;
    DL_FOREACH(wf_gni.cdms, c)
    if (c->nic && c->ptag == ptag)
        DL_FOREACH(c->nic->eps, ep)
    if (ep->reqs)
        return true;
    return false;
}

gni_return_t GNI_SuspendJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                            uint32_t timeout)
{
    gni_return_t rc = check_job(device_id, job_id, ptag, cookie);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    uint64_t deadline = wf_gni_deadline(timeout, UINT32_MAX);
    wf_gni_lock();
    if (jobs[ptag].suspended) {
        rc = wf_gni_refuse(GNI_RC_INVALID_STATE, "SuspendJob: it is suspended");
    } else {
        jobs[ptag].suspended = true; // new posts are refused from here
        tell_quiesce(ptag, timeout);
        wf_gni_progress();
        while (traffic(ptag) && wf_gni_deadline(0, UINT64_MAX) < deadline) {
            wf_gni_unlock();
            usleep(1000);
            wf_gni_lock();
            wf_gni_progress();
        }
        if (traffic(ptag)) {
            jobs[ptag].suspended = false;
            rc = GNI_RC_TIMEOUT;
        }
    }
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_ResumeJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie)
{
    gni_return_t rc = check_job(device_id, job_id, ptag, cookie);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    wf_gni_lock();
    if (!jobs[ptag].suspended)
        rc = wf_gni_refuse(GNI_RC_INVALID_STATE, "ResumeJob: it is not suspended");
    jobs[ptag].suspended = false;
    wf_gni_unlock();
    return rc;
}

gni_return_t gni_set_quiesce_callback(gni_nic_handle_t nic_hndl,
                                      void (*qsce_func)(gni_nic_handle_t, uint64_t))
{
    gni_return_t rc = GNI_RC_SUCCESS;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    if (!nic)
        rc = GNI_RC_INVALID_PARAM;
    else if (qsce_func && nic->quiesce)
        rc = wf_gni_fail(nic, GNI_RC_INVALID_STATE, "gni_set_quiesce_callback", "there is one");
    else
        nic->quiesce = qsce_func;
    wf_gni_unlock();
    return rc;
}

uint32_t gni_get_quiesce_status(gni_nic_handle_t nic_hndl)
{
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    uint32_t on = nic && jobs[nic->cdm->ptag].suspended;
    wf_gni_unlock();
    return on;
}

// ---- resources ----------------------------------------------------------------------------------

// What the device has of a resource, and what all jobs of this process use. False: it has none.
static bool device_resource(gni_dev_res_t res, uint64_t *total, uint64_t *used)
{
    uint32_t cqs = 0, fmas = 0;
    for (uint32_t t = 0; t < 256; t++) {
        cqs += queues((uint8_t)t);
        fmas += attached((uint8_t)t);
    }
    *used = 0;
    switch (res) {
    case GNI_DEV_RES_MDD:
    case GNI_DEV_RES_TCR:
    case GNI_DEV_RES_DVA:
        *total = WF_GNI_REGIONS - 1;
        *used = wf_gni.live_regions;
        return true;
    case GNI_DEV_RES_CQ:
        *total = MAX_CQS;
        *used = cqs;
        return true;
    case GNI_DEV_RES_FMA:
        *total = MAX_FMAS;
        *used = fmas;
        return true;
    case GNI_DEV_RES_CE:
        *total = CE_CHANNELS;
        return true;
    case GNI_DEV_RES_DLA:
        *total = MAX_DLA;
        return true;
    default:
        return false; // MRT: Gemini's translation table, not needed here
    }
}

gni_return_t GNI_GetDevResInfo(uint32_t device_id, gni_dev_res_t res_type,
                               gni_dev_res_desc_t *res_desc)
{
    uint64_t total = 0, used = 0;
    if (device_id != WF_GNI_DEVICE_ID || !gni_dev_res_valid(res_type) || !res_desc)
        return GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    bool has = device_resource(res_type, &total, &used);
    wf_gni_unlock();
    if (!has)
        return wf_gni_refuse(GNI_RC_ERROR_RESOURCE, "GetDevResInfo: the device has no %s",
                             gni_dev_res_to_str(res_type));
    *res_desc = (gni_dev_res_desc_t){
        .available = total > used ? total - used : 0, .held = 0, .reserved = 0, .total = total};
    return GNI_RC_SUCCESS;
}

static uint64_t limit_or(int32_t set, uint64_t otherwise)
{
    return set == GNI_JOB_INVALID_LIMIT ? otherwise : (uint64_t)set;
}

static bool job_resource(uint8_t ptag, gni_job_res_t res, gni_job_res_desc_t *out)
{
    static const gni_job_limits_t unset = {-1, {-1}, {-1}, -1, -1, -1, -1, -1, -1};
    const gni_job_limits_t *l = jobs[ptag].known ? &jobs[ptag].limits : &unset;
    *out = (gni_job_res_desc_t){0, 0};
    switch (res) {
    case GNI_JOB_RES_MDD:
    case GNI_JOB_RES_NONVMDH:
        *out = (gni_job_res_desc_t){regions(ptag), limit_or(l->mdd_limit, WF_GNI_REGIONS - 1)};
        return true;
    case GNI_JOB_RES_CQ:
        *out = (gni_job_res_desc_t){queues(ptag), limit_or(l->cq_limit, MAX_CQS)};
        return true;
    case GNI_JOB_RES_FMA:
    case GNI_JOB_RES_SFMA:
        *out = (gni_job_res_desc_t){attached(ptag), limit_or(l->fma_limit, MAX_FMAS)};
        return true;
    case GNI_JOB_RES_RDMA:
        out->limit = limit_or(l->bte_limit, MAX_RDMA);
        return true;
    case GNI_JOB_RES_CE:
        out->limit = CE_CHANNELS;
        return true;
    case GNI_JOB_RES_DLA:
        out->limit = limit_or(l->b.dla_limit, MAX_DLA);
        return true;
    default:
        return false; // translation tables of other devices
    }
}

gni_return_t GNI_GetJobResInfo(uint32_t device_id, uint8_t ptag, gni_job_res_t res_type,
                               gni_job_res_desc_t *res_desc)
{
    gni_job_res_desc_t d;
    if (device_id != WF_GNI_DEVICE_ID || !ptag || !gni_job_res_valid(res_type) || !res_desc)
        return GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    bool has = job_resource(ptag, res_type, &d);
    wf_gni_unlock();
    if (!has)
        return wf_gni_refuse(GNI_RC_ERROR_RESOURCE, "GetJobResInfo: the device has no %s",
                             gni_job_res_to_str(res_type));
    *res_desc = d;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_SetJobResInfo(uint32_t device_id, uint8_t ptag, gni_job_res_t res_type,
                               uint64_t res_value)
{
    gni_job_limits_t l;
    gni_job_res_desc_t d;
    if (device_id != WF_GNI_DEVICE_ID || !ptag || !gni_job_res_valid(res_type) ||
        res_value > INT32_MAX)
        return GNI_RC_INVALID_PARAM;
    if (!root())
        return GNI_RC_PERMISSION_ERROR;
    memset(&l, 0xff, sizeof(l));
    wf_gni_lock();
    gni_return_t rc = job_resource(ptag, res_type, &d) ? GNI_RC_SUCCESS : GNI_RC_ERROR_RESOURCE;
    if (res_type == GNI_JOB_RES_MDD)
        l.mdd_limit = (int32_t)res_value;
    else if (res_type == GNI_JOB_RES_CQ)
        l.cq_limit = (int32_t)res_value;
    else if (res_type == GNI_JOB_RES_FMA)
        l.fma_limit = (int32_t)res_value;
    else if (res_type == GNI_JOB_RES_RDMA)
        l.bte_limit = (int32_t)res_value;
    else if (res_type == GNI_JOB_RES_DLA)
        l.b.dla_limit = (int32_t)res_value;
    else if (rc == GNI_RC_SUCCESS)
        rc = wf_gni_refuse(GNI_RC_ILLEGAL_OP, "SetJobResInfo: %s cannot be set",
                           gni_job_res_to_str(res_type));
    if (rc == GNI_RC_SUCCESS)
        rc = configure_job(jobs[ptag].id, ptag, jobs[ptag].cookie, &l);
    wf_gni_unlock();
    return rc;
}

// ---- balanced injection: kept and read back -----------------------------------------------------

gni_return_t GNI_SetBIConfig(uint32_t device_id, uint16_t bw, uint16_t aot_bw, uint16_t modes)
{
    bool orbs = modes & GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES;
    uint16_t max = orbs ? GNI_BI_INJECT_BW_ORB_MAX : GNI_BI_INJECT_BW_MAX;
    if (device_id != WF_GNI_DEVICE_ID || modes & ~0xf || bw > max || aot_bw > max)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "SetBIConfig: bandwidth %u, %u or modes 0x%x",
                             bw, aot_bw, modes);
    if (!root())
        return GNI_RC_PERMISSION_ERROR;
    wf_gni_lock();
    bool defaults = modes & GNI_BI_FLAG_USE_DEFAULT_SETTINGS;
    bi.current_bw = defaults ? bi.sys_def_bw : bw;
    bi.current_aot_bw = defaults ? bi.sys_def_aot_bw : aot_bw;
    bi.current_norbs = orbs ? bw : GNI_BI_INJECT_BW_ORB_MAX;
    bi.flags = modes;
    bi.cle_seqnum++;
    bi.hss_seqnum = bi.cle_seqnum;
    wf_gni_unlock();
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetBIConfig(uint32_t device_id, gni_bi_desc_t *desc)
{
    if (device_id != WF_GNI_DEVICE_ID || !desc)
        return GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    *desc = bi;
    wf_gni_unlock();
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_BISyncWait(uint32_t device_id, uint32_t timeout)
{
    (void)timeout; // a new configuration counts at once
    return device_id == WF_GNI_DEVICE_ID ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}
