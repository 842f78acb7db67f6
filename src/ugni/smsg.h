// SPDX-License-Identifier: BSD-2-Clause
// Short messages. A mailbox lies in the receiver's registered memory:
//
//   64 bytes of control: how many of *our* messages the peer has released (its credit returns)
//   mbox_maxcredit slots of 16 bytes of header and msg_maxsize bytes
//
// Message k goes to slot k mod credits, and the header's seq, written last, becomes k + 1. All
// state that a peer may touch before GNI_SmsgInit() lies in this memory, which its owner zeroed.
#ifndef WF_UGNI_SMSG_H
#define WF_UGNI_SMSG_H

#include "ugni/am.h"
#include <gni_pub.h>

void wf_gni_smsg_release(struct gni_ep *ep);
void wf_gni_smsg_arrived(const struct wf_gni_am *am, const void *payload);
void wf_gni_smsg_credit(const struct wf_gni_am *am);

#endif
