// SPDX-License-Identifier: BSD-2-Clause
// Shared message queues: one connection for each pair of nodes, used by every process on either.
#ifndef WF_UGNI_MSGQ_H
#define WF_UGNI_MSGQ_H

#include "ugni/am.h"
#include <gni_pub.h>
#include <stdbool.h>

struct wf_gni_peer;

void wf_gni_msgq_arrived(struct wf_gni_peer *from, const struct wf_gni_am *am, const void *payload);
void wf_gni_msgq_release(struct gni_msgq *q);

// ---- msgqtable.c: the connections of a node, shared by its processes
// -----------------------------

struct wf_gni_msgq_table;
enum wf_gni_msgq_conn { WF_GNI_CONN_NONE, WF_GNI_CONN_ASSIGNED, WF_GNI_CONN_UP };

struct wf_gni_msgq_table *wf_gni_msgq_table_open(uint8_t ptag, uint32_t cookie,
                                                 const gni_msgq_attr_t *attrs, bool *agrees);
void wf_gni_msgq_table_close(struct wf_gni_msgq_table *t);
// Assign a connection to a PE for this process. False: none is left.
bool wf_gni_msgq_table_assign(struct wf_gni_msgq_table *t, uint32_t pe);
// State of this process's own assignment; connect and release act on it too.
enum wf_gni_msgq_conn wf_gni_msgq_table_own(struct wf_gni_msgq_table *t, uint32_t pe);
void wf_gni_msgq_table_connect(struct wf_gni_msgq_table *t, uint32_t pe);
void wf_gni_msgq_table_release(struct wf_gni_msgq_table *t, uint32_t pe);
// Best state of any process's connection to the node of a PE.
enum wf_gni_msgq_conn wf_gni_msgq_table_find(struct wf_gni_msgq_table *t, uint32_t pe);

#endif
