// SPDX-License-Identifier: BSD-2-Clause
// QueryQp implemented with a callback and no IRP anywhere: the other half of the experiment in
// docs/irp-or-callback.md. Not part of the interface.
#ifndef WF_IBA_NATIVE_H
#define WF_IBA_NATIVE_H

#include "weft/iba_cb.h"

NTSTATUS wf_iba_native_query_qp(IB_QP *qp, IB_QP_ATTR *attr, WEFT_IBA_DONE done, PVOID context);

#endif
