// SPDX-License-Identifier: BSD-2-Clause
// Every function with every bad argument: the code that the documentation names, and nothing else
// happens. Handles are null, made up, of freed objects, and of other kinds.
#include "ugni/fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WANT(code, call) fixture_expect(GNI_RC_##code, call, #call, __LINE__)
#define BAD(call)        WANT(INVALID_PARAM, call)

static gni_cq_entry_t entry;
static gni_post_state_t post_state;
static uint32_t u1, u2, which;
static uint64_t u64, u64b;
static void *header;
static uint8_t tag = GNI_SMSG_ANY_TAG;
static char buffer[256];
static gni_mem_handle_t mem;

static void bad_cdm(gni_cdm_handle_t c)
{
    gni_nic_handle_t nic;
    BAD(GNI_CdmDestroy(c));
    BAD(GNI_CdmAttach(c, 0, &u1, &nic));
    BAD(GNI_CdmCheckpoint(c));
    BAD(GNI_CdmResume(c));
    BAD(gni_cdm_destroy(c));
    BAD(gni_cdm_attach(c, 0, &u1, &nic));
}

static void bad_nic(struct fixture *f, gni_nic_handle_t n)
{
    gni_ep_handle_t ep;
    gni_cq_handle_t cq;
    gni_ce_handle_t ce;
    gni_err_handle_t err;
    gni_comp_chan_handle_t chan;
    gni_errno_t e;
    gni_mem_segment_t seg = {(uintptr_t)f->memory, 4096};
    uint64_t at = (uintptr_t)f->memory;
    BAD(GNI_EpCreate(n, f->source, &ep));
    BAD(GNI_PostDataProbe(n, &u1, &u2));
    BAD(GNI_PostDataProbeById(n, &u64));
    BAD(GNI_PostdataProbeWaitById(n, 1, &u64));
    BAD(GNI_MemRegister(n, at, 8, NULL, 0, UINT32_MAX, &mem));
    BAD(GNI_MemRegisterSegments(n, &seg, 1, NULL, 0, UINT32_MAX, &mem));
    BAD(GNI_SetMddResources(n, 8));
    BAD(GNI_MemDeregister(n, &f->handle));
    BAD(GNI_MemQueryHndls(n, -1, &mem, &u64, &u64b));
    BAD(GNI_CqCreate(n, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq));
    BAD(GNI_SmsgSetDeliveryMode(n, 0));
    BAD(GNI_SmsgSetMaxRetrans(n, 1));
    BAD(GNI_CeCreate(n, &ce));
    BAD(GNI_GetNicStat(n, GNI_STAT_SMSG_REQ_STALL, &u1));
    BAD(GNI_ResetNicStat(n, GNI_STAT_SMSG_REQ_STALL));
    BAD(GNI_CompChanCreate(n, &chan));
    BAD(gni_ep_create(n, f->source, &ep));
    BAD(gni_postdata_probe(n, &u1, &u2));
    BAD(gni_postdata_probe_by_id(n, &u64));
    BAD(gni_postdata_probe_wait_by_id(n, 1, &u64));
    BAD(gni_mem_register(n, at, 8, NULL, 0, &mem));
    BAD(gni_mem_register_segments(n, &seg, 1, NULL, 0, &mem));
    BAD(gni_mem_deregister(n, &f->handle, 0));
    WANT(NO_MATCH, gni_mem_mdd_release(n, &f->handle));
    BAD(gni_cq_create(n, 8, 0, NULL, 0, &cq));
    BAD(gni_smsg_set_delivery_mode(n, 0));
    BAD(gni_smsg_set_max_retrans(n, 1));
    BAD(gni_subscribe_errors(n, 0xff, 8, NULL, NULL, &err));
    BAD(gni_set_quiesce_callback(n, NULL));
    BAD(gni_get_errno(n, &e));
    assert_int_equal(gni_get_quiesce_status(n), 0);
    if (n || geteuid() != 0)
        BAD(GNI_SubscribeErrors(n, 0, 0xff, 0, &err));
}

static void bad_ep(struct fixture *f, gni_ep_handle_t e)
{
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_RDMA_PUT, 0, 4096, 8);
    gni_smsg_attr_t a = {.msg_type = GNI_SMSG_TYPE_MBOX,
                         .msg_buffer = f->memory,
                         .mem_hndl = f->handle,
                         .mbox_maxcredit = 4,
                         .msg_maxsize = 64};
    BAD(GNI_EpSetEventData(e, 1, 2));
    BAD(GNI_EpBind(e, f->pe, 1));
    BAD(GNI_EpUnbind(e));
    BAD(GNI_EpIdle(e));
    BAD(GNI_EpDestroy(e));
    BAD(GNI_EpPostData(e, buffer, 8, buffer, 8));
    BAD(GNI_EpPostDataWId(e, buffer, 8, buffer, 8, 1));
    BAD(GNI_EpPostDataTest(e, &post_state, &u1, &u2));
    BAD(GNI_EpPostDataTestById(e, 1, &post_state, &u1, &u2));
    BAD(GNI_EpPostDataWait(e, 1, &post_state, &u1, &u2));
    BAD(GNI_EpPostDataWaitById(e, 1, 1, &post_state, &u1, &u2));
    BAD(GNI_EpPostDataCancel(e));
    BAD(GNI_EpPostDataCancelById(e, 1));
    BAD(GNI_PostRdma(e, &d));
    d.type = GNI_POST_FMA_PUT;
    BAD(GNI_PostFma(e, &d));
    BAD(GNI_CtPostFma(e, &d));
    d.type = GNI_POST_CQWRITE;
    BAD(GNI_PostCqWrite(e, &d));
    BAD(GNI_CtPostCqWrite(e, &d));
    BAD(GNI_SmsgInit(e, &a, &a));
    BAD(GNI_SmsgSend(e, buffer, 1, NULL, 0, 0));
    BAD(GNI_SmsgSendWTag(e, buffer, 1, NULL, 0, 0, 1));
    BAD(GNI_SmsgGetNext(e, &header));
    BAD(GNI_SmsgGetNextWTag(e, &header, &tag));
    BAD(GNI_SmsgRelease(e));
    BAD(GNI_EpSetCeAttr(e, 1, 0, GNI_CE_CHILD_PE));
    BAD(gni_ep_set_eventdata(e, 1, 2));
    BAD(gni_ep_bind(e, f->pe, 1));
    BAD(gni_ep_unbind(e));
    BAD(gni_ep_destroy(e));
    BAD(gni_ep_postdata(e, buffer, 8, buffer, 8));
    BAD(gni_ep_postdata_w_id(e, buffer, 8, buffer, 8, 1));
    BAD(gni_ep_postdata_test(e, &post_state, &u1, &u2));
    BAD(gni_ep_postdata_test_by_id(e, 1, &post_state, &u1, &u2));
    BAD(gni_ep_postdata_wait(e, 1, &post_state, &u1, &u2));
    BAD(gni_ep_postdata_cancel(e));
    BAD(gni_ep_postdata_cancel_by_id(e, 1));
    d.type = GNI_POST_RDMA_PUT;
    BAD(gni_post_rdma(e, &d));
    d.type = GNI_POST_FMA_PUT;
    BAD(gni_post_fma(e, &d));
    BAD(gni_smsg_init(e, &a, &a));
    BAD(gni_smsg_send(e, buffer, 1, NULL, 0, 0));
    BAD(gni_smsg_getnext(e, &header));
    BAD(gni_smsg_release(e));
}

static void bad_cq(struct fixture *f, gni_cq_handle_t q)
{
    gni_post_descriptor_t *d;
    gni_ep_handle_t ep;
    gni_cq_handle_t two[2] = {f->source, q};
    BAD(GNI_CqDestroy(q));
    BAD(GNI_GetCompleted(q, 0, &d));
    BAD(GNI_CqGetEvent(q, &entry));
    BAD(GNI_CqWaitEvent(q, 1, &entry));
    BAD(GNI_CqVectorWaitEvent(two, 2, 1, &entry, &which));
    BAD(GNI_CqVectorMonitor(two, 2, 1, &which));
    BAD(GNI_CqInterruptMask(q));
    BAD(GNI_CqInterruptUnmask(q));
    BAD(GNI_CqTestEvent(q));
    BAD(GNI_CqArmCompChan(&q, 1));
    BAD(gni_cq_destroy(q));
    BAD(gni_get_completed(q, 0, &d));
    BAD(gni_cq_get_event(q, &entry));
    if (!q)
        return; // a null queue is none, where one is optional
    BAD(GNI_EpCreate(f->nic, q, &ep));
    BAD(GNI_MemRegister(f->nic, (uintptr_t)f->memory, 8, q, 0, UINT32_MAX, &mem));
}

static void bad_others(void *h)
{
    gni_error_mask_t m;
    gni_error_event_t ev;
    gni_msgq_ep_attr_t attr;
    int fd;
    gni_cq_handle_t cq;
    BAD(GNI_ReleaseErrors(h));
    BAD(GNI_GetErrorMask(h, &m));
    BAD(GNI_SetErrorMask(h, 1, &m));
    BAD(GNI_GetErrorEvent(h, &ev));
    BAD(GNI_WaitErrorEvents(h, &ev, 1, 1, &u1));
    BAD(GNI_SetErrorPtag(h, 1));
    BAD(gni_release_errors(h));
    BAD(gni_get_error_mask(h, &m));
    BAD(gni_set_error_mask(h, 1, &m));
    BAD(gni_get_error_event(h, &ev));
    BAD(gni_wait_error_events(h, &ev, 1, 1, &u1));
    BAD(gni_set_error_ptag(h, 1));
    BAD(GNI_MsgqRelease(h));
    BAD(GNI_MsgqIdle(h));
    BAD(GNI_MsgqGetConnAttrs(h, 1, &attr, &u1));
    BAD(GNI_MsgqConnect(h, 1, &attr));
    BAD(GNI_MsgqConnRelease(h, 1));
    BAD(GNI_MsgqSend(h, NULL, NULL, 0, NULL, 0, 0, 0));
    BAD(GNI_MsgqProgress(h, 0));
    BAD(GNI_CeGetId(h, &u1));
    BAD(GNI_CeConfigure(h, NULL, 0, NULL, NULL, 0));
    BAD(GNI_CeDestroy(h));
    BAD(GNI_CompChanDestroy(h));
    BAD(GNI_CompChanFd(h, &fd));
    BAD(GNI_CompChanGetEvent(h, &cq));
}

// Objects of another domain that was destroyed with all it had.
static void test_handles_bad_answer_invalid_param(void **state)
{
    struct fixture *f = *state, gone;
    fixture_open(&gone, 8, 0, GNI_CQ_BLOCKING);
    struct fixture freed = gone;
    fixture_close(&gone);
    void *others[] = {NULL, (void *)8, (void *)0x123456789abcull, f};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        bad_cdm(others[i]);
        bad_nic(f, others[i]);
        bad_ep(f, others[i]);
        bad_cq(f, others[i]);
        bad_others(others[i]);
    }
    bad_cdm(freed.cdm);
    bad_nic(f, freed.nic);
    bad_ep(f, freed.ep);
    bad_cq(f, freed.source);
    bad_others(f->nic); // alive, of another kind
    bad_cdm((gni_cdm_handle_t)f->ep);
    bad_nic(f, (gni_nic_handle_t)f->source);
    bad_ep(f, (gni_ep_handle_t)f->cdm);
    bad_cq(f, (gni_cq_handle_t)f->nic);
}

static void test_results_null_answer_invalid_param(void **state)
{
    struct fixture *f = *state;
    BAD(GNI_CdmCreate(1, 10, 1, 0, NULL));
    BAD(GNI_CqCreate(f->nic, 8, 0, 0, NULL, NULL, NULL));
    BAD(GNI_EpCreate(f->nic, f->source, NULL));
    BAD(GNI_CqGetEvent(f->source, NULL));
    BAD(GNI_CqWaitEvent(f->source, 1, NULL));
    BAD(GNI_CqVectorWaitEvent(&f->source, 1, 1, NULL, &which));
    BAD(GNI_CqVectorWaitEvent(&f->source, 1, 1, &entry, NULL));
    BAD(GNI_CqVectorWaitEvent(NULL, 1, 1, &entry, &which));
    BAD(GNI_CqVectorWaitEvent(&f->source, 0, 1, &entry, &which));
    BAD(GNI_CqVectorMonitor(&f->source, 1, 1, NULL));
    BAD(GNI_CqVectorMonitor(NULL, 1, 1, &which));
    BAD(GNI_CqVectorMonitor(&f->source, 0, 1, &which));
    BAD(GNI_CqErrorStr(0, NULL, 100));
    BAD(GNI_CqErrorRecoverable(0, NULL));
    BAD(GNI_GetCompleted(f->source, 0, NULL));
    BAD(GNI_PostRdma(f->ep, NULL));
    BAD(GNI_PostFma(f->ep, NULL));
    BAD(GNI_PostCqWrite(f->ep, NULL));
    BAD(GNI_CtPostFma(f->ep, NULL));
    BAD(GNI_CtPostCqWrite(f->ep, NULL));
    BAD(GNI_MemRegister(f->nic, (uintptr_t)f->memory, 8, NULL, 0, UINT32_MAX, NULL));
    BAD(GNI_MemRegisterSegments(f->nic, NULL, 1, NULL, 0, UINT32_MAX, &mem));
    BAD(GNI_MemDeregister(f->nic, NULL));
    BAD(GNI_MemHndlQueryAttr(NULL, GNI_MEMHNDL_ATTR_VMDH, (int *)&u1));
    BAD(GNI_MemHndlQueryAttr(&f->handle, GNI_MEMHNDL_ATTR_VMDH, NULL));
    BAD(GNI_MemHndlQueryAttr(&f->handle, (gni_mem_handle_attr_t)0, (int *)&u1));
    BAD(GNI_MemHndlQueryAttr(&f->handle, (gni_mem_handle_attr_t)8, (int *)&u1));
    BAD(GNI_RebuildMemHndl(NULL, 1, &mem));
    BAD(GNI_RebuildMemHndl(&f->handle, 1, NULL));
    BAD(GNI_RebuildMemHndl(&f->handle, 1, &mem)); // not a vmdh one
    BAD(GNI_MemQueryHndls(f->nic, -1, NULL, &u64, &u64));
    BAD(GNI_MemQueryHndls(f->nic, 0, &mem, &u64, &u64b));
    BAD(GNI_EpPostDataTest(f->ep, NULL, &u1, &u2));
    BAD(GNI_EpPostDataTest(f->ep, &post_state, NULL, &u2));
    BAD(GNI_EpPostDataTest(f->ep, &post_state, &u1, NULL));
    BAD(GNI_EpPostDataWait(f->ep, 1, NULL, &u1, &u2));
    BAD(GNI_PostDataProbe(f->nic, NULL, &u2));
    BAD(GNI_PostDataProbe(f->nic, &u1, NULL));
    BAD(GNI_PostDataProbeById(f->nic, NULL));
    BAD(GNI_PostdataProbeWaitById(f->nic, 1, NULL));
    BAD(GNI_SmsgGetNext(f->ep, NULL));
    BAD(GNI_SmsgGetNextWTag(f->ep, &header, NULL));
    BAD(GNI_GetNumLocalDevices(NULL));
    BAD(GNI_GetLocalDeviceIds(1, NULL));
    BAD(GNI_GetLocalDeviceIds(0, (int *)&u1));
    BAD(GNI_GetVersion(NULL));
    BAD(GNI_GetVersionInformation(NULL));
    BAD(GNI_GetPtag(0, 1, NULL));
    BAD(GNI_GetNttGran(0, NULL));
    BAD(GNI_GetBIConfig(0, NULL));
    BAD(GNI_CeCheckResult(NULL, 0));
    BAD(GNI_CeCreate(f->nic, NULL));
    BAD(GNI_CompChanCreate(f->nic, NULL));
    BAD(GNI_GetNicStat(f->nic, GNI_STAT_SMSG_REQ_STALL, NULL));
    BAD(GNI_MsgqSize(NULL, &u1));
    WANT(ERROR_RESOURCE, GNI_GetDeviceType(NULL));
}

static void test_devices_unknown_answer_as_documented(void **state)
{
    struct fixture *f = *state;
    gni_cdm_handle_t c;
    gni_nic_handle_t n;
    gni_dev_res_desc_t dev;
    gni_job_res_desc_t job;
    uint8_t ptag;
    gni_bi_desc_t bi;
    WANT(NO_MATCH, GNI_CdmGetNicAddress(1, &u1, &u2));
    WANT(SUCCESS, GNI_CdmCreate(99, 10, 0x1234, 0, &c));
    WANT(NO_MATCH, GNI_CdmAttach(c, 3, &u1, &n));
    WANT(SUCCESS, GNI_CdmAttach(c, UINT32_MAX, &u1, &n));
    WANT(INVALID_STATE, GNI_CdmAttach(c, 0, &u1, &n));
    WANT(SUCCESS, GNI_CdmDestroy(c));
    WANT(SUCCESS, GNI_CdmCreate(7, 10, 0x1234, 0, &c)); // the fixture's own number
    WANT(ERROR_RESOURCE, GNI_CdmAttach(c, 0, &u1, &n));
    WANT(SUCCESS, GNI_CdmDestroy(c));
    BAD(GNI_CdmCreate(1, 0, 1, 0, &c));
    BAD(GNI_CdmCreate(1, 10, 1, GNI_CDM_MODE_FMA_SHARED | GNI_CDM_MODE_FMA_DEDICATED, &c));
    WANT(NO_MATCH, GNI_GetPtag(1, 1, &ptag));
    BAD(GNI_GetNttGran(1, &u1));
    BAD(GNI_GetDevResInfo(1, GNI_DEV_RES_CQ, &dev));
    BAD(GNI_GetDevResInfo(0, GNI_DEV_RES_FIRST, &dev));
    BAD(GNI_GetDevResInfo(0, GNI_DEV_RES_LAST, &dev));
    BAD(GNI_GetDevResInfo(0, GNI_DEV_RES_CQ, NULL));
    WANT(ERROR_RESOURCE, GNI_GetDevResInfo(0, GNI_DEV_RES_MRT, &dev));
    BAD(GNI_GetJobResInfo(1, 10, GNI_JOB_RES_CQ, &job));
    BAD(GNI_GetJobResInfo(0, 0, GNI_JOB_RES_CQ, &job));
    BAD(GNI_GetJobResInfo(0, 10, GNI_JOB_RES_LAST, &job));
    BAD(GNI_GetJobResInfo(0, 10, GNI_JOB_RES_CQ, NULL));
    WANT(ERROR_RESOURCE, GNI_GetJobResInfo(0, 10, GNI_JOB_RES_GART, &job));
    BAD(GNI_SetJobResInfo(1, 10, GNI_JOB_RES_CQ, 1));
    BAD(GNI_SetBIConfig(1, 1, 1, 0));
    BAD(GNI_SetBIConfig(0, 101, 1, 0));
    BAD(GNI_SetBIConfig(0, 1, 1, 0x10));
    BAD(GNI_GetBIConfig(1, &bi));
    BAD(GNI_BISyncWait(1, 1));
    BAD(GNI_GetNicStat(f->nic, (gni_statistic_t)21, &u1));
    BAD(GNI_ResetNicStat(f->nic, (gni_statistic_t)21));
    BAD(GNI_SuspendJob(1, 1, 10, 1, 1));
    BAD(GNI_ResumeJob(1, 1, 10, 1));
    WANT(NO_MATCH, GNI_ConfigureJob(1, 1, 10, 1, NULL));
    BAD(GNI_ConfigureJob(0, 1, 0, 1, NULL));
    WANT(NO_MATCH, GNI_ConfigureNTT(1, NULL, NULL));
    BAD(GNI_ConfigureNTT(0, NULL, &u1));
}

static void test_launcher_calls_answer_by_privilege(void **state)
{
    (void)state;
    uint32_t table[4] = {1, 2, 3, 4}, base = 0;
    gni_ntt_descriptor_t ntt = {.group_size = 4, .u.table = table};
    gni_job_limits_t limits;
    memset(&limits, 0xff, sizeof(limits));
    if (geteuid() != 0) {
        WANT(PERMISSION_ERROR, GNI_ConfigureJob(0, 1, 77, 1, NULL));
        WANT(PERMISSION_ERROR, GNI_ConfigureNTT(0, &ntt, &base));
        WANT(PERMISSION_ERROR, GNI_SuspendJob(0, 1, 77, 1, 1));
        WANT(PERMISSION_ERROR, GNI_ResumeJob(0, 1, 77, 1));
        WANT(PERMISSION_ERROR, GNI_SetBIConfig(0, 1, 1, 0));
        WANT(PERMISSION_ERROR, GNI_SetJobResInfo(0, 77, GNI_JOB_RES_CQ, 1));
        return;
    }
    WANT(SUCCESS, GNI_ConfigureJob(0, 1, 77, 5, NULL));
    WANT(INVALID_STATE, GNI_ConfigureJob(0, 2, 77, 5, NULL));
    WANT(INVALID_STATE, GNI_ConfigureJob(0, 1, 77, 6, NULL));
    limits.ntt_base = 8000;
    limits.ntt_size = 4;
    WANT(NO_MATCH, GNI_ConfigureJob(0, 1, 77, 5, &limits));
    WANT(SUCCESS, GNI_ConfigureNTT(0, &ntt, &base));
    limits.ntt_base = (int32_t)base;
    WANT(SUCCESS, GNI_ConfigureJob(0, 1, 77, 5, &limits));
    limits.ntt_size = 2;
    WANT(ILLEGAL_OP, GNI_ConfigureJob(0, 1, 77, 5, &limits));
    ntt.group_size = 100000;
    WANT(ERROR_RESOURCE, GNI_ConfigureNTT(0, &ntt, &base));
    ntt.group_size = 0;
    BAD(GNI_ConfigureNTT(0, &ntt, &base));
    WANT(SUCCESS, GNI_SuspendJob(0, 1, 77, 5, 10));
    WANT(INVALID_STATE, GNI_SuspendJob(0, 1, 77, 5, 10));
    BAD(GNI_ResumeJob(0, 2, 77, 5));
    WANT(SUCCESS, GNI_ResumeJob(0, 1, 77, 5));
    WANT(INVALID_STATE, GNI_ResumeJob(0, 1, 77, 5));
    WANT(ILLEGAL_OP, GNI_SetJobResInfo(0, 77, GNI_JOB_RES_CE, 1));
    WANT(ERROR_RESOURCE, GNI_SetJobResInfo(0, 77, GNI_JOB_RES_MRT, 1));
    WANT(SUCCESS, GNI_SetBIConfig(0, 50, 40, GNI_BI_FLAG_APPLY_NOW));
}

static void test_endpoint_in_wrong_state_is_refused(void **state)
{
    struct fixture *f = *state;
    gni_ep_handle_t ep;
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_FMA_PUT, 0, 4096, 8);
    WANT(SUCCESS, GNI_EpCreate(f->nic, f->source, &ep));
    WANT(SUCCESS, GNI_EpUnbind(ep)); // there was nothing to undo
    BAD(GNI_PostFma(ep, &d));
    d.type = GNI_POST_RDMA_PUT;
    BAD(GNI_PostRdma(ep, &d));
    BAD(GNI_EpPostData(ep, buffer, 8, buffer, 8)); // unbound, without an id
    BAD(GNI_EpPostDataTest(ep, &post_state, &u1, &u2));
    BAD(GNI_EpPostDataWId(ep, buffer, 8, buffer, 8, UINT64_MAX));
    WANT(SIZE_ERROR, GNI_EpPostDataWId(ep, buffer, 129, buffer, 8, 1));
    WANT(SIZE_ERROR, GNI_EpPostDataWId(ep, buffer, 8, buffer, 129, 1));
    BAD(GNI_EpPostDataWId(ep, NULL, 8, buffer, 8, 1));
    BAD(GNI_EpPostDataWId(ep, buffer, 8, NULL, 8, 1));
    WANT(NO_MATCH, GNI_EpPostDataTestById(ep, 1, &post_state, &u1, &u2));
    WANT(NO_MATCH, GNI_EpPostDataCancelById(ep, 1));
    WANT(SUCCESS, GNI_EpPostDataWId(ep, buffer, 8, buffer, 8, 5));
    WANT(ERROR_RESOURCE, GNI_EpPostDataWId(ep, buffer, 8, buffer, 8, 6));
    WANT(NO_MATCH, GNI_EpPostDataTestById(ep, 6, &post_state, &u1, &u2));
    WANT(NOT_DONE, GNI_EpIdle(ep));
    WANT(TIMEOUT, GNI_EpPostDataWaitById(ep, 5, 1, &post_state, &u1, &u2));
    BAD(GNI_EpPostDataWaitById(ep, 5, 0, &post_state, &u1, &u2));
    BAD(GNI_EpPostDataWait(f->ep, 0, &post_state, &u1, &u2));
    WANT(SUCCESS, GNI_EpPostDataCancelById(ep, 5));
    WANT(NO_MATCH, GNI_EpPostDataTestById(ep, 5, &post_state, &u1, &u2));
    WANT(SUCCESS, GNI_EpBind(ep, f->pe, 3));
    BAD(GNI_EpBind(ep, f->pe, 3));
    WANT(NO_MATCH, GNI_EpPostDataCancel(ep));
    WANT(SUCCESS, GNI_EpUnbind(ep));
    WANT(SUCCESS, GNI_EpDestroy(ep));
}

static void test_queue_misused_is_refused(void **state)
{
    struct fixture *f = *state;
    gni_cq_handle_t polling, q, both[2];
    gni_ep_handle_t ep;
    BAD(GNI_CqCreate(f->nic, 0, 0, GNI_CQ_NOBLOCK, NULL, NULL, &q));
    BAD(GNI_CqCreate(f->nic, 8, 0, GNI_CQ_EMULATED_INVALID, NULL, NULL, &q));
    BAD(GNI_CqCreate(f->nic, 8, 0, 0x100, NULL, NULL, &q));
    WANT(ERROR_RESOURCE, GNI_CqCreate(f->nic, UINT32_MAX, 0, 0, NULL, NULL, &q));
    WANT(SUCCESS, GNI_CqCreate(f->nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &polling));
    both[0] = f->source;
    both[1] = polling;
    WANT(ERROR_RESOURCE, GNI_CqWaitEvent(polling, 1, &entry));
    WANT(ERROR_RESOURCE, GNI_CqVectorWaitEvent(both, 2, 1, &entry, &which));
    WANT(ERROR_RESOURCE, GNI_CqVectorMonitor(both, 2, 1, &which));
    BAD(GNI_CqInterruptMask(polling));
    BAD(GNI_CqInterruptUnmask(polling));
    WANT(NOT_DONE, GNI_CqInterruptUnmask(f->source));
    WANT(NOT_DONE, GNI_CqGetEvent(polling, &entry));
    WANT(NOT_DONE, GNI_CqTestEvent(polling));
    WANT(TIMEOUT, GNI_CqWaitEvent(f->source, 0, &entry));
    WANT(TIMEOUT, GNI_CqVectorMonitor(&f->source, 1, 1, &which));
    WANT(SUCCESS, GNI_CqInterruptMask(f->source));
    WANT(NOT_DONE, GNI_CqVectorMonitor(&f->source, 1, 1000, &which));
    WANT(SUCCESS, GNI_CqInterruptUnmask(f->source));
    WANT(ERROR_RESOURCE, GNI_CqDestroy(f->source)); // the endpoint's
    WANT(ERROR_RESOURCE, GNI_CqDestroy(f->remote)); // the memory's
    BAD(GNI_EpCreate(f->nic, f->remote, &ep));
    BAD(GNI_MemRegister(f->nic, (uintptr_t)f->memory, 8, f->source, 0, UINT32_MAX, &mem));
    WANT(SUCCESS, GNI_CqDestroy(polling));
    WANT(SIZE_ERROR, GNI_CqErrorStr(0, buffer, 3));
    WANT(INVALID_STATE, GNI_CqErrorRecoverable(1ull << 59, &u1));
}

static void test_queue_of_another_nic_is_refused(void **state)
{
    struct fixture *f = *state, other;
    gni_ep_handle_t ep;
    fixture_open(&other, 12, 0, GNI_CQ_NOBLOCK);
    BAD(GNI_EpCreate(f->nic, other.source, &ep));
    BAD(GNI_MemRegister(f->nic, (uintptr_t)f->memory, 8, other.remote, 0, UINT32_MAX, &mem));
    BAD(GNI_MemDeregister(f->nic, &other.handle));
    WANT(INVALID_STATE, GNI_MemQueryHndls(f->nic, -1, &other.handle, &u64, &u64b));
    fixture_close(&other);
}

static void test_registration_misused_is_refused(void **state)
{
    struct fixture *f = *state;
    uint64_t at = (uintptr_t)f->memory;
    gni_mem_handle_t untouched = {1, 2}, h = untouched;
    gni_mem_segment_t segs[2] = {{at, 4096}, {at + 8192, 0}};
    char *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *none = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(none, 4096);
    BAD(GNI_MemRegister(f->nic, at, 0, NULL, 0, UINT32_MAX, &h));
    BAD(GNI_MemRegister(f->nic, at, UINT64_MAX, NULL, 0, UINT32_MAX, &h));
    BAD(GNI_MemRegister(f->nic, at, 8, NULL, 0x2000, UINT32_MAX, &h));
    BAD(GNI_MemRegister(f->nic, at, 8, NULL, GNI_MEM_CUDA, UINT32_MAX, &h));
    BAD(GNI_MemRegister(f->nic, at, 8, NULL, GNI_MEM_MDD_SHARED | GNI_MEM_MDD_DEDICATED, UINT32_MAX,
                        &h));
    BAD(GNI_MemRegister(f->nic, (uintptr_t)none, 8, NULL, 0, UINT32_MAX, &h));
    WANT(PERMISSION_ERROR, GNI_MemRegister(f->nic, (uintptr_t)ro, 8, NULL, 0, UINT32_MAX, &h));
    BAD(GNI_MemRegister(f->nic, at, 8, NULL, GNI_MEM_USE_VMDH, 0, &h));
    BAD(GNI_MemRegisterSegments(f->nic, segs, 2, NULL, 0, UINT32_MAX, &h));
    segs[1].length = 4096;
    segs[1].address = at + 8;
    BAD(GNI_MemRegisterSegments(f->nic, segs, 2, NULL, 0, UINT32_MAX, &h));
    BAD(GNI_MemRegisterSegments(f->nic, segs, 0, NULL, 0, UINT32_MAX, &h));
    assert_memory_equal(&h, &untouched, sizeof(h));
    BAD(GNI_SetMddResources(f->nic, 0));
    BAD(GNI_SetMddResources(f->nic, 4096));
    WANT(SUCCESS, GNI_SetMddResources(f->nic, 4));
    WANT(INVALID_STATE, GNI_SetMddResources(f->nic, 4));
    BAD(GNI_MemRegister(f->nic, at, 8, NULL, GNI_MEM_USE_VMDH, 4, &h));
    BAD(GNI_MemDeregister(f->nic, &h));
    WANT(SUCCESS, GNI_MemRegister(f->nic, (uintptr_t)ro, 8, NULL, GNI_MEM_READ_ONLY, 0, &h));
    WANT(SUCCESS, GNI_MemDeregister(f->nic, &h));
    BAD(GNI_MemDeregister(f->nic, &h)); // once only
    munmap(ro, 4096);
}

static void test_rdma_misused_is_refused(void **state)
{
    struct fixture *f = *state;
    const gni_post_descriptor_t put = fixture_post(f, GNI_POST_RDMA_PUT, 0, 4096, 8);
    const gni_post_descriptor_t get = fixture_post(f, GNI_POST_RDMA_GET, 0, 4096, 8);
    gni_post_descriptor_t d;
    d = put, d.type = GNI_POST_FMA_PUT;
    BAD(GNI_PostRdma(f->ep, &d));
    d = put, d.length = 0;
    BAD(GNI_PostRdma(f->ep, &d));
    d = put, d.cq_mode = GNI_CQMODE_DUAL_EVENTS;
    BAD(GNI_PostRdma(f->ep, &d));
    d = put, d.cq_mode = 8;
    BAD(GNI_PostRdma(f->ep, &d));
    d = put, d.dlvr_mode = 0x200;
    BAD(GNI_PostRdma(f->ep, &d));
    d = put, d.rdma_mode = GNI_RDMAMODE_FENCE;
    BAD(GNI_PostRdma(f->ep, &d));
    d = put, d.rdma_mode = GNI_RDMAMODE_PHYS_ADDR;
    BAD(GNI_PostRdma(f->ep, &d));
    d = put, d.local_mem_hndl = (gni_mem_handle_t){0, 0};
    BAD(GNI_PostRdma(f->ep, &d));
    d = put, d.local_addr += FIXTURE_BYTES;
    BAD(GNI_PostRdma(f->ep, &d));
    d = put, d.remote_mem_hndl = (gni_mem_handle_t){0, 0};
    BAD(GNI_PostRdma(f->ep, &d));
    d = put, d.src_cq_hndl = f->remote;
    BAD(GNI_PostRdma(f->ep, &d));
    d = get, d.remote_addr += 2;
    WANT(ALIGNMENT_ERROR, GNI_PostRdma(f->ep, &d));
    d = get, d.length = 6;
    WANT(ALIGNMENT_ERROR, GNI_PostRdma(f->ep, &d));
    WANT(NOT_DONE, GNI_CqGetEvent(f->source, &entry)); // none of these made an event
}

static void test_fma_misused_is_refused(void **state)
{
    struct fixture *f = *state;
    const gni_post_descriptor_t put = fixture_post(f, GNI_POST_FMA_PUT, 0, 4096, 8);
    const gni_post_descriptor_t get = fixture_post(f, GNI_POST_FMA_GET, 0, 4096, 8);
    gni_post_descriptor_t d;
    d = put, d.type = GNI_POST_RDMA_PUT;
    BAD(GNI_PostFma(f->ep, &d));
    d = put, d.type = GNI_POST_CQWRITE;
    BAD(GNI_PostFma(f->ep, &d));
    d = put, d.type = (gni_post_type_t)99;
    BAD(GNI_PostFma(f->ep, &d));
    d = put, d.cq_mode = GNI_CQMODE_LOCAL_EVENT;
    BAD(GNI_PostFma(f->ep, &d));
    d = put, d.local_addr = 0;
    BAD(GNI_PostFma(f->ep, &d));
    d = put, d.type = GNI_POST_FMA_PUT_W_SYNCFLAG, d.sync_flag_addr = d.remote_addr + 4;
    WANT(ALIGNMENT_ERROR, GNI_PostFma(f->ep, &d));
    d = get, d.length = 0;
    BAD(GNI_PostFma(f->ep, &d));
    for (uint64_t off = 1; off < 4; off++) { // P59
        d = get, d.remote_addr += off;
        WANT(ALIGNMENT_ERROR, GNI_PostFma(f->ep, &d));
        d = get, d.length = 8 + off;
        WANT(ALIGNMENT_ERROR, GNI_PostFma(f->ep, &d));
    }
    d = get, d.type = GNI_POST_FMA_GET_W_FLAG, d.length = 64;
    BAD(GNI_PostFma(f->ep, &d));
    d = get, d.type = GNI_POST_FMA_GET_W_FLAG, d.local_addr += 56;
    WANT(ALIGNMENT_ERROR, GNI_PostFma(f->ep, &d));
    d = get, d.type = GNI_POST_FMA_GET_W_FLAG, d.local_addr += 2;
    WANT(ALIGNMENT_ERROR, GNI_PostFma(f->ep, &d));
    WANT(NOT_DONE, GNI_CqGetEvent(f->source, &entry));
}

static void test_amo_misused_is_refused(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t amo = fixture_post(f, GNI_POST_AMO, 0, 4096, 8), d;
    amo.amo_cmd = GNI_FMA_ATOMIC_FADD;
    d = amo, d.amo_cmd = (gni_fma_cmd_type_t)0x10d;
    BAD(GNI_PostFma(f->ep, &d));
    d = amo, d.amo_cmd = (gni_fma_cmd_type_t)0;
    BAD(GNI_PostFma(f->ep, &d));
    d = amo, d.length = 0;
    BAD(GNI_PostFma(f->ep, &d));
    d = amo, d.remote_addr += 4;
    WANT(ALIGNMENT_ERROR, GNI_PostFma(f->ep, &d));
    d = amo, d.local_addr += 4;
    WANT(ALIGNMENT_ERROR, GNI_PostFma(f->ep, &d));
    d = amo, d.length = 4;
    WANT(ALIGNMENT_ERROR, GNI_PostFma(f->ep, &d));
    d = amo, d.local_mem_hndl = (gni_mem_handle_t){0, 0};
    BAD(GNI_PostFma(f->ep, &d));
    d = amo, d.type = GNI_POST_AMO_W_FLAG, d.amo_cmd = GNI_FMA_ATOMIC_ADD;
    BAD(GNI_PostFma(f->ep, &d));
    struct fixture plain;
    fixture_open(&plain, 20, 0, GNI_CQ_NOBLOCK);
    d = fixture_post(&plain, GNI_POST_AMO, 0, 4096, 8);
    d.amo_cmd = GNI_FMA_ATOMIC_FADD_C; // cached, without the mode
    BAD(GNI_PostFma(plain.ep, &d));
    fixture_close(&plain);
}

static void test_chain_misused_is_refused(void **state)
{
    struct fixture *f = *state;
    gni_post_descriptor_t head = fixture_post(f, GNI_POST_FMA_PUT, 0, 4096, 8), d;
    gni_ct_put_post_descriptor_t next = {.ep_hndl = f->ep,
                                         .length = 8,
                                         .remote_addr = head.remote_addr,
                                         .remote_mem_hndl = f->handle,
                                         .local_addr = head.local_addr};
    head.next_descr = &next;
    d = head, d.type = GNI_POST_CQWRITE;
    BAD(GNI_CtPostFma(f->ep, &d));
    BAD(GNI_CtPostCqWrite(f->ep, &head));
    d = head, d.dlvr_mode = GNI_DLVMODE_ORDERED_TAIL;
    BAD(GNI_CtPostFma(f->ep, &d));
    next.ep_hndl = NULL;
    BAD(GNI_CtPostFma(f->ep, &head));
    next.ep_hndl = f->ep;
    next.length = 1ull << 30;
    WANT(SIZE_ERROR, GNI_CtPostFma(f->ep, &head));
    WANT(NOT_DONE, GNI_CqGetEvent(f->source, &entry));
}

static void test_smsg_misused_is_refused(void **state)
{
    struct fixture *f = *state;
    gni_smsg_attr_t a = {.msg_type = GNI_SMSG_TYPE_MBOX,
                         .msg_buffer = f->memory,
                         .mem_hndl = f->handle,
                         .mbox_maxcredit = 4,
                         .msg_maxsize = 64},
                    b;
    gni_ep_handle_t ep;
    BAD(GNI_SmsgBufferSizeNeeded(NULL, &u1));
    BAD(GNI_SmsgBufferSizeNeeded(&a, NULL));
    b = a, b.msg_type = GNI_SMSG_TYPE_INVALID;
    BAD(GNI_SmsgBufferSizeNeeded(&b, &u1));
    b = a, b.mbox_maxcredit = 0;
    BAD(GNI_SmsgBufferSizeNeeded(&b, &u1));
    b = a, b.msg_maxsize = GNI_SMSG_MAX_SIZE + 1;
    BAD(GNI_SmsgBufferSizeNeeded(&b, &u1));
    BAD(gni_smsg_buff_size_needed(&b, &u1));
    WANT(SUCCESS, GNI_EpCreate(f->nic, f->source, &ep));
    WANT(INVALID_STATE, GNI_SmsgInit(ep, &a, &a));
    BAD(GNI_SmsgInit(f->ep, NULL, &a));
    BAD(GNI_SmsgInit(f->ep, &a, NULL));
    b = a, b.mbox_maxcredit = 5;
    BAD(GNI_SmsgInit(f->ep, &a, &b));
    b = a, b.msg_maxsize = 65;
    BAD(GNI_SmsgInit(f->ep, &a, &b));
    b = a, b.mbox_offset = FIXTURE_BYTES;
    BAD(GNI_SmsgInit(f->ep, &b, &a));
    b = a, b.buff_size = 8;
    BAD(GNI_SmsgInit(f->ep, &b, &a));
    BAD(GNI_SmsgSend(f->ep, buffer, 1, NULL, 0, 0)); // not initialised
    BAD(GNI_SmsgRelease(f->ep));
    WANT(SUCCESS, GNI_SmsgInit(f->ep, &a, &a));
    WANT(INVALID_STATE, GNI_SmsgInit(f->ep, &a, &a));
    BAD(GNI_SmsgSend(f->ep, NULL, 1, NULL, 0, 0));
    BAD(GNI_SmsgSend(f->ep, NULL, 0, NULL, 1, 0));
    WANT(ERROR_RESOURCE, GNI_SmsgSend(f->ep, buffer, 65, NULL, 0, 0));
    WANT(ERROR_RESOURCE, GNI_SmsgSend(f->ep, NULL, 0, buffer, 65, 0));
    WANT(ERROR_RESOURCE, GNI_SmsgSend(f->ep, buffer, 33, buffer, 64, 0));
    WANT(NOT_DONE, GNI_SmsgGetNext(f->ep, &header));
    WANT(NOT_DONE, GNI_SmsgRelease(f->ep));
    BAD(GNI_SmsgSetDeliveryMode(f->nic, 0x200));
    WANT(SUCCESS, GNI_SmsgSetDeliveryMode(f->nic, GNI_DLVMODE_IN_ORDER));
    WANT(SUCCESS, GNI_SmsgSetMaxRetrans(f->nic, 4096));
}

static int never(uint32_t id, uint32_t pe, void *msg, uint8_t t, void *data)
{
    (void)id, (void)pe, (void)msg, (void)t, (void)data;
    return 0;
}

static void test_msgq_misused_is_refused(void **state)
{
    struct fixture *f = *state;
    gni_msgq_attr_t a = {.max_msg_sz = 64, .smsg_q_sz = 2, .num_msgq_eps = 1, .nloc_insts = 1}, b;
    gni_msgq_ep_attr_t ep_attr;
    gni_msgq_handle_t q, q2;
    b = a, b.max_msg_sz = GNI_MSGQ_MSG_SZ_MAX + 1;
    BAD(GNI_MsgqInit(f->nic, never, NULL, f->source, &b, &q));
    b = a, b.smsg_q_sz = 3;
    BAD(GNI_MsgqInit(f->nic, never, NULL, f->source, &b, &q));
    BAD(GNI_MsgqInit(f->nic, NULL, NULL, f->source, &a, &q));
    BAD(GNI_MsgqInit(f->nic, never, NULL, NULL, &a, &q));
    BAD(GNI_MsgqInit(f->nic, never, NULL, f->remote, &a, &q));
    BAD(GNI_MsgqInit(f->nic, never, NULL, f->source, NULL, &q));
    WANT(SUCCESS, GNI_MsgqInit(f->nic, never, NULL, f->source, &a, &q));
    WANT(INVALID_STATE, GNI_MsgqInit(f->nic, never, NULL, f->source, &a, &q2));
    WANT(NO_MATCH, GNI_MsgqSend(q, f->ep, NULL, 0, buffer, 8, 0, 0));
    WANT(NO_MATCH, GNI_MsgqConnect(q, f->pe, &ep_attr));
    WANT(NO_MATCH, GNI_MsgqConnRelease(q, f->pe));
    BAD(GNI_MsgqGetConnAttrs(q, f->pe, NULL, &u1));
    WANT(SUCCESS, GNI_MsgqGetConnAttrs(q, f->pe, &ep_attr, &u1));
    WANT(INVALID_STATE, GNI_MsgqGetConnAttrs(q, f->pe, &ep_attr, NULL));
    WANT(INVALID_STATE, GNI_MsgqSend(q, f->ep, NULL, 0, buffer, 8, 0, 0));
    BAD(GNI_MsgqConnect(q, f->pe, NULL));
    WANT(SUCCESS, GNI_MsgqConnect(q, f->pe, &ep_attr));
    WANT(INVALID_STATE, GNI_MsgqConnect(q, f->pe, &ep_attr));
    WANT(SIZE_ERROR, GNI_MsgqSend(q, f->ep, buffer, 40, buffer, 40, 0, 0));
    BAD(GNI_MsgqSend(q, f->ep, NULL, 4, buffer, 8, 0, 0));
    BAD(GNI_MsgqProgress(q, 10)); // a polling queue
    WANT(SUCCESS, GNI_MsgqSend(q, f->ep, NULL, 0, buffer, 8, 1, 0));
    WANT(SUCCESS, GNI_MsgqSend(q, f->ep, NULL, 0, buffer, 8, 2, 0));
    WANT(NOT_DONE, GNI_MsgqSend(q, f->ep, NULL, 0, buffer, 8, 3, 0));
    WANT(NOT_DONE, GNI_MsgqRelease(q));
    WANT(NOT_DONE, GNI_MsgqIdle(q));
    WANT(NOT_DONE, GNI_MsgqProgress(q, 0)); // the callback said stop
    fixture_event(f->source, GNI_RC_SUCCESS);
    fixture_event(f->source, GNI_RC_SUCCESS);
    WANT(SUCCESS, GNI_MsgqConnRelease(q, f->pe));
    WANT(SUCCESS, GNI_MsgqRelease(q));
}

static void test_collectives_misused_are_refused(void **state)
{
    struct fixture *f = *state;
    gni_ce_handle_t ce, more[4];
    gni_post_descriptor_t d = fixture_post(f, GNI_POST_CE, 0, 0, 0);
    d.ce_cmd = GNI_FMA_CE_IADD;
    BAD(GNI_PostFma(f->ep, &d)); // no attributes yet
    WANT(SUCCESS, GNI_CeCreate(f->nic, &ce));
    WANT(SUCCESS, GNI_CeGetId(ce, &u1));
    BAD(GNI_CeGetId(ce, NULL));
    BAD(GNI_CeConfigure(ce, &f->ep, 1, NULL, NULL, 0)); // no attributes
    BAD(GNI_EpSetCeAttr(f->ep, u1, GNI_CE_MAX_CHILDREN, GNI_CE_CHILD_PE));
    BAD(GNI_EpSetCeAttr(f->ep, u1, 0, GNI_CE_CHILD_UNUSED));
    WANT(SUCCESS, GNI_EpSetCeAttr(f->ep, u1, 0, GNI_CE_CHILD_PE));
    BAD(GNI_CeConfigure(ce, NULL, 1, NULL, NULL, 0));
    BAD(GNI_CeConfigure(ce, &f->ep, 0, NULL, NULL, 0));
    BAD(GNI_CeConfigure(ce, &f->ep, 33, NULL, NULL, 0));
    BAD(GNI_CeConfigure(ce, &f->ep, 1, f->ep, NULL, 0)); // a leaf as the parent
    BAD(GNI_CeConfigure(ce, &f->ep, 1, NULL, NULL, GNI_CE_MODE_ROUND_UP | GNI_CE_MODE_ROUND_DOWN));
    BAD(GNI_CeConfigure(ce, &f->ep, 1, NULL, f->source, 0));
    WANT(SUCCESS, GNI_CeConfigure(ce, &f->ep, 1, NULL, NULL, 0));
    BAD(GNI_CeConfigure(ce, &f->ep, 1, NULL, NULL, 0));
    d.ce_cmd = (gni_ce_cmd_type_t)0x06;
    BAD(GNI_PostFma(f->ep, &d));
    d.ce_cmd = GNI_FMA_CE_IADD;
    d.local_addr += 8;
    WANT(ALIGNMENT_ERROR, GNI_PostFma(f->ep, &d));
    for (int i = 0; i < 3; i++)
        WANT(SUCCESS, GNI_CeCreate(f->nic, &more[i]));
    WANT(ERROR_RESOURCE, GNI_CeCreate(f->nic, &more[3]));
    WANT(SUCCESS, GNI_CeDestroy(ce));
    BAD(GNI_CeDestroy(ce));
}

static void test_errors_and_channels_misused_are_refused(void **state)
{
    struct fixture *f = *state;
    gni_err_handle_t e;
    gni_error_event_t ev;
    gni_comp_chan_handle_t c;
    gni_cq_handle_t polling, fired;
    int fd;
    BAD(GNI_SubscribeErrors(f->nic, 0, 0xff, 0, NULL));
    WANT(ERROR_RESOURCE, GNI_SubscribeErrors(f->nic, 0, 0xff, UINT32_MAX, &e));
    WANT(SUCCESS, GNI_SubscribeErrors(f->nic, 0, 0xff, 0, &e));
    WANT(NOT_DONE, GNI_GetErrorEvent(e, &ev));
    BAD(GNI_GetErrorEvent(e, NULL));
    BAD(GNI_GetErrorMask(e, NULL));
    BAD(GNI_SetErrorMask(e, 1, NULL));
    BAD(GNI_WaitErrorEvents(e, NULL, 1, 1, &u1));
    BAD(GNI_WaitErrorEvents(e, &ev, 0, 1, &u1));
    BAD(GNI_WaitErrorEvents(e, &ev, 1, 1, NULL));
    WANT(SUCCESS, GNI_SetErrorPtag(e, 10));
    if (geteuid() != 0)
        WANT(PERMISSION_ERROR, GNI_SetErrorPtag(e, 11));
    WANT(SUCCESS, GNI_ReleaseErrors(e));
    BAD(GNI_ReleaseErrors(e));
    WANT(SUCCESS, GNI_CompChanCreate(f->nic, &c));
    WANT(SUCCESS, GNI_CqCreate(f->nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &polling));
    BAD(GNI_CqAttachCompChan(polling, c));
    BAD(GNI_CqAttachCompChan(f->source, NULL));
    BAD(GNI_CqArmCompChan(&f->source, 1)); // not attached
    BAD(GNI_CqArmCompChan(NULL, 1));
    WANT(SUCCESS, GNI_CqAttachCompChan(f->source, c));
    BAD(GNI_CqAttachCompChan(f->source, c));
    BAD(GNI_CqArmCompChan(&f->source, 0));
    BAD(GNI_CompChanFd(c, NULL));
    BAD(GNI_CompChanGetEvent(c, NULL));
    WANT(SUCCESS, GNI_CompChanFd(c, &fd));
    WANT(NOT_DONE, GNI_CompChanGetEvent(c, &fired));
    WANT(SUCCESS, GNI_CompChanDestroy(c));
    BAD(GNI_CompChanDestroy(c));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_handles_bad_answer_invalid_param),
        CASE(test_results_null_answer_invalid_param),
        CASE(test_devices_unknown_answer_as_documented),
        CASE(test_launcher_calls_answer_by_privilege),
        CASE(test_endpoint_in_wrong_state_is_refused),
        CASE(test_queue_misused_is_refused),
        CASE(test_queue_of_another_nic_is_refused),
        CASE(test_registration_misused_is_refused),
        CASE(test_rdma_misused_is_refused),
        CASE(test_fma_misused_is_refused),
        CASE(test_amo_misused_is_refused),
        CASE(test_chain_misused_is_refused),
        CASE(test_smsg_misused_is_refused),
        CASE(test_msgq_misused_is_refused),
        CASE(test_collectives_misused_are_refused),
        CASE(test_errors_and_channels_misused_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
