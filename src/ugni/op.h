// SPDX-License-Identifier: BSD-2-Clause
// Transfers: one put, get, AMO or CQ write between this process and one region of a peer. A post is
// one transfer or several; a chain has one for each element.
#ifndef WF_UGNI_OP_H
#define WF_UGNI_OP_H

#include "ugni/peer.h"
#include <stdint.h>

struct wf_gni_req;

enum wf_gni_op_kind { WF_GNI_OP_PUT, WF_GNI_OP_GET, WF_GNI_OP_AMO, WF_GNI_OP_CQ_WRITE };

struct wf_gni_op {
    enum wf_gni_op_kind kind;
    struct wf_gni_req *req; // told when it ends, maybe before wf_gni_op_run() returns
    struct wf_gni_peer *peer;
    uint8_t ptag;
    bool event; // make a remote event
    bool keep;  // the source buffer may change once the post returned
    uint32_t event_value;
    uint32_t region;
    uint64_t addr; // offset in the region
    void *local;   // AMO: NULL when nothing is fetched
    uint64_t len;
    uint32_t amo_cmd;
    uint64_t operand[2];
    uint64_t value; // CQ write
};

void wf_gni_op_run(const struct wf_gni_op *op);

// Answers.
void wf_gni_op_ack(struct wf_gni_peer *from, const struct wf_gni_am *am, const void *payload);
void wf_gni_op_get_data(struct wf_gni_peer *from, const struct wf_gni_am *am, const void *payload);
// Serve a GET by message.
void wf_gni_op_serve_get(struct wf_gni_peer *from, const struct wf_gni_am *am);

// Go on with what found no room. True while something is left.
bool wf_gni_op_pump(struct wf_gni_peer *peer);
void wf_gni_op_peer_died(struct wf_gni_peer *peer);

#endif
