// SPDX-License-Identifier: BSD-2-Clause
// Birth, tables, state and death of a communication id.
#include "cm/internal.h"

#include <errno.h>
#include <stdlib.h>

#define ID_BITS 24 // below the slot

static uint32_t unused_local_id(struct wf_cm *cm)
{
    for (;;) {
        uint32_t n = (uint32_t)cm->config.slot << ID_BITS | (cm->next_id++ & 0xffffff);
        if (n && !wf_cm_find_local(cm, n))
            return n;
    }
}

static int reserve_timer(struct wf_cm *cm)
{
    if (cm->stats.ids < cm->heap_cap)
        return 0;
    size_t cap = cm->heap_cap ? 2 * cm->heap_cap : 64;
    struct wf_cm_id **heap = realloc(cm->heap, cap * sizeof(*heap));
    if (!heap)
        return -ENOMEM;
    cm->heap = heap;
    cm->heap_cap = cap;
    return 0;
}

int wf_cm_id_create(struct wf_cm *cm, void *user, struct wf_cm_id **out)
{
    struct wf_cm_id *id = NULL;
    if (cm->stats.ids < 1u << (ID_BITS - 1) && reserve_timer(cm) == 0)
        id = calloc(1, sizeof(*id));
    if (!id)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "communication id");
    id->cm = cm;
    id->user = user;
    id->local_id = unused_local_id(cm);
    HASH_ADD(hh_local, cm->by_local, local_id, sizeof(id->local_id), id);
    cm->stats.ids++;
    *out = id;
    return 0;
}

void wf_cm_id_free(struct wf_cm_id *id)
{
    struct wf_cm *cm = id->cm;
    wf_cm_drop_events(id);
    wf_cm_timer_stop(id);
    wf_cm_unhash(id);
    HASH_DELETE(hh_local, cm->by_local, id);
    cm->stats.ids--;
    free(id->compare);
    free(id);
}

void wf_cm_id_destroy(struct wf_cm_id *id)
{
    wf_cm_drop_events(id);
    id->orphan = true;
    id->user = NULL;
    wf_cm_step(id, IN_DESTROY, NULL);
}

void wf_cm_id_forget(struct wf_cm_id *id)
{
    id->orphan = true;
    wf_cm_enter(id, WF_CM_IDLE);
    wf_cm_id_free(id);
}

// ---- tables -------------------------------------------------------------------------------------

struct wf_cm_id *wf_cm_find_local(struct wf_cm *cm, uint32_t local_id)
{
    struct wf_cm_id *id;
    HASH_FIND(hh_local, cm->by_local, &local_id, sizeof(local_id), id);
    return id;
}

static struct wf_cm_key key_of(enum wf_cm_key_kind kind, uint32_t number, uint64_t guid,
                               const union ibv_gid *port)
{
    struct wf_cm_key k;
    memset(&k, 0, sizeof(k));
    k.number = number;
    k.kind = kind;
    k.guid = guid;
    k.port = *port;
    return k;
}

struct wf_cm_id *wf_cm_find_remote(struct wf_cm *cm, enum wf_cm_key_kind kind, uint32_t number,
                                   uint64_t guid, const union ibv_gid *port)
{
    struct wf_cm_key k = key_of(kind, number, guid, port);
    struct wf_cm_id *id;
    if (kind == KEY_QPN)
        HASH_FIND(hh_qpn, cm->by_qpn, &k, sizeof(k), id);
    else
        HASH_FIND(hh_remote, cm->by_remote, &k, sizeof(k), id);
    return id;
}

void wf_cm_hash_remote(struct wf_cm_id *id, enum wf_cm_key_kind kind, uint32_t number,
                       uint64_t guid)
{
    id->remote_key = key_of(kind, number, guid, &id->peer);
    HASH_ADD(hh_remote, id->cm->by_remote, remote_key, sizeof(id->remote_key), id);
}

void wf_cm_hash_qpn(struct wf_cm_id *id, uint32_t qpn, uint64_t guid)
{
    id->qpn_key = key_of(KEY_QPN, qpn, guid, &id->peer);
    HASH_ADD(hh_qpn, id->cm->by_qpn, qpn_key, sizeof(id->qpn_key), id);
}

static void unhash_qpn(struct wf_cm_id *id)
{
    if (id->qpn_key.kind)
        HASH_DELETE(hh_qpn, id->cm->by_qpn, id);
    id->qpn_key.kind = 0;
}

void wf_cm_unhash(struct wf_cm_id *id)
{
    unhash_qpn(id);
    if (id->remote_key.kind)
        HASH_DELETE(hh_remote, id->cm->by_remote, id);
    id->remote_key.kind = 0;
}

static bool same_gid(const union ibv_gid *a, const union ibv_gid *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

// After a migration the peer may write from the other port.
bool wf_cm_from_peer(const struct wf_cm_id *id, const union ibv_gid *sgid)
{
    return same_gid(sgid, &id->peer) || (id->has_alternate && same_gid(sgid, &id->alternate.dgid));
}

// ---- state --------------------------------------------------------------------------------------

// The DREQ that weftd sends should this process die (12.9.8.2 asks for it; the dead cannot).
static void make_will(struct wf_cm_id *id)
{
    struct wf_cm *cm = id->cm;
    struct wf_cm_msg m;
    uint8_t mad[WF_MAD_SIZE];
    if (id->has_will)
        return;
    wf_cm_begin(id, &m, WF_CM_DREQ, wf_cm_tid(id));
    m.dreq.remote_qpn = id->remote_qpn;
    wf_cm_encode(&m, mad);
    cm->config.ops->will(cm->config.arg, id->local_id, &id->peer, id->sgid_index, mad);
    id->has_will = true;
}

static void drop_will(struct wf_cm_id *id)
{
    struct wf_cm *cm = id->cm;
    if (id->has_will)
        cm->config.ops->will(cm->config.arg, id->local_id, &id->peer, id->sgid_index, NULL);
    id->has_will = false;
}

// The peer's QPN is free for a new connection at once; its communication id is kept, to tell a late
// duplicate of the REQ from a new one (12.9.8.4).
static void enter_timewait(struct wf_cm_id *id)
{
    wf_cm_timer_stop(id);
    unhash_qpn(id);
    drop_will(id);
    wf_cm_timer_arm(id, id->cm->now + wf_cm_ms(id->av_timeout));
}

static void enter_idle(struct wf_cm_id *id)
{
    wf_cm_timer_stop(id);
    wf_cm_unhash(id);
    drop_will(id);
    id->lap = WF_CM_LAP_UNINIT;
    id->has_alternate = false;
    id->remote_id = 0;
    id->reply[0] = 0;
}

void wf_cm_enter(struct wf_cm_id *id, enum wf_cm_state state)
{
    id->state = state;
    if (id->peering && state != WF_CM_REQ_SENT)
        wf_cm_peer_stop(id);
    if (state == WF_CM_TIMEWAIT)
        enter_timewait(id);
    else if (state == WF_CM_IDLE)
        enter_idle(id);
    else if (state == WF_CM_REP_SENT || state == WF_CM_REP_RCVD)
        make_will(id);
}

// ---- what others may see ------------------------------------------------------------------------

void wf_cm_id_set_user(struct wf_cm_id *id, void *user)
{
    id->user = user;
}

void *wf_cm_id_user(const struct wf_cm_id *id)
{
    return id->user;
}

enum wf_cm_state wf_cm_id_state(const struct wf_cm_id *id)
{
    return id->state;
}

enum wf_cm_lap_state wf_cm_id_lap_state(const struct wf_cm_id *id)
{
    return id->lap;
}

uint32_t wf_cm_id_local(const struct wf_cm_id *id)
{
    return id->local_id;
}

uint32_t wf_cm_id_remote(const struct wf_cm_id *id)
{
    return id->remote_id;
}

uint64_t wf_cm_id_service(const struct wf_cm_id *id)
{
    return id->service_id;
}

uint64_t wf_cm_id_service_mask(const struct wf_cm_id *id)
{
    return id->service_mask;
}

const struct wf_cm_route *wf_cm_id_route(const struct wf_cm_id *id)
{
    return &id->path;
}
