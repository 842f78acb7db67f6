// SPDX-License-Identifier: BSD-2-Clause
// Whatever decodes must encode to the same headers, but for reserved bits, which are sent as zero.
#include "wire/codec.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wf_pkt pkt, again;
    struct iovec iov, iov2;
    if (wf_packet_decode(data, size, &pkt, &iov))
        return 0;
    uint8_t buf[WF_HDR_MAX + UINT16_MAX];
    int hdr = wf_packet_encode_headers(&pkt, buf, sizeof(buf));
    if (hdr < 0 || (const uint8_t *)iov.iov_base != data + hdr)
        abort();
    memcpy(buf + hdr, data + hdr, size - (size_t)hdr);
    if (wf_packet_decode(buf, size, &again, &iov2) || iov2.iov_len != iov.iov_len)
        abort();
    again.iov = pkt.iov;
    if (memcmp(&again, &pkt, sizeof(pkt)) != 0)
        abort();
    return 0;
}
