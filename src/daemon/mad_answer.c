// SPDX-License-Identifier: BSD-2-Clause
// Answers to CM datagrams that no process of this host owns (IBA 12.9.8, 12.11): as if weftd were
// the CM that does not know the id.
#include "base/bytes.h"
#include "daemon/daemon.h"
#include "daemon/mad.h"

#include <string.h>

#define REJ_INVALID_SERVICE 8
#define SIDR_UNSUPPORTED    1

static struct wf_writer start(const struct wf_fmsg *in, struct wf_fmsg *out, uint16_t attr)
{
    memset(out->mad, 0, sizeof(out->mad));
    memcpy(out->mad, in->mad, 16); // versions, class, method and transaction id are the request's
    memset(out->mad + 4, 0, 4);    // status and class-specific are not
    struct wf_writer w = wf_writer_of(out->mad + 16, MAD_LEN - 16);
    wf_put_u16(&w, attr);
    wf_put_zero(&w, 6);
    return w;
}

bool mad_answer(const struct wf_fmsg *in, struct wf_fmsg *out)
{
    struct wf_reader r = wf_reader_of(in->mad + MAD_DATA, MAD_LEN - MAD_DATA);
    uint32_t local = wf_get_u32(&r), remote = wf_get_u32(&r);
    struct wf_writer w;
    *out = *in;
    switch (mad_attr(in->mad)) {
    case MAD_REQ:
        w = start(in, out, MAD_REJ);
        wf_put_u32(&w, 0);
        wf_put_u32(&w, local);
        wf_put_u16(&w, 0); // a REQ is rejected, no additional information
        wf_put_u16(&w, REJ_INVALID_SERVICE);
        break;
    case MAD_SIDR_REQ:
        w = start(in, out, MAD_SIDR_REP);
        wf_put_u32(&w, local);
        wf_put_u8(&w, SIDR_UNSUPPORTED);
        wf_put_zero(&w, 7);
        wf_put_bytes(&w, in->mad + MAD_SERVICE_ID, 8);
        break;
    case MAD_DREQ:
        w = start(in, out, MAD_DREP);
        wf_put_u32(&w, remote);
        wf_put_u32(&w, local);
        break;
    default:
        return false;
    }
    memcpy(out->dgid, in->sgid, 16);
    memcpy(out->sgid, in->dgid, 16);
    return wf_writer_ok(&w);
}
