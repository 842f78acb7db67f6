// SPDX-License-Identifier: BSD-2-Clause
// The public headers as C++ sees them, and values that programs compile in.
#include <rdma/ib_cm.h>
#include <weft/ib.h>

static_assert(IB_CM_SIDR_REQ_RCVD == 15, "states");
static_assert(IB_CM_SIDR_REP_RECEIVED == 17, "events");
static_assert(IB_CM_REJ_INVALID_ALT_FLOW_LABEL == 33, "reasons");
static_assert(IB_CM_APR_INVALID_SL == 13, "APR status");
static_assert(IB_SIDR_UNSUPPORTED_VERSION == 5, "SIDR status");
static_assert(IB_WC_RESP_TIMEOUT_ERR == 20, "send status");
static_assert(IB_QP_DEST_QPN == 1 << 20, "masks");
static_assert(sizeof(struct ib_mad_hdr) == 24, "MAD header");

int main()
{
    return 0;
}
