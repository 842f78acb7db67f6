// SPDX-License-Identifier: BSD-2-Clause
// The public headers are C++ too, and a client written from the RFC's declarations alone compiles.
#include <ddk/wdm.h>

#include <iba/ibverbs.h>

#include <weft/iba.h>

NTSTATUS poll_as_declared(IB_VERBS_INTERFACE_STANDARD *verbs, IB_CQ *cq, IB_WC *a, IB_WC *b)
{
    IB_WC *wc[] = {a, b};
    LONG count = 2;
    return verbs->PollCq(cq, &count, wc);
}

NTSTATUS destroy_either_way(IB_VERBS_INTERFACE_STANDARD *verbs, IB_MW *mw, IB_MR *as_declared,
                            IRP *irp)
{
    NTSTATUS status = verbs->DestroyMw(mw, irp);
    return status ? status : verbs->DestroyMw(as_declared, irp);
}

void bind_either_way(IB_BIND_WR *wr, IB_MR *mr, IB_MR_HANDLE *as_declared)
{
    wr->pMr = mr;
    wr->pMr = as_declared;
}

int main()
{
    return sizeof(IB_VERBS_INTERFACE_STANDARD) != 392 || sizeof(IB_MR) != 72 ||
           IB_AC_RDMA_READ != 1 || IB_WC_RECV != 128;
}
