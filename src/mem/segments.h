// SPDX-License-Identifier: BSD-2-Clause
// Regions made of pieces that are not adjacent in memory (scatter/gather lists). Requests name them
// as one range; `addr` of the key's entry counts from the start of the first piece then, and
// WF_KEY_SEGMENTED in its flags tells peers to leave such keys to the owner.
#ifndef WF_MEM_SEGMENTS_H
#define WF_MEM_SEGMENTS_H

#include "mem/keys.h"
#include <sys/uio.h>

// Pieces that one list of addresses may have: what process_vm_readv() takes.
#define WF_MAX_IOV 1024

struct wf_segment {
    uint64_t at; // of its first byte in the region
    uint64_t addr;
};

struct wf_segments {
    uint32_t num;
    struct wf_segment seg[]; // num and one more, whose `at` is the length of the whole
};

// Copies the list. NULL: out of memory, or a piece is empty, wraps around, or begins or ends inside
// the region at an address that is no multiple of 8.
struct wf_segments *wf_segments_make(const struct iovec *pieces, uint32_t num);

// Appends the addresses of `req`, which wf_access_check() has admitted, to iov[*niov], up to
// WF_MAX_IOV of them. Returns how many bytes they cover: req->len, or less when there was no room.
// A null region gives one piece with address NULL.
uint64_t wf_access_map(struct wf_keys *k, const struct wf_access_req *req, struct iovec *iov,
                       int *niov);

// The one address of `req`, or NULL when it lies in two pieces.
void *wf_segments_address(const struct wf_segments *s, uint64_t at, uint64_t len);

#endif
