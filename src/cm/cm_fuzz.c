// SPDX-License-Identifier: BSD-2-Clause
// The whole connection manager under a random program of calls, datagrams (right, forged and
// mangled), losses and passing time.
#include "cm/internal.h"
#include "cm/test_net.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define IDS 16

struct program {
    const uint8_t *p;
    size_t left;
    struct net n;
    struct wf_cm_id *ids[NET_NODES][IDS];
    struct wf_cm_route route;
    uint8_t blob[256];
};

static uint8_t next(struct program *g)
{
    if (!g->left)
        return 0;
    g->left--;
    return *g->p++;
}

static void adopt(struct program *g, int node, struct wf_cm_id *id)
{
    for (int i = 0; i < IDS; i++)
        if (!g->ids[node][i]) {
            g->ids[node][i] = id;
            return;
        }
    wf_cm_id_destroy(id);
}

static void call_connect(struct program *g, struct wf_cm_id *id, uint8_t which, uint8_t arg)
{
    struct wf_cm_req_param req = net_req(&g->route);
    struct wf_cm_rep_param rep = {.qpn = arg, .data = g->blob, .data_len = arg};
    struct wf_cm_compare c = {.data = {arg}, .mask = {0xff}};
    req.peer_to_peer = arg & 1;
    req.qpn = arg >> 2;
    req.qp_type = arg & 2 ? IBV_QPT_XRC_SEND : IBV_QPT_RC;
    req.data = g->blob;
    req.data_len = arg;
    switch (which) {
    case 0:
        wf_cm_send_req(id, &req);
        break;
    case 1:
        wf_cm_send_rep(id, &rep);
        break;
    case 2:
        wf_cm_send_rtu(id, g->blob, arg);
        break;
    case 3:
        wf_cm_send_mra(id, arg, g->blob, arg);
        break;
    case 4:
        wf_cm_send_rej(id, arg, g->blob, arg / 2, g->blob, arg);
        break;
    default:
        wf_cm_listen(id, arg & 1 ? NET_SERVICE : WF_CM_SERVICE_ASSIGN, 0, arg & 2 ? &c : NULL);
    }
}

static void call_other(struct program *g, struct wf_cm_id *id, uint8_t which, uint8_t arg)
{
    struct wf_cm_sidr_req_param sreq = {
        .path = &g->route, .service_id = NET_SERVICE, .timeout_ms = arg, .max_cm_retries = arg & 3};
    struct wf_cm_sidr_rep_param srep = {.info = g->blob, .info_len = arg};
    struct ibv_qp_attr attr = {.qp_state = arg & 7};
    int mask;
    switch (which) {
    case 6:
        wf_cm_send_dreq(id, g->blob, arg);
        break;
    case 7:
        wf_cm_send_drep(id, g->blob, arg);
        break;
    case 8:
        wf_cm_send_lap(id, &g->route, g->blob, arg);
        break;
    case 9:
        wf_cm_send_apr(id, arg, g->blob, arg, g->blob, arg);
        break;
    case 10:
        wf_cm_send_sidr_req(id, &sreq);
        break;
    case 11:
        wf_cm_send_sidr_rep(id, &srep);
        break;
    case 12:
        arg & 1 ? wf_cm_notify_established(id) : wf_cm_notify_migrated(id);
        break;
    default:
        wf_cm_init_qp_attr(id, &attr, &mask);
    }
}

static void do_call(struct program *g)
{
    int node = next(g) % NET_NODES;
    struct wf_cm_id **slot = &g->ids[node][next(g) % IDS];
    uint8_t which = next(g) % 16, arg = next(g);
    g->route = net_route(&g->n, node, arg % NET_NODES);
    if (!*slot && wf_cm_id_create(g->n.node[node].cm, g, slot))
        return;
    if (which == 14) {
        wf_cm_id_destroy(*slot);
        *slot = NULL;
    } else if (which == 15) {
        if (wf_cm_id_state(*slot) == WF_CM_LISTEN)
            return;
        wf_cm_id_forget(*slot);
        *slot = NULL;
    } else if (which < 6) {
        call_connect(g, *slot, which, arg);
    } else {
        call_other(g, *slot, which, arg);
    }
}

// A datagram whose ids are near to right: the table is what is to be reached.
static void do_forge(struct program *g)
{
    uint8_t mad[WF_MAD_SIZE] = {1, WF_MAD_CLASS_CM, 2, WF_MAD_SEND};
    int from = next(g) % NET_NODES, to = next(g) % NET_NODES;
    struct wf_cm_id *a = g->ids[from][next(g) % IDS], *b = g->ids[to][next(g) % IDS];
    mad[17] = 0x10 + next(g) % 11;
    uint8_t at = next(g), value = next(g);
    for (int i = 0; i < 4; i++) {
        mad[24 + i] = a ? (uint8_t)(wf_cm_id_local(a) >> (24 - 8 * i)) : 0;
        mad[28 + i] = b ? (uint8_t)(wf_cm_id_local(b) >> (24 - 8 * i)) : 0;
    }
    mad[24 + at % 232] = value;
    wf_cm_receive(g->n.node[to].cm, g->n.now, &g->n.node[from].gid, &g->n.node[to].gid, mad);
}

static void do_mangle(struct program *g)
{
    uint8_t at = next(g), value = next(g);
    if (g->n.queue)
        g->n.queue->mad[at] ^= value;
}

static void take_events(struct program *g)
{
    struct wf_cm_event ev;
    for (int i = 0; i < NET_NODES; i++)
        while (wf_cm_next_event(g->n.node[i].cm, &ev))
            if ((ev.type == WF_CM_REQ_RECEIVED && ev.listen_id) ||
                ev.type == WF_CM_SIDR_REQ_RECEIVED)
                adopt(g, i, ev.id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct program g = {.p = data, .left = size};
    net_start(&g.n, 1);
    while (g.left) {
        switch (next(&g) % 8) {
        case 0:
            do_forge(&g);
            break;
        case 1:
            do_mangle(&g);
            break;
        case 2:
            net_drop(&g.n);
            break;
        case 3:
            net_run(&g.n, g.n.now + next(&g) * 100 * NET_MS);
            break;
        case 4:
            net_deliver(&g.n);
            break;
        default:
            do_call(&g);
        }
        take_events(&g);
    }
    net_stop(&g.n);
    return 0;
}
