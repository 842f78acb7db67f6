/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel-level face of uGNI, for code that was written to run inside a kernel (Lustre's gnilnd,
 * DVS). Here it is user code in the same library: handlers run on the library's own thread, with no
 * lock held. Calls mean what their user-level namesakes in gni_pub.h mean; only differences are
 * told.
 */
#ifndef GNI_KERNEL_H
#define GNI_KERNEL_H

#include <gni_pub.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GNI_ERRNO_FUNC_STR_LEN 100

/* The last failure of a NIC handle. `errno` must be a member name even where it is a macro. */
#pragma push_macro("errno")
#undef errno
typedef struct gni_errno {
    uint8_t valid;
    char func[GNI_ERRNO_FUNC_STR_LEN];
    int lineno;
    int errno;
    uint64_t data1;
    uint64_t data2;
    uint64_t data3;
    uint64_t data4;
} gni_errno_t;
#pragma pop_macro("errno")

/* Called when a queue has got as many events as it waits for. */
typedef void(gni_cq_event_hndlr_f)(uint32_t device_id, uint64_t data);

gni_return_t gni_cdm_create(IN uint32_t inst_id, IN uint8_t ptag, IN uint32_t cookie,
                            IN uint32_t modes, OUT gni_cdm_handle_t *cdm_hndl);
gni_return_t gni_cdm_destroy(IN gni_cdm_handle_t cdm_hndl);
/* Attaching registers nothing with anybody but this process. */
gni_return_t gni_cdm_attach(IN gni_cdm_handle_t cdm_hndl, IN uint32_t device_id,
                            OUT uint32_t *local_addr, OUT gni_nic_handle_t *nic_hndl);

gni_return_t gni_ep_create(IN gni_nic_handle_t nic_hndl, IN gni_cq_handle_t src_cq_hndl,
                           OUT gni_ep_handle_t *ep_hndl);
gni_return_t gni_ep_set_eventdata(IN gni_ep_handle_t ep_hndl, IN uint32_t local_event,
                                  IN uint32_t remote_event);
gni_return_t gni_ep_bind(IN gni_ep_handle_t ep_hndl, IN uint32_t remote_addr,
                         IN uint32_t remote_id);
gni_return_t gni_ep_unbind(IN gni_ep_handle_t ep_hndl);
gni_return_t gni_ep_destroy(IN gni_ep_handle_t ep_hndl);

gni_return_t gni_ep_postdata(IN gni_ep_handle_t ep_hndl, IN void *in_data, IN uint16_t data_len,
                             IN void *out_buf, IN uint16_t buf_size);
gni_return_t gni_ep_postdata_w_id(IN gni_ep_handle_t ep_hndl, IN void *in_data,
                                  IN uint16_t data_len, IN void *out_buf, IN uint16_t buf_size,
                                  IN uint64_t datagram_id);
gni_return_t gni_ep_postdata_test(IN gni_ep_handle_t ep_hndl, OUT gni_post_state_t *post_state,
                                  OUT uint32_t *remote_addr, OUT uint32_t *remote_id);
gni_return_t gni_ep_postdata_test_by_id(IN gni_ep_handle_t ep_hndl, IN uint64_t datagram_id,
                                        OUT gni_post_state_t *post_state, OUT uint32_t *remote_addr,
                                        OUT uint32_t *remote_id);
gni_return_t gni_ep_postdata_wait(IN gni_ep_handle_t ep_hndl, IN uint32_t timeout,
                                  OUT gni_post_state_t *post_state, OUT uint32_t *remote_addr,
                                  OUT uint32_t *remote_id);
gni_return_t gni_postdata_probe(IN gni_nic_handle_t nic_hndl, OUT uint32_t *remote_addr,
                                OUT uint32_t *remote_id);
gni_return_t gni_postdata_probe_by_id(IN gni_nic_handle_t nic_hndl, OUT uint64_t *datagram_id);
gni_return_t gni_postdata_probe_wait_by_id(IN gni_nic_handle_t nic_hndl, IN uint32_t timeout,
                                           OUT uint64_t *datagram_id);
gni_return_t gni_ep_postdata_cancel(IN gni_ep_handle_t ep_hndl);
gni_return_t gni_ep_postdata_cancel_by_id(IN gni_ep_handle_t ep_hndl, IN uint64_t datagram_id);

/* Addresses are virtual, GNI_MEM_PHYS_CONT and GNI_MEM_PHYS_SEGMENTS change nothing. */
gni_return_t gni_mem_register(IN gni_nic_handle_t nic_hndl, IN uint64_t address, IN uint64_t length,
                              IN gni_cq_handle_t dst_cq_hndl, IN uint32_t flags,
                              OUT gni_mem_handle_t *mem_hndl);
gni_return_t gni_mem_register_segments(IN gni_nic_handle_t nic_hndl,
                                       IN gni_mem_segment_t *mem_segments, IN uint32_t segments_cnt,
                                       IN gni_cq_handle_t dst_cq_hndl, IN uint32_t flags,
                                       OUT gni_mem_handle_t *mem_hndl);
/* hold_timeout: milliseconds for which the region number stays taken. */
gni_return_t gni_mem_deregister(IN gni_nic_handle_t nic_hndl, IN gni_mem_handle_t *mem_hndl,
                                IN int hold_timeout);
/* Ends such a hold. NO_MATCH: there is none (any more). */
gni_return_t gni_mem_mdd_release(IN gni_nic_handle_t nic_hndl, IN gni_mem_handle_t *mem_hndl);

/* delay_index: events between two calls of the handler; 0 for each. */
gni_return_t gni_cq_create(IN gni_nic_handle_t nic_hndl, IN uint32_t entry_count,
                           IN uint32_t delay_index, IN gni_cq_event_hndlr_f *event_handler,
                           IN uint64_t usr_event_data, OUT gni_cq_handle_t *cq_hndl);
gni_return_t gni_cq_destroy(IN gni_cq_handle_t cq_hndl);

gni_return_t gni_post_rdma(IN gni_ep_handle_t ep_hndl, IN gni_post_descriptor_t *post_descr);
gni_return_t gni_post_fma(IN gni_ep_handle_t ep_hndl, IN gni_post_descriptor_t *post_descr);
gni_return_t gni_get_completed(IN gni_cq_handle_t cq_hndl, IN gni_cq_entry_t event_data,
                               OUT gni_post_descriptor_t **post_descr);
gni_return_t gni_cq_get_event(IN gni_cq_handle_t cq_hndl, OUT gni_cq_entry_t *event_data);
gni_return_t gni_cq_error_str(IN gni_cq_entry_t entry, OUT void *buffer, IN uint32_t len);
gni_return_t gni_cq_error_recoverable(IN gni_cq_entry_t entry, OUT uint32_t *recoverable);

gni_return_t gni_smsg_buff_size_needed(IN gni_smsg_attr_t *smsg_attr, OUT unsigned int *size);
gni_return_t gni_smsg_init(IN gni_ep_handle_t ep_hndl, IN gni_smsg_attr_t *local_smsg_attr,
                           IN gni_smsg_attr_t *remote_smsg_attr);
gni_return_t gni_smsg_set_delivery_mode(IN gni_nic_handle_t nic_handle, IN uint16_t dlvr_mode);
gni_return_t gni_smsg_send(IN gni_ep_handle_t ep_hndl, IN void *header, IN uint32_t header_length,
                           IN void *data, IN uint32_t data_length, IN uint32_t msg_id);
gni_return_t gni_smsg_getnext(IN gni_ep_handle_t ep_hndl, OUT void **header);
gni_return_t gni_smsg_release(IN gni_ep_handle_t ep_hndl);
gni_return_t gni_smsg_set_max_retrans(IN gni_nic_handle_t nic_handle, IN uint16_t max_retrans);

/* EEQ_size 0: no queue, callbacks only. */
gni_return_t gni_subscribe_errors(IN gni_nic_handle_t nic_handle, IN gni_error_mask_t mask,
                                  IN uint32_t EEQ_size, IN void (*EQ_new_event)(gni_err_handle_t),
                                  IN void (*app_crit_err)(gni_err_handle_t),
                                  OUT gni_err_handle_t *err_handle);
gni_return_t gni_release_errors(IN gni_err_handle_t err_handle);
gni_return_t gni_get_error_mask(IN gni_err_handle_t err_handle, OUT gni_error_mask_t *mask);
gni_return_t gni_set_error_mask(IN gni_err_handle_t err_handle, IN gni_error_mask_t mask_in,
                                IN gni_error_mask_t *mask_out);
gni_return_t gni_get_error_event(IN gni_err_handle_t err_handle, IN gni_error_event_t *event);
gni_return_t gni_wait_error_events(IN gni_err_handle_t err_handle, IN gni_error_event_t *events,
                                   IN uint32_t events_size, IN uint32_t timeout,
                                   OUT uint32_t *num_events);
gni_return_t gni_set_error_ptag(IN gni_err_handle_t err_handle, IN uint8_t ptag);

/* Called with the milliseconds that a quiesce takes; null takes the callback away. */
gni_return_t gni_set_quiesce_callback(IN gni_nic_handle_t nic_hndl,
                                      IN void (*qsce_func)(gni_nic_handle_t, uint64_t));
uint32_t gni_get_quiesce_status(IN gni_nic_handle_t nic_hndl);
/* INVALID_STATE: nothing has failed yet. */
gni_return_t gni_get_errno(IN gni_nic_handle_t nic_hndl, OUT gni_errno_t *errno_ptr);

#ifdef __cplusplus
}
#endif

#endif
