// SPDX-License-Identifier: BSD-2-Clause
#include "wire/codec.h"

#include <errno.h>

int wf_packet_decode(const void *bth, size_t len, struct wf_pkt *out, struct iovec *payload_iov)
{
    if (len < WF_BTH_LEN + WF_ICRC_LEN || len % 4 || len > UINT16_MAX)
        return -EBADMSG;
    struct wf_reader r = wf_reader_of(bth, len - WF_ICRC_LEN);
    struct wf_bth_extra extra;
    *out = (struct wf_pkt){.npsn = 1, .iov = payload_iov};
    wf_get_bth(&r, out, &extra);
    const struct wf_opcode_info *info = wf_opcode_info(out->opcode);
    if (!info->name || extra.tver != 0)
        return -EBADMSG;
    wf_get_ext(&r, info->flags, out);
    if (!wf_reader_ok(&r) || r.left < extra.pad || (extra.pad && !(info->flags & WF_F_PAYLOAD)))
        return -EBADMSG;
    out->len = (uint32_t)(r.left - extra.pad);
    if (out->len && !(info->flags & WF_F_PAYLOAD))
        return -EBADMSG;
    // A packet of nothing but pad is not how a sender would round up zero bytes.
    if (!out->len && extra.pad)
        return -EBADMSG;
    *payload_iov = (struct iovec){.iov_base = (void *)(uintptr_t)r.p, .iov_len = out->len};
    out->niov = out->len != 0;
    return 0;
}

int wf_packet_encode_headers(const struct wf_pkt *pkt, uint8_t *buf, size_t room)
{
    const struct wf_opcode_info *info = wf_opcode_info(pkt->opcode);
    if (!info->name)
        return -EINVAL;
    struct wf_writer w = wf_writer_of(buf, room);
    wf_put_bth(&w, pkt, &(struct wf_bth_extra){.pad = (uint8_t)wf_packet_pad(pkt->len)});
    wf_put_ext(&w, info->flags, pkt);
    return wf_writer_ok(&w) ? info->hdr_len : -ENOSPC;
}
