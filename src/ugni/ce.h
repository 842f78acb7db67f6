// SPDX-License-Identifier: BSD-2-Clause
// The collective engine: trees of channels (VCEs) that reduce what their children send and hand the
// result down again.
#ifndef WF_UGNI_CE_H
#define WF_UGNI_CE_H

#include "ugni/am.h"
#include <gni_pub.h>
#include <stdbool.h>

struct wf_gni_peer;
struct wf_gni_req;

// A part of a reduction, and its result.
struct wf_gni_ce_value {
    uint64_t op[2];
    uint8_t fpe; // GNI_CE_FPE_*
};

// ---- cereduce.c, pure ---------------------------------------------------------------------------

bool wf_gni_ce_command(uint32_t cmd);
// acc := acc op part. `rounding`: one GNI_CE_MODE_ROUND_*, or 0 for nearest.
void wf_gni_ce_reduce(uint32_t cmd, bool two_op, uint32_t rounding, struct wf_gni_ce_value *acc,
                      const struct wf_gni_ce_value *part);
// A lone part in the form of a result: unused operands are zero, short ones cut.
struct wf_gni_ce_value wf_gni_ce_first(uint32_t cmd, bool two_op,
                                       const struct wf_gni_ce_value *part);

// ---- ce.c ---------------------------------------------------------------------------------------

gni_return_t wf_gni_ce_check(const struct gni_ep *ep, const gni_post_descriptor_t *d);
void wf_gni_ce_run(struct gni_ep *ep, gni_post_descriptor_t *d, struct wf_gni_req *req);
void wf_gni_ce_arrived(struct wf_gni_peer *from, const struct wf_gni_am *am);
void wf_gni_ce_release(struct gni_ce *ce);

#endif
