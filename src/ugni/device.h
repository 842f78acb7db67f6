// SPDX-License-Identifier: BSD-2-Clause
// The one device there is.
#ifndef WF_UGNI_DEVICE_H
#define WF_UGNI_DEVICE_H

#include <gni_pub.h>
#include <stdbool.h>

#define WF_GNI_DEVICE_ID 0u

// Aries, or Gemini when WEFT_GNI_DEVICE=gemini.
gni_nic_device_t wf_gni_device_type(void);

// The protection tag that belongs to a cookie: what GNI_FIND_ALLOC_PTAG chooses.
uint8_t wf_gni_ptag_of(uint32_t cookie);

#endif
