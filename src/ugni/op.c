// SPDX-License-Identifier: BSD-2-Clause
// Three ways, in this order: the target is this process; its memory can be reached from here (same
// host, one cross-process copy); by messages, which the target serves.
#include "ugni/op.h"
#include "ugni/amo.h"
#include "ugni/state.h"
#include "ugni/target.h"

#include <stdlib.h>
#include <string.h>

// A transfer that waits for its peer's answer.
struct wf_gni_xfer {
    struct wf_gni_obj obj;
    uint64_t id; // in messages: index in the pool and a count, so late answers are told
    struct wf_gni_req *req;
    char *local;
    uint64_t len, got;
    struct wf_gni_xfer *prev, *next;
};

// Data on its way out in messages of limited size: of a put from here, or of a get from us.
struct wf_gni_stream {
    struct wf_gni_am am; // of the next message
    char *from;          // put: source. get: NULL, read from the region
    uint32_t region;
    uint64_t at, left;
    struct wf_gni_stream *next;
};

static struct wf_gni_pool xfers = {.size = (sizeof(struct wf_gni_xfer) + 63) & ~63ull,
                                   .max = 1u << WF_GNI_TID_BITS};
static uint64_t xfer_count;

static struct wf_gni_xfer *xfer_new(const struct wf_gni_op *op)
{
    struct wf_gni_xfer *x = wf_gni_pool_get(&xfers);
    if (!x)
        return NULL;
    x->id = ++xfer_count << 24 | wf_gni_pool_index(&xfers, x);
    x->req = op->req;
    // Only answers with data may write: nothing a peer says reaches a put's source.
    x->local = op->kind == WF_GNI_OP_GET || op->kind == WF_GNI_OP_AMO ? op->local : NULL;
    x->len = op->len;
    DL_APPEND(op->peer->under_way, x);
    return x;
}

static struct wf_gni_xfer *xfer_find(uint64_t id)
{
    struct wf_gni_xfer *x = wf_gni_pool_at(&xfers, (uint32_t)(id & 0xffffff));
    return x && x->id == id ? x : NULL;
}

static void xfer_end(struct wf_gni_peer *peer, struct wf_gni_xfer *x, enum wf_gni_status st)
{
    struct wf_gni_req *req = x->req;
    DL_DELETE(peer->under_way, x);
    wf_gni_pool_put(&xfers, x);
    wf_gni_req_part_done(req, st);
}

static struct wf_gni_am message(const struct wf_gni_op *op, enum wf_gni_am_type type, uint64_t id)
{
    return (struct wf_gni_am){.type = (uint8_t)type,
                              .flags = op->event ? WF_GNI_AMF_EVENT : 0,
                              .ptag = op->ptag,
                              .region = op->region,
                              .event = op->event_value,
                              .id = id,
                              .addr = op->addr,
                              .first = op->operand[0],
                              .second = op->operand[1]};
}

// ---- streams ------------------------------------------------------------------------------------

// Cut the next message off; true when it was the last.
static bool stream_next(struct wf_gni_stream *s, struct wf_gni_am *am, const void **payload)
{
    static char buffer[WF_GNI_AM_PAYLOAD];
    uint64_t n = s->left < WF_GNI_AM_PAYLOAD ? s->left : WF_GNI_AM_PAYLOAD;
    *am = s->am;
    am->len = (uint32_t)n;
    am->addr = s->am.addr + s->at;
    am->arg = s->left;
    *payload = s->from + s->at;
    if (!s->from) { // a get: from the region, as it is now
        int st = wf_gni_target_copy(s->am.ptag, s->region, s->am.first + s->at, buffer, n, false);
        *payload = buffer;
        if (st) {
            am->status = (uint8_t)st;
            am->len = 0;
            n = s->left;
        }
    }
    if (n == s->left)
        am->flags |= WF_GNI_AMF_LAST;
    return n == s->left;
}

// True when all of it is out.
static bool stream_pump(struct wf_gni_peer *peer, struct wf_gni_stream *s)
{
    for (;;) {
        struct wf_gni_am am;
        const void *payload;
        bool last = stream_next(s, &am, &payload);
        if (peer->backlog || peer->link->send(peer, &am, payload))
            return false;
        if (last)
            return true;
        s->at += am.len;
        s->left -= am.len;
    }
}

static void stream_start(struct wf_gni_peer *peer, const struct wf_gni_stream *init)
{
    struct wf_gni_stream *s = malloc(sizeof(*s));
    if (!s)
        return;
    *s = *init;
    LL_APPEND(peer->streams, s);
    wf_gni_peer_streaming(peer);
    wf_gni_op_pump(peer);
}

bool wf_gni_op_pump(struct wf_gni_peer *peer)
{
    while (peer->streams) {
        struct wf_gni_stream *s = peer->streams;
        if (!peer->dead && !stream_pump(peer, s))
            return true;
        LL_DELETE(peer->streams, s);
        free(s);
    }
    return false;
}

// ---- the ways -----------------------------------------------------------------------------------

static int run_here(const struct wf_gni_op *op)
{
    int st = WF_GNI_ST_INVALID_COMMAND;
    switch (op->kind) {
    case WF_GNI_OP_PUT:
    case WF_GNI_OP_GET:
        st = wf_gni_target_copy(op->ptag, op->region, op->addr, op->local, op->len,
                                op->kind == WF_GNI_OP_PUT);
        break;
    case WF_GNI_OP_AMO: {
        struct wf_gni_amo amo;
        wf_gni_amo_decode(op->amo_cmd, &amo);
        st = wf_gni_target_amo(op->ptag, op->region, op->addr, op->amo_cmd, op->len / amo.width,
                               op->operand, op->local);
        break;
    }
    case WF_GNI_OP_CQ_WRITE:
        return wf_gni_target_cq_write(op->ptag, op->region, op->value);
    }
    if (!st && op->event)
        wf_gni_target_event(op->region, op->event_value);
    return st;
}

static void put_by_message(const struct wf_gni_op *op, struct wf_gni_xfer *x)
{
    struct wf_gni_stream s = {
        .am = message(op, WF_GNI_AM_PUT, x->id), .from = op->local, .left = op->len};
    static char none;
    if (!s.from)
        s.from = &none; // of length 0
    if (!op->keep) {
        stream_start(op->peer, &s);
        return;
    }
    for (bool last = false; !last;) {
        struct wf_gni_am am;
        const void *payload;
        last = stream_next(&s, &am, &payload);
        wf_gni_peer_send(op->peer, &am, payload);
        s.at += am.len;
        s.left -= am.len;
    }
}

static void amo_by_message(const struct wf_gni_op *op, struct wf_gni_xfer *x)
{
    struct wf_gni_amo amo;
    wf_gni_amo_decode(op->amo_cmd, &amo);
    struct wf_gni_am am = message(op, WF_GNI_AM_AMO, x->id);
    am.arg = op->amo_cmd | op->len / amo.width << 32;
    wf_gni_peer_send(op->peer, &am, NULL);
}

static void run_by_message(const struct wf_gni_op *op)
{
    struct wf_gni_am am;
    struct wf_gni_xfer *x = xfer_new(op);
    if (!x) {
        wf_gni_req_part_done(op->req, WF_GNI_ST_TERMINATED);
        return;
    }
    switch (op->kind) {
    case WF_GNI_OP_PUT:
        put_by_message(op, x);
        return;
    case WF_GNI_OP_GET:
        am = message(op, WF_GNI_AM_GET, x->id);
        am.arg = op->len;
        wf_gni_peer_send(op->peer, &am, NULL);
        return;
    case WF_GNI_OP_AMO:
        amo_by_message(op, x);
        return;
    case WF_GNI_OP_CQ_WRITE:
        am = message(op, WF_GNI_AM_CQ_WRITE, x->id);
        am.arg = op->value;
        wf_gni_peer_send(op->peer, &am, NULL);
        return;
    }
}

// Straight into the peer's memory; the event, if any, goes after the data. -1: not possible.
static int run_across(const struct wf_gni_op *op)
{
    if (op->kind != WF_GNI_OP_PUT && op->kind != WF_GNI_OP_GET)
        return -1;
    int st = wf_gni_shm_copy(op->peer, op->ptag, op->region, op->addr, op->local, op->len,
                             op->kind == WF_GNI_OP_PUT);
    if (!st && op->event) {
        struct wf_gni_am am = message(op, WF_GNI_AM_EVENT, 0);
        if (!wf_gni_peer_send(op->peer, &am, NULL))
            st = WF_GNI_ST_PEER_DIED;
    }
    return st;
}

void wf_gni_op_run(const struct wf_gni_op *op)
{
    int st = -1;
    op->req->parts++;
    if (!op->peer || op->peer->dead)
        st = WF_GNI_ST_PEER_DIED;
    else if (!op->peer->link)
        st = run_here(op);
    else
        st = run_across(op);
    if (st >= 0)
        wf_gni_req_part_done(op->req, (enum wf_gni_status)st);
    else
        run_by_message(op);
}

// ---- answers ------------------------------------------------------------------------------------

// What a peer says about a status is checked: only numbers that exist come out of entries.
static enum wf_gni_status known(uint8_t status)
{
    return wf_gni_status_text(status) ? (enum wf_gni_status)status : WF_GNI_ST_DATA;
}

void wf_gni_op_ack(struct wf_gni_peer *from, const struct wf_gni_am *am, const void *payload)
{
    struct wf_gni_xfer *x = xfer_find(am->id);
    if (!x)
        return;
    if (x->local && am->len && am->len <= x->len)
        memcpy(x->local, payload, am->len);
    xfer_end(from, x, known(am->status));
}

void wf_gni_op_get_data(struct wf_gni_peer *from, const struct wf_gni_am *am, const void *payload)
{
    struct wf_gni_xfer *x = xfer_find(am->id);
    if (!x || !x->local)
        return;
    if (am->addr > x->len || am->len > x->len - am->addr) {
        xfer_end(from, x, WF_GNI_ST_DATA);
        return;
    }
    memcpy(x->local + am->addr, payload, am->len);
    x->got += am->len;
    if (am->flags & WF_GNI_AMF_LAST)
        xfer_end(from, x, am->status || x->got == x->len ? known(am->status) : WF_GNI_ST_DATA);
}

void wf_gni_op_serve_get(struct wf_gni_peer *from, const struct wf_gni_am *am)
{
    struct wf_gni_stream s = {.am = {.type = WF_GNI_AM_GET_DATA, .ptag = am->ptag, .id = am->id},
                              .region = am->region,
                              .left = am->arg};
    int st = wf_gni_target_check(am->ptag, am->region, am->addr, am->arg, false);
    if (st) {
        s.am.status = (uint8_t)st;
        s.am.flags = WF_GNI_AMF_LAST;
        wf_gni_peer_send(from, &s.am, NULL);
        return;
    }
    s.am.first = am->addr;
    if (am->flags & WF_GNI_AMF_EVENT)
        wf_gni_target_event(am->region, am->event);
    stream_start(from, &s);
}

void wf_gni_op_peer_died(struct wf_gni_peer *peer)
{
    wf_gni_op_pump(peer);
    while (peer->under_way)
        xfer_end(peer, peer->under_way, WF_GNI_ST_PEER_DIED);
}
