// SPDX-License-Identifier: BSD-2-Clause
// RDMA WRITE and READ executed by the initiator in the memory of a process on the same host, so
// that a target which computes, spins or is stopped is served all the same.
#ifndef WF_LINK_ONESIDED_H
#define WF_LINK_ONESIDED_H

#include "link/fabric.h"
#include <sys/uio.h>

// One request, or one chunk of it. Every chunk names the same psn; `va`, iov and len are the
// chunk's own. The last chunk sets `final`, which takes the request's npsn PSNs and counts its MSN.
struct wf_onesided {
    const struct wf_peer *peer;
    uint32_t dqpn, sqpn;
    uint32_t psn, npsn;
    uint32_t rkey;
    uint64_t va;
    const struct iovec *iov; // local memory
    int niov;
    uint64_t len;
    bool final;
};

// 0: done. -EAGAIN: nothing was decided here, send the request through the ring so that the
// responder checks it and answers: a key that is wrong, a page that is missing on either side, a
// QP that is not ready. Some bytes of a WRITE may have been written already; the repeated request
// writes them again.
int wf_onesided_write(const struct wf_onesided *op);
int wf_onesided_read(const struct wf_onesided *op);

// Payload that a connected QP of this peer left in place for our QP dqpn: may it still be copied?
// NULL: the QP no longer sends, so the payload counts as lost. Else the QP stays until the hazard
// is given back.
_Atomic uint32_t *wf_sender_hold(const struct wf_peer *peer, uint32_t sqpn, uint32_t dqpn);
// false: the owner did not wait for us, so what was copied may not be the payload.
bool wf_sender_release(const struct wf_peer *peer, _Atomic uint32_t *hazard, uint32_t sqpn);

// The owner of `region` has withdrawn a QP from the directory: wait, not long, for peers that copy
// its payload.
void wf_sender_wait(struct wf_region *region, uint32_t qpn);

// The owner of `region` has cleared the entry of `key`: wait until no peer copies under it.
void wf_hazard_wait(struct wf_region *region, uint32_t key);

#endif
