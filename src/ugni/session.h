// SPDX-License-Identifier: BSD-2-Clause
// Sessions of datagrams: dgram.c makes and matches them, dgramtest.c tells their state.
#ifndef WF_UGNI_SESSION_H
#define WF_UGNI_SESSION_H

#include "ugni/state.h"

struct wf_gni_session {
    struct gni_ep *ep;
    bool bound, has_id;
    bool sent;       // bound: POST went out
    uint32_t pe, id; // the peer; of an unbound one since the match
    uint64_t dgram_id, token;
    gni_post_state_t state;
    uint8_t in[GNI_DATAGRAM_MAXSIZE], got[GNI_DATAGRAM_MAXSIZE];
    uint16_t in_len, got_len, out_size;
    void *out;
    struct wf_gni_session *prev, *next;
};

struct wf_gni_parked {
    uint32_t pe, id;         // who posted
    uint32_t dst_id, cookie; // to which domain
    uint8_t ptag;
    uint64_t token;
    uint16_t len;
    uint8_t data[GNI_DATAGRAM_MAXSIZE];
    struct wf_gni_parked *prev, *next;
};

// A thread that waits; unused while waiters is 0.
struct wf_gni_sleeper {
    int fd;
    uint32_t waiters;
    struct wf_gni_sleeper *next;
};

static inline bool wf_gni_session_final(const struct wf_gni_session *s)
{
    return s->state != GNI_POST_PENDING;
}

struct wf_gni_parked *wf_gni_parked_from(struct gni_nic *nic, uint32_t pe, uint32_t id);
// Forget a session; its endpoint may post again.
void wf_gni_session_end(struct gni_nic *nic, struct wf_gni_session *s);
// Cancel it as its owner; the session stays, or ends when it was an unmatched wildcard.
void wf_gni_session_cancel(struct gni_nic *nic, struct wf_gni_session *s);

#endif
