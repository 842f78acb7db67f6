// SPDX-License-Identifier: BSD-2-Clause
// The unit tests' engine: what it saw, and what it shall do.
#ifndef WF_VERBS_FAKE_HCA_H
#define WF_VERBS_FAKE_HCA_H

#include "engine/hca.h"

#define FAKE_SENDS 64

struct fake_send {
    struct ibv_send_wr wr;
    struct ibv_sge sges[8];
    uint8_t data[256]; // inline bytes
    uint32_t len;
};

struct fake_hca {
    int gets, dozes;
    int fail; // errno that the next changes fail with
    uint32_t keys, qpns;
    uint64_t iova;
    unsigned access;
    union ibv_gid gids[2];
    struct wf_ctx *ctx; // the last one opened
    struct fake_send sends[FAKE_SENDS];
    unsigned n_sends;
};
extern struct fake_hca fake;

void fake_async(enum ibv_event_type type, void *object, uint8_t port);

#endif
