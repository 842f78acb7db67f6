// SPDX-License-Identifier: BSD-2-Clause
// Peers on other hosts: reliable connections of the engine, made on demand.
#ifndef WF_UGNI_RC_H
#define WF_UGNI_RC_H

#include "ugni/peer.h"

// The low 24 bits of this host's IPv4 address: the upper part of its PE addresses.
uint32_t wf_gni_host_part(void);

// 0 and a connected peer, or -errno.
int wf_gni_rc_connect(struct wf_gni_peer *peer);
// Take in what arrived and what was sent.
void wf_gni_rc_poll(void);
// When wf_gni_rc_poll() must be called even if nothing arrives.
uint64_t wf_gni_rc_next(void);

#endif
