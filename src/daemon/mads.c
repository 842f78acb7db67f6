// SPDX-License-Identifier: BSD-2-Clause
// QP1 of this host: who gets a MAD. What opens an exchange goes by service id to the process that
// listens, all else by the receiver's communication id, whose top 8 bits are the slot.
#include "base/bytes.h"
#include "daemon/daemon.h"
#include "daemon/mad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool overlaps(const struct service *s, uint64_t id, uint64_t mask)
{
    return ((s->id ^ id) & s->mask & mask) == 0;
}

int mads_listen(struct weftd *d, struct client *c, uint64_t id, uint64_t mask)
{
    mask = mask ? mask : ~0ull; // 0 means exact, as in ib_cm_listen
    for (struct service *s = d->services; s; s = s->next)
        if (overlaps(s, id, mask))
            return s->owner == c && s->id == id && s->mask == mask ? 0 : -EBUSY;
    struct service *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct service){.owner = c, .id = id, .mask = mask, .next = d->services};
    d->services = s;
    early_retry(d);
    return 0;
}

static void drop_services(struct weftd *d, const struct client *c, const uint64_t *id,
                          uint64_t mask, int *dropped)
{
    struct service **p = &d->services;
    while (*p) {
        struct service *s = *p;
        if (s->owner == c && (!id || (s->id == *id && s->mask == mask))) {
            *p = s->next;
            free(s);
            ++*dropped;
        } else {
            p = &s->next;
        }
    }
}

int mads_unlisten(struct weftd *d, struct client *c, uint64_t id, uint64_t mask)
{
    int n = 0;
    drop_services(d, c, &id, mask ? mask : ~0ull, &n);
    return n ? 0 : -ENOENT;
}

void mads_forget(struct weftd *d, struct client *c)
{
    int n = 0;
    drop_services(d, c, NULL, 0, &n);
}

static struct client *listener_of(const struct weftd *d, uint64_t id)
{
    for (const struct service *s = d->services; s; s = s->next)
        if (((s->id ^ id) & s->mask) == 0)
            return s->owner;
    return NULL;
}

// A REJ that gives up a REQ (reason 4) comes before its sender learnt our id; the receiver knows it
// by the sender's id and CA GUID. Every listener is asked: strangers drop it.
static bool to_all_listeners(struct weftd *d, const struct wf_fmsg *m)
{
    bool sent = false;
    for (struct client *c = d->clients; c; c = c->next) {
        bool listens = false;
        for (const struct service *s = d->services; s && !listens; s = s->next)
            listens = s->owner == c;
        if (listens)
            client_send(d, c, m, NULL, 0);
        sent |= listens;
    }
    return sent;
}

static struct client *owner_of(const struct weftd *d, const uint8_t *mad, uint16_t attr)
{
    size_t at = attr == MAD_SIDR_REP ? MAD_DATA : MAD_DATA + 4;
    if (attr == MAD_REQ || attr == MAD_SIDR_REQ) {
        struct wf_reader r = wf_reader_of(mad + MAD_SERVICE_ID, 8);
        return listener_of(d, wf_get_u64(&r));
    }
    return d->by_slot[mad[at]];
}

bool mads_deliver(struct weftd *d, const struct wf_fmsg *m)
{
    struct client *c = owner_of(d, m->mad, mad_attr(m->mad));
    if (c)
        client_send(d, c, m, NULL, 0);
    return c != NULL;
}

void mads_refuse(struct weftd *d, const struct wf_fmsg *m)
{
    struct wf_fmsg out;
    if (!mad_answer(m, &out))
        return;
    int index = gids_find(d, out.sgid);
    out.index = index < 0 ? 0 : (uint32_t)index;
    mads_send(d, &out);
}

void mads_route(struct weftd *d, const struct wf_fmsg *m)
{
    struct wf_fmsg in = *m;
    in.type = WF_F_MAD;
    in.flags = 0;
    in.seq = 0;
    in.slot = 0;
    if (!mad_is_cm(in.mad))
        return;
    uint16_t attr = mad_attr(in.mad);
    if (attr == MAD_REJ && mad_remote_id(in.mad) == 0 && to_all_listeners(d, &in))
        return;
    bool opens = attr == MAD_REQ || attr == MAD_SIDR_REQ;
    if (!mads_deliver(d, &in) && !(opens && early_hold(d, &in)))
        mads_refuse(d, &in);
}

// dgid and the index of the GID it comes from are given; the rest is filled in here.
void mads_send(struct weftd *d, const struct wf_fmsg *msg)
{
    struct wf_fmsg m = *msg;
    const struct wf_gid_slot *g = &d->gids.table->gids[m.index % WF_GIDS];
    static const uint8_t none[16];
    if (memcmp(g->gid.raw, none, 16) == 0)
        return;
    memcpy(m.sgid, g->gid.raw, 16);
    m.sqpn = 1;
    m.pkey = 0xffff;
    m.ifindex = 0;
    if (gids_find(d, m.dgid) >= 0)
        mads_route(d, &m);
    else
        net_send_mad(d, &m);
}
