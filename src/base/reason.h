// SPDX-License-Identifier: BSD-2-Clause
// Reasons: whatever refuses or fails says why, once, here. A reason has a stable number (also put
// into vendor_err), a one-line cause and a remedy; reasons.def is the one table. None of this is on
// a fast path, and nothing ever goes to stdout.
#ifndef WF_BASE_REASON_H
#define WF_BASE_REASON_H

#include <stdint.h>

enum wf_reason {
    WF_R_NONE = 0,
#define WF_REASON(num, name, cause, remedy) WF_R_##name = num,
#include "base/reasons.def"
#undef WF_REASON
};

// Record that a call is refused and return -err, so a check reads
//     return wf_refuse(EINVAL, WF_R_QP_STATE, "QP 0x%06x: %s to %s", ...);
// `fmt` adds the objects and values; the table supplies the rule and the remedy.
int wf_refuse(int err, enum wf_reason why, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Record a failure that is not the return value of a call: an error completion, a NAK, a dropped
// packet, a dead peer. Same format as wf_refuse().
void wf_explain(enum wf_reason why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Name ("QP_STATE"), cause and remedy of a reason; "?" for a number that is not in the table.
const char *wf_reason_name(enum wf_reason why);
const char *wf_reason_cause(enum wf_reason why);
const char *wf_reason_remedy(enum wf_reason why);

// Who has to act: "the program", "the peer's program", "the environment" ...
const char *wf_reason_fault(enum wf_reason why);
// All reasons in the table's order: number of entry i, 0 past the end.
enum wf_reason wf_reason_at(unsigned i);
// By number or by name in any case: WF_R_NONE when there is none.
enum wf_reason wf_reason_find(const char *text);

#endif
