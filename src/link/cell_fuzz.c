// SPDX-License-Identifier: BSD-2-Clause
// Cells and headers of the payload area as a hostile sender would write them.
#include "link/shm_ring.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t *area;
    struct wf_cell cell = {0};
    struct wf_cell_parts parts;
    struct wf_pkt pkt;
    volatile uint8_t sum = 0;
    if (!area)
        area = calloc(1, WF_RING_BYTES);
    if (!area || size < sizeof(cell))
        return 0;
    memcpy((void *)&cell, data, sizeof(cell));
    size -= sizeof(cell);
    if (size > WF_RING_BYTES)
        size = WF_RING_BYTES;
    // At its very end, so that the sanitizer sees a step too far.
    memcpy(area + WF_RING_BYTES - size, data + sizeof(cell), size);
    if (wf_cell_decode(&cell, area, &parts, &pkt))
        return 0;
    for (int i = 0; i < pkt.niov; i++)
        for (size_t k = 0; k < pkt.iov[i].iov_len; k++)
            sum = (uint8_t)(sum + ((uint8_t *)pkt.iov[i].iov_base)[k]);
    if (pkt.sgid)
        sum = (uint8_t)(sum + pkt.sgid->raw[0] + pkt.dgid->raw[15]);
    if (pkt.remote && (pkt.remote->niov > WF_REMOTE_IOV || pkt.remote->len != pkt.len))
        abort();
    return 0;
}
