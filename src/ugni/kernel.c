// SPDX-License-Identifier: BSD-2-Clause
// Kernel-level calls that mean what their user-level namesakes mean. Those that differ stand beside
// them: gni_cdm_create in cdm.c, gni_cq_create in cq.c, gni_mem_deregister and gni_mem_mdd_release
// in mem.c, gni_subscribe_errors in errors.c, the quiesce calls in job.c.
#include "ugni/state.h"

gni_return_t gni_cdm_destroy(gni_cdm_handle_t cdm_hndl)
{
    return GNI_CdmDestroy(cdm_hndl);
}

gni_return_t gni_cdm_attach(gni_cdm_handle_t cdm_hndl, uint32_t device_id, uint32_t *local_addr,
                            gni_nic_handle_t *nic_hndl)
{
    return GNI_CdmAttach(cdm_hndl, device_id, local_addr, nic_hndl);
}

gni_return_t gni_ep_create(gni_nic_handle_t nic_hndl, gni_cq_handle_t src_cq_hndl,
                           gni_ep_handle_t *ep_hndl)
{
    return GNI_EpCreate(nic_hndl, src_cq_hndl, ep_hndl);
}

gni_return_t gni_ep_set_eventdata(gni_ep_handle_t ep_hndl, uint32_t local_event,
                                  uint32_t remote_event)
{
    return GNI_EpSetEventData(ep_hndl, local_event, remote_event);
}

gni_return_t gni_ep_bind(gni_ep_handle_t ep_hndl, uint32_t remote_addr, uint32_t remote_id)
{
    return GNI_EpBind(ep_hndl, remote_addr, remote_id);
}

gni_return_t gni_ep_unbind(gni_ep_handle_t ep_hndl)
{
    return GNI_EpUnbind(ep_hndl);
}

gni_return_t gni_ep_destroy(gni_ep_handle_t ep_hndl)
{
    return GNI_EpDestroy(ep_hndl);
}

gni_return_t gni_ep_postdata(gni_ep_handle_t ep_hndl, void *in_data, uint16_t data_len,
                             void *out_buf, uint16_t buf_size)
{
    return GNI_EpPostData(ep_hndl, in_data, data_len, out_buf, buf_size);
}

gni_return_t gni_ep_postdata_w_id(gni_ep_handle_t ep_hndl, void *in_data, uint16_t data_len,
                                  void *out_buf, uint16_t buf_size, uint64_t datagram_id)
{
    return GNI_EpPostDataWId(ep_hndl, in_data, data_len, out_buf, buf_size, datagram_id);
}

gni_return_t gni_ep_postdata_test(gni_ep_handle_t ep_hndl, gni_post_state_t *post_state,
                                  uint32_t *remote_addr, uint32_t *remote_id)
{
    return GNI_EpPostDataTest(ep_hndl, post_state, remote_addr, remote_id);
}

gni_return_t gni_ep_postdata_test_by_id(gni_ep_handle_t ep_hndl, uint64_t datagram_id,
                                        gni_post_state_t *post_state, uint32_t *remote_addr,
                                        uint32_t *remote_id)
{
    return GNI_EpPostDataTestById(ep_hndl, datagram_id, post_state, remote_addr, remote_id);
}

gni_return_t gni_ep_postdata_wait(gni_ep_handle_t ep_hndl, uint32_t timeout,
                                  gni_post_state_t *post_state, uint32_t *remote_addr,
                                  uint32_t *remote_id)
{
    return GNI_EpPostDataWait(ep_hndl, timeout, post_state, remote_addr, remote_id);
}

gni_return_t gni_postdata_probe(gni_nic_handle_t nic_hndl, uint32_t *remote_addr,
                                uint32_t *remote_id)
{
    return GNI_PostDataProbe(nic_hndl, remote_addr, remote_id);
}

gni_return_t gni_postdata_probe_by_id(gni_nic_handle_t nic_hndl, uint64_t *datagram_id)
{
    return GNI_PostDataProbeById(nic_hndl, datagram_id);
}

gni_return_t gni_postdata_probe_wait_by_id(gni_nic_handle_t nic_hndl, uint32_t timeout,
                                           uint64_t *datagram_id)
{
    return GNI_PostdataProbeWaitById(nic_hndl, timeout, datagram_id);
}

gni_return_t gni_ep_postdata_cancel(gni_ep_handle_t ep_hndl)
{
    return GNI_EpPostDataCancel(ep_hndl);
}

gni_return_t gni_ep_postdata_cancel_by_id(gni_ep_handle_t ep_hndl, uint64_t datagram_id)
{
    return GNI_EpPostDataCancelById(ep_hndl, datagram_id);
}

gni_return_t gni_cq_destroy(gni_cq_handle_t cq_hndl)
{
    return GNI_CqDestroy(cq_hndl);
}

gni_return_t gni_post_rdma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    return GNI_PostRdma(ep_hndl, post_descr);
}

gni_return_t gni_post_fma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    return GNI_PostFma(ep_hndl, post_descr);
}

gni_return_t gni_get_completed(gni_cq_handle_t cq_hndl, gni_cq_entry_t event_data,
                               gni_post_descriptor_t **post_descr)
{
    return GNI_GetCompleted(cq_hndl, event_data, post_descr);
}

gni_return_t gni_cq_get_event(gni_cq_handle_t cq_hndl, gni_cq_entry_t *event_data)
{
    return GNI_CqGetEvent(cq_hndl, event_data);
}

gni_return_t gni_cq_error_str(gni_cq_entry_t entry, void *buffer, uint32_t len)
{
    return GNI_CqErrorStr(entry, buffer, len);
}

gni_return_t gni_cq_error_recoverable(gni_cq_entry_t entry, uint32_t *recoverable)
{
    return GNI_CqErrorRecoverable(entry, recoverable);
}

gni_return_t gni_smsg_buff_size_needed(gni_smsg_attr_t *smsg_attr, unsigned int *size)
{
    return GNI_SmsgBufferSizeNeeded(smsg_attr, size);
}

gni_return_t gni_smsg_init(gni_ep_handle_t ep_hndl, gni_smsg_attr_t *local_smsg_attr,
                           gni_smsg_attr_t *remote_smsg_attr)
{
    return GNI_SmsgInit(ep_hndl, local_smsg_attr, remote_smsg_attr);
}

gni_return_t gni_smsg_set_delivery_mode(gni_nic_handle_t nic_handle, uint16_t dlvr_mode)
{
    return GNI_SmsgSetDeliveryMode(nic_handle, dlvr_mode);
}

gni_return_t gni_smsg_send(gni_ep_handle_t ep_hndl, void *header, uint32_t header_length,
                           void *data, uint32_t data_length, uint32_t msg_id)
{
    return GNI_SmsgSend(ep_hndl, header, header_length, data, data_length, msg_id);
}

gni_return_t gni_smsg_getnext(gni_ep_handle_t ep_hndl, void **header)
{
    return GNI_SmsgGetNext(ep_hndl, header);
}

gni_return_t gni_smsg_release(gni_ep_handle_t ep_hndl)
{
    return GNI_SmsgRelease(ep_hndl);
}

gni_return_t gni_smsg_set_max_retrans(gni_nic_handle_t nic_handle, uint16_t max_retrans)
{
    return GNI_SmsgSetMaxRetrans(nic_handle, max_retrans);
}

gni_return_t gni_release_errors(gni_err_handle_t err_handle)
{
    return GNI_ReleaseErrors(err_handle);
}

gni_return_t gni_get_error_mask(gni_err_handle_t err_handle, gni_error_mask_t *mask)
{
    return GNI_GetErrorMask(err_handle, mask);
}

gni_return_t gni_set_error_mask(gni_err_handle_t err_handle, gni_error_mask_t mask_in,
                                gni_error_mask_t *mask_out)
{
    return GNI_SetErrorMask(err_handle, mask_in, mask_out);
}

gni_return_t gni_get_error_event(gni_err_handle_t err_handle, gni_error_event_t *event)
{
    return GNI_GetErrorEvent(err_handle, event);
}

gni_return_t gni_wait_error_events(gni_err_handle_t err_handle, gni_error_event_t *events,
                                   uint32_t events_size, uint32_t timeout, uint32_t *num_events)
{
    return GNI_WaitErrorEvents(err_handle, events, events_size, timeout, num_events);
}

gni_return_t gni_set_error_ptag(gni_err_handle_t err_handle, uint8_t ptag)
{
    return GNI_SetErrorPtag(err_handle, ptag);
}

gni_return_t gni_mem_register(gni_nic_handle_t nic_hndl, uint64_t address, uint64_t length,
                              gni_cq_handle_t dst_cq_hndl, uint32_t flags,
                              gni_mem_handle_t *mem_hndl)
{
    return GNI_MemRegister(nic_hndl, address, length, dst_cq_hndl, flags, UINT32_MAX, mem_hndl);
}

gni_return_t gni_mem_register_segments(gni_nic_handle_t nic_hndl, gni_mem_segment_t *mem_segments,
                                       uint32_t segments_cnt, gni_cq_handle_t dst_cq_hndl,
                                       uint32_t flags, gni_mem_handle_t *mem_hndl)
{
    return GNI_MemRegisterSegments(nic_hndl, mem_segments, segments_cnt, dst_cq_hndl, flags,
                                   UINT32_MAX, mem_hndl);
}

gni_return_t gni_get_errno(gni_nic_handle_t nic_hndl, gni_errno_t *errno_ptr)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    if (nic && errno_ptr) {
        rc = nic->last.valid ? GNI_RC_SUCCESS : GNI_RC_INVALID_STATE;
        if (rc == GNI_RC_SUCCESS)
            *errno_ptr = nic->last;
    }
    wf_gni_unlock();
    return rc;
}
