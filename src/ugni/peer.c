// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/peer.h"
#include "base/reason.h"
#include "ugni/dgram.h"
#include "ugni/op.h"
#include "ugni/rc.h"
#include "ugni/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct wf_gni_peer *peers;
static uint32_t waiting; // peers that have messages or streams waiting for room

struct wf_gni_peer *wf_gni_peer_new(uint32_t pe)
{
    struct wf_gni_peer *old, *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->pe = pe;
    p->bell = p->sock[0] = p->sock[1] = -1;
    HASH_FIND(hh, peers, &pe, sizeof(pe), old);
    if (old)
        HASH_DEL(peers, old); // endpoints may still point to it
    HASH_ADD(hh, peers, pe, sizeof(p->pe), p);
    return p;
}

static int reach(struct wf_gni_peer *p)
{
    if (p->pe == wf_gni.pe)
        return 0;
    if (WF_GNI_PE_HOST(p->pe) == WF_GNI_PE_HOST(wf_gni.pe))
        return wf_gni_shm_connect(p);
    return wf_gni_rc_connect(p);
}

struct wf_gni_peer *wf_gni_peer_find(uint32_t pe)
{
    struct wf_gni_peer *p;
    HASH_FIND(hh, peers, &pe, sizeof(pe), p);
    return p;
}

struct wf_gni_peer *wf_gni_peer_get(uint32_t pe)
{
    struct wf_gni_peer *p = wf_gni_peer_find(pe);
    if (p && !p->dead)
        return p;
    if (!wf_gni_join() || !(p = wf_gni_peer_new(pe)))
        return NULL;
    int err = reach(p);
    if (!err)
        return p;
    wf_explain(WF_R_GNI_NO_PEER, "PE 0x%x: %s", pe, strerror(-err));
    HASH_DEL(peers, p);
    free(p);
    return NULL;
}

void wf_gni_peer_streaming(struct wf_gni_peer *peer)
{
    if (!peer->streaming)
        waiting++;
    peer->streaming = true;
}

static bool keep(struct wf_gni_peer *peer, const struct wf_gni_am *am, const void *payload)
{
    struct wf_gni_backlog *b = malloc(sizeof(*b) + sizeof(*am) + am->len);
    if (!b)
        return false;
    b->next = NULL;
    b->len = (uint32_t)sizeof(*am) + am->len;
    memcpy(b->bytes, am, sizeof(*am));
    if (am->len)
        memcpy(b->bytes + sizeof(*am), payload, am->len);
    if (peer->backlog)
        peer->backlog_tail->next = b;
    else
        peer->backlog = b;
    peer->backlog_tail = b;
    wf_gni_peer_streaming(peer);
    return true;
}

bool wf_gni_peer_send(struct wf_gni_peer *peer, const struct wf_gni_am *am, const void *payload)
{
    if (peer->dead)
        return false;
    if (!peer->link) { // this process
        wf_gni_am_handle(peer, am, payload);
        return true;
    }
    int err = peer->backlog ? -EAGAIN : peer->link->send(peer, am, payload);
    if (err == -EAGAIN)
        return keep(peer, am, payload);
    return !err;
}

void wf_gni_peer_flush(struct wf_gni_peer *peer)
{
    struct wf_gni_backlog *b;
    while ((b = peer->backlog)) {
        const struct wf_gni_am *am = (const void *)b->bytes;
        if (!peer->dead && peer->link->send(peer, am, b->bytes + sizeof(*am)) == -EAGAIN)
            return;
        peer->backlog = b->next;
        free(b);
    }
    if (peer->streaming && !wf_gni_op_pump(peer) && !peer->backlog) {
        peer->streaming = false;
        waiting--;
    }
}

void wf_gni_peers_flush(void)
{
    struct wf_gni_peer *p, *tmp;
    if (!waiting)
        return;
    HASH_ITER(hh, peers, p, tmp)
    {
        if (p->streaming)
            wf_gni_peer_flush(p);
    }
}

bool wf_gni_peers_waiting(void)
{
    return waiting != 0;
}

void wf_gni_peer_died(struct wf_gni_peer *peer)
{
    wf_explain(WF_R_PEER_DIED, "uGNI PE 0x%x, pid %d", peer->pe, (int)peer->pid);
    peer->dead = true;
    if (peer->streaming)
        wf_gni_peer_flush(peer);
    if (peer->link)
        peer->link->close(peer);
    wf_gni_op_peer_died(peer);
    wf_gni_dgram_peer_died(peer->pe);
}

void wf_gni_peers_forget(void)
{
    peers = NULL;
    waiting = 0;
}
