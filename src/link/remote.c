// SPDX-License-Identifier: BSD-2-Clause
#include "link/remote.h"

#include <errno.h>
#include <stdbool.h>

// The part of src from `offset` on, at most `max` vectors.
static int tail_of(const struct wf_remote_payload *src, uint64_t offset, struct iovec *out)
{
    uint64_t left = src->len;
    int n = 0;
    for (int i = 0; i < src->niov && left; i++) {
        struct iovec v = src->iov[i];
        if (v.iov_len > left)
            v.iov_len = left;
        left -= v.iov_len;
        if (offset >= v.iov_len) {
            offset -= v.iov_len;
            continue;
        }
        v.iov_base = (char *)v.iov_base + offset;
        v.iov_len -= offset;
        offset = 0;
        out[n++] = v;
    }
    return n;
}

// The usual case: all of it with one call.
static bool copy_at_once(const struct wf_remote_payload *src, uint64_t offset,
                         const struct iovec *dst, int niov)
{
    struct iovec from[WF_REMOTE_IOV];
    uint64_t want = 0;
    for (int i = 0; i < niov; i++)
        want += dst[i].iov_len;
    if (offset > src->len || want > src->len - offset || niov > 1024)
        return false;
    int n = tail_of(src, offset, from);
    return process_vm_readv(src->pid, dst, (unsigned long)niov, from, (unsigned long)n, 0) ==
           (ssize_t)want;
}

// process_vm_readv stops early only where a page cannot be read; a second call tells why.
int wf_remote_copy(const struct wf_remote_payload *src, uint64_t offset, const struct iovec *dst,
                   int niov)
{
    struct iovec from[WF_REMOTE_IOV];
    if (copy_at_once(src, offset, dst, niov))
        return 0;
    for (int i = 0; i < niov; i++) {
        uint64_t done = 0;
        if (offset > src->len || dst[i].iov_len > src->len - offset)
            return -ERANGE;
        while (done < dst[i].iov_len) {
            struct iovec to = {(char *)dst[i].iov_base + done, dst[i].iov_len - done};
            int n = tail_of(src, offset, from);
            ssize_t got = process_vm_readv(src->pid, &to, 1, from, (unsigned long)n, 0);
            if (got <= 0)
                return got < 0 && errno == EPERM ? -EPERM : -EFAULT;
            done += (uint64_t)got;
            offset += (uint64_t)got;
        }
    }
    return 0;
}
