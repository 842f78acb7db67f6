// SPDX-License-Identifier: BSD-2-Clause
// Peers on other hosts: reliable connections of the engine, made on demand over the connection
// manager. A process listens on service id WF_GNI_SERVICE + slot; private data of REQ and REP is
// struct wf_gni_greeting. Each message of am.h is one SEND.
#ifndef WF_UGNI_RC_H
#define WF_UGNI_RC_H

#include "ugni/peer.h"

#define WF_GNI_SERVICE        0x100057474e490000ull // 'W' 'G' 'N' 'I', then the slot
#define WF_GNI_GREETING_MAGIC 0x57474e49u

// Big-endian on the wire.
struct wf_gni_greeting {
    uint32_t magic;
    uint32_t version; // WF_GNI_AM_VERSION
    uint32_t pe;      // of who sends it
    uint32_t order;   // WF_GNI_ORDER as it lies in the sender's memory: messages are host order
};
#define WF_GNI_ORDER 0x01020304u

// The low 24 bits of this host's IPv4 address: the upper part of its PE addresses.
uint32_t wf_gni_host_part(void);
// The IPv4 address of a host part: the octet that PEs leave out is this host's own.
uint32_t wf_gni_host_address(uint32_t host_part);

// Start the engine and listen; called by the serving thread without the lock, may take seconds.
// Hosts with nothing but loopback are not reached from outside and skip it.
void wf_gni_rc_start(void);
// 0: the connection is under way and messages wait for it; -errno: there is no way.
int wf_gni_rc_connect(struct wf_gni_peer *peer);
// Take in what arrived and what was sent.
void wf_gni_rc_poll(void);
// The thread is about to sleep: have it woken by what comes. True when something is there already.
bool wf_gni_rc_arm(void);
// When wf_gni_rc_poll() must be called even if nothing arrives.
uint64_t wf_gni_rc_next(void);
void wf_gni_rc_forget(void); // in a forked child

#endif
