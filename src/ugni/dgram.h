// SPDX-License-Identifier: BSD-2-Clause
// Datagrams. A post is a session of its NIC. A bound post sends POST and waits for the peer's POST;
// an unbound one waits for any POST and answers it with MATCH. What comes before its session is
// parked. See docs/ugni.md for the exchange step by step.
#ifndef WF_UGNI_DGRAM_H
#define WF_UGNI_DGRAM_H

#include "ugni/am.h"
#include <gni_pub.h>

struct wf_gni_peer;

enum wf_gni_dgram_kind { WF_GNI_DGRAM_POST = 1, WF_GNI_DGRAM_MATCH, WF_GNI_DGRAM_CANCEL };

void wf_gni_dgram_arrived(struct wf_gni_peer *from, const struct wf_gni_am *am,
                          const void *payload);
void wf_gni_dgram_nic_attached(struct gni_nic *nic); // takes what came before it
void wf_gni_dgram_evict(struct gni_nic *nic);        // sends sleeping threads away
void wf_gni_dgram_nic_release(struct gni_nic *nic);
void wf_gni_dgram_ep_release(struct gni_ep *ep); // cancels
// What was posted to it waits for the next process with that PE.
void wf_gni_dgram_peer_died(uint32_t pe);

#endif
