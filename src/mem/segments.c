// SPDX-License-Identifier: BSD-2-Clause
#include "mem/segments.h"

#include <stdlib.h>

struct wf_segments *wf_segments_make(const struct iovec *pieces, uint32_t num)
{
    struct wf_segments *s = malloc(sizeof(*s) + ((size_t)num + 1) * sizeof(s->seg[0]));
    uint64_t at = 0;
    if (!s)
        return NULL;
    s->num = num;
    for (uint32_t i = 0; i < num; i++) {
        uint64_t addr = (uintptr_t)pieces[i].iov_base, len = pieces[i].iov_len;
        s->seg[i] = (struct wf_segment){at, addr};
        // Inside the region an aligned atomic must not lie in two pieces.
        bool odd = (i && addr % 8) || (i + 1 < num && (addr + len) % 8);
        if (odd || !len || addr + len < addr || at + len < at) {
            free(s);
            return NULL;
        }
        at += len;
    }
    s->seg[num] = (struct wf_segment){at, 0};
    return s;
}

// The piece that holds byte `at` of the region; at < its length.
static uint32_t find(const struct wf_segments *s, uint64_t at)
{
    uint32_t low = 0, high = s->num;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (s->seg[mid].at <= at)
            low = mid;
        else
            high = mid;
    }
    return low;
}

void *wf_segments_address(const struct wf_segments *s, uint64_t at, uint64_t len)
{
    uint32_t i = find(s, at);
    if (at + len > s->seg[i + 1].at)
        return NULL;
    return (void *)(uintptr_t)(s->seg[i].addr + (at - s->seg[i].at));
}

static uint64_t map_pieces(const struct wf_segments *s, uint64_t at, uint64_t len,
                           struct iovec *iov, int *niov)
{
    uint64_t left = len;
    for (uint32_t i = find(s, at); left && i < s->num && *niov < WF_MAX_IOV; i++) {
        uint64_t skip = at - s->seg[i].at, n = s->seg[i + 1].at - at;
        n = n < left ? n : left;
        iov[(*niov)++] = (struct iovec){(void *)(uintptr_t)(s->seg[i].addr + skip), n};
        at += n;
        left -= n;
    }
    return len - left;
}

uint64_t wf_access_map(struct wf_keys *k, const struct wf_access_req *req, struct iovec *iov,
                       int *niov)
{
    const struct wf_key_entry *e = &k->entries[WF_KEY_INDEX(req->key)];
    const struct wf_segments *s = wf_key_segments(k, WF_KEY_INDEX(req->key));
    uint64_t at = e->addr + (req->addr - e->iova);
    if (s)
        return map_pieces(s, at, req->len, iov, niov);
    if (*niov >= WF_MAX_IOV)
        return 0;
    bool null = k->info[WF_KEY_INDEX(req->key)].kind == WF_KEY_NULL_MR;
    iov[(*niov)++] = (struct iovec){null ? NULL : (void *)(uintptr_t)at, req->len};
    return req->len;
}
