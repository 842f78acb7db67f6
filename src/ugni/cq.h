// SPDX-License-Identifier: BSD-2-Clause
#ifndef WF_UGNI_CQ_H
#define WF_UGNI_CQ_H

#include "ugni/state.h"

// Under the lock.
gni_return_t wf_gni_cq_pop(struct gni_cq *cq, gni_cq_entry_t *out);
bool wf_gni_cq_ready(const struct gni_cq *cq);

// With the lock released.
void wf_gni_cq_call_handler(gni_return_t rc, void (*handler)(gni_cq_entry_t *, void *),
                            void *context, gni_cq_entry_t *entry);

#endif
