// SPDX-License-Identifier: BSD-2-Clause
// Checking posts; postcheck.c. Each returns GNI_RC_SUCCESS or what the call answers.
#ifndef WF_UGNI_POST_H
#define WF_UGNI_POST_H

#include "ugni/state.h"

gni_return_t wf_gni_check_endpoint(const struct gni_ep *ep);
gni_return_t wf_gni_check_rdma(const struct gni_ep *ep, const gni_post_descriptor_t *d);
// Put, get and AMO through FMA; the event modes are the caller's to check.
gni_return_t wf_gni_check_fma(const struct gni_ep *ep, const gni_post_descriptor_t *d);
gni_return_t wf_gni_check_modes(const struct gni_ep *ep, const gni_post_descriptor_t *d, bool rdma);
// The queue of the post's source events, NULL when it makes none.
gni_return_t wf_gni_source_queue(const struct gni_ep *ep, gni_post_descriptor_t *d, bool rdma,
                                 struct gni_cq **out);

#endif
