// SPDX-License-Identifier: BSD-2-Clause
// Multicast groups. The IP groups are joined on slot 0's sockets, the only ones that get multicast
// datagrams from the network; each is put into the ring of slot 0 of every member process, where it
// looks like any packet of the shm link, with the network addresses in its extension header.
#include "daemon/daemon.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <wire/grh.h>
#include <wire/packet.h>

static void ip_group(struct weftd *d, const uint8_t mgid[16], uint32_t ifindex, bool join)
{
    union ibv_gid gid;
    memcpy(gid.raw, mgid, 16);
    if (wf_gid_is_ipv4(&gid)) {
        struct ip_mreqn r = {.imr_ifindex = (int)ifindex};
        memcpy(&r.imr_multiaddr, mgid + 12, 4);
        setsockopt(d->net[0].fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &r,
                   sizeof(r));
    } else {
        struct ipv6_mreq r = {.ipv6mr_interface = ifindex};
        memcpy(&r.ipv6mr_multiaddr, mgid, 16);
        setsockopt(d->net[1].fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &r,
                   sizeof(r));
    }
}

static bool in_use(const struct weftd *d, const uint8_t mgid[16], uint32_t ifindex)
{
    for (const struct member *m = d->members; m; m = m->next)
        if (m->ifindex == ifindex && memcmp(m->mgid, mgid, 16) == 0)
            return true;
    return false;
}

static void announce(struct weftd *d, const uint8_t mgid[16])
{
    struct wf_fmsg m = {.type = WF_F_MCAST_CHANGE};
    memcpy(m.dgid, mgid, 16);
    client_broadcast(d, &m, NULL);
}

static struct member **find(struct weftd *d, const struct client *c, const uint8_t mgid[16],
                            uint32_t ifindex)
{
    struct member **p = &d->members;
    while (*p &&
           !((*p)->owner == c && (*p)->ifindex == ifindex && memcmp((*p)->mgid, mgid, 16) == 0))
        p = &(*p)->next;
    return p;
}

int mcast_join(struct weftd *d, struct client *c, const uint8_t mgid[16], uint32_t index)
{
    union ibv_gid gid;
    memcpy(gid.raw, mgid, 16);
    if (!wf_gid_is_multicast(&gid))
        return -EINVAL;
    uint32_t ifindex = d->gids.table->gids[index].ifindex;
    struct member *m = *find(d, c, mgid, ifindex);
    if (m) {
        m->count++;
        return 0;
    }
    m = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    // Where the kernel refuses (no route, too many groups) processes of this host still hear each
    // other.
    if (!in_use(d, mgid, ifindex))
        ip_group(d, mgid, ifindex, true);
    *m = (struct member){.owner = c, .ifindex = ifindex, .count = 1, .next = d->members};
    memcpy(m->mgid, mgid, 16);
    d->members = m;
    announce(d, mgid);
    return 0;
}

static void remove_member(struct weftd *d, struct member **p)
{
    struct member *m = *p;
    *p = m->next;
    if (!in_use(d, m->mgid, m->ifindex))
        ip_group(d, m->mgid, m->ifindex, false);
    announce(d, m->mgid);
    free(m);
}

int mcast_leave(struct weftd *d, struct client *c, const uint8_t mgid[16], uint32_t index)
{
    struct member **p = find(d, c, mgid, d->gids.table->gids[index].ifindex);
    // The GID may have gone meanwhile: then any membership of this group is meant.
    for (struct member **q = &d->members; !*p && *q; q = &(*q)->next)
        if ((*q)->owner == c && memcmp((*q)->mgid, mgid, 16) == 0)
            p = q;
    if (!*p)
        return -ENOENT;
    if (--(*p)->count == 0)
        remove_member(d, p);
    return 0;
}

void mcast_forget(struct weftd *d, struct client *c)
{
    struct member **p = &d->members;
    while (*p) {
        if ((*p)->owner == c)
            remove_member(d, p);
        else
            p = &(*p)->next;
    }
}

// After sockets were taken over or interfaces changed. Joining twice does no harm.
void mcast_rejoin_groups(struct weftd *d)
{
    for (struct member *m = d->members; m; m = m->next)
        ip_group(d, m->mgid, m->ifindex, true);
}

void mcast_slots(struct weftd *d, const uint8_t mgid[16], uint64_t slots[4])
{
    memset(slots, 0, 4 * sizeof(slots[0]));
    for (const struct member *m = d->members; m; m = m->next)
        if (memcmp(m->mgid, mgid, 16) == 0)
            slots[m->owner->slot / 64] |= 1ull << m->owner->slot % 64;
}

void mcast_deliver(struct weftd *d, const struct wf_pkt *pkt)
{
    uint64_t slots[4];
    mcast_slots(d, pkt->dgid->raw, slots);
    for (uint32_t i = 0; i < WF_SLOTS; i++) {
        struct client *c = d->by_slot[i];
        if (!c || !(slots[i / 64] >> i % 64 & 1))
            continue;
        // A full ring drops the datagram, as a full socket would.
        if (wf_ring_send(&c->mcast_tx, pkt, NULL) == 0)
            wf_ring_notify(&c->mcast_tx, c->doorbell);
    }
}
