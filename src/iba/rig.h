// SPDX-License-Identifier: BSD-2-Clause
// For tests of the async verbs: an engine of one process with the loop link and two GIDs, a version
// 2 table on it, and calls that wait for their IRP and check that it is completed exactly once.
#ifndef WF_IBA_RIG_H
#define WF_IBA_RIG_H

#include "iba/iba.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

// How verbs are called: at PASSIVE_LEVEL, at DISPATCH_LEVEL, or with every request deferred.
enum rig_mode { RIG_PASSIVE, RIG_DISPATCH, RIG_PEND, RIG_MODES };

struct rig {
    struct wf_hca *hca;
    KIRQL irql; // of the test, while a verb runs
    WEFT_IB_VERBS_INTERFACE_2 t;
    IB_VERBS_INTERFACE_STANDARD *v; // &t.v1
    enum rig_mode mode;
};

struct rig_call {
    PIRP irp;
    KEVENT done;
    LONG volatile completions;
    NTSTATUS status;
    ULONG_PTR info;
    BOOLEAN pending;
    KIRQL irql;
};

void rig_open(struct rig *r);
void rig_close(struct rig *r);

// An IRP whose completion is recorded in `c`.
PIRP rig_irp(struct rig_call *c);
// What the verb returned, to what its IRP ended with. Waits, checks, frees the IRP.
NTSTATUS rig_end(struct rig_call *c, NTSTATUS returned);

// A call in r->mode: the IRP for the verb, then what the verb returned.
//     PIRP irp = rig_begin(r, &c);
//     status = rig_done(r, &c, v->CreatePd(ca, NULL, irp));
PIRP rig_begin(struct rig *r, struct rig_call *c);
NTSTATUS rig_done(struct rig *r, struct rig_call *c, NTSTATUS returned);
// rig_done() for calls that must succeed; gives Information.
ULONG_PTR rig_ok(struct rig *r, struct rig_call *c, NTSTATUS returned);

// The usual set of objects.
struct rig_set {
    IB_CA *ca;
    IB_PD *pd;
    IB_CQ *cq;
};
void rig_make(struct rig *r, struct rig_set *s);
void rig_unmake(struct rig *r, struct rig_set *s);

IB_QP *rig_qp(struct rig *r, struct rig_set *s, IB_QP_TYPE type, IB_SRQ *srq);
void rig_address(struct rig *r, IB_AH_ATTR *ah);
void rig_to_init(struct rig *r, IB_QP *qp);
void rig_connect(struct rig *r, IB_QP *qp, ULONG peer); // INIT to RTS
NTSTATUS rig_modify(struct rig *r, IB_QP *qp, IB_QP_MODIFY *m);
void rig_destroy_qp(struct rig *r, IB_QP *qp);
// The next completion; fails the test after ten seconds.
void rig_poll(struct rig *r, IB_CQ *cq, IB_WC *wc);

IB_MR *rig_reg(struct rig *r, IB_PD *pd, void *addr, ULONG len, ULONG access);
void rig_dereg(struct rig *r, IB_MR *mr);

#endif
