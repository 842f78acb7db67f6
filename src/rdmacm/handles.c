// SPDX-License-Identifier: BSD-2-Clause
#include "rdmacm/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// librdmacm keeps an index of 16 bits.
#define MAX_HANDLES 65535u

static int grow(struct rcm_handles *h)
{
    uint32_t len = h->len ? 2 * h->len : 64;
    if (len > MAX_HANDLES)
        len = MAX_HANDLES;
    if (len == h->len)
        return wf_refuse(ENOSPC, WF_R_LIMIT, "%u rdma_cm ids", len);
    void **slot = realloc(h->slot, len * sizeof(*slot));
    if (!slot)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "rdma_cm ids");
    memset(slot + h->len, 0, (len - h->len) * sizeof(*slot));
    h->slot = slot;
    h->len = len;
    return 0;
}

int rcm_handle_new(struct rcm_handles *h, void *object, uint32_t *out)
{
    while (h->low < h->len && h->slot[h->low])
        h->low++;
    if (h->low == h->len) {
        int rc = grow(h);
        if (rc)
            return rc;
    }
    h->slot[h->low] = object;
    *out = h->low++;
    return 0;
}

void *rcm_handle_find(const struct rcm_handles *h, uint32_t n)
{
    return n < h->len ? h->slot[n] : NULL;
}

void rcm_handle_free(struct rcm_handles *h, uint32_t n)
{
    h->slot[n] = NULL;
    if (n < h->low)
        h->low = n;
}
