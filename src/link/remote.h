// SPDX-License-Identifier: BSD-2-Clause
// Payload that still lies in the sender's memory (WF_CELL_REMOTE), fetched once, straight to where
// it belongs.
#ifndef WF_LINK_REMOTE_H
#define WF_LINK_REMOTE_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define WF_REMOTE_IOV 32

struct wf_remote_payload {
    pid_t pid;
    int niov;
    uint64_t len;
    struct iovec iov[WF_REMOTE_IOV]; // addresses in the sender
};

// Fill dst[0..niov) with the payload from `offset` on. 0; -ERANGE past its end; -EFAULT when the
// sender's memory is gone or the sender is; -EPERM when the kernel forbids it.
int wf_remote_copy(const struct wf_remote_payload *src, uint64_t offset, const struct iovec *dst,
                   int niov);

#endif
