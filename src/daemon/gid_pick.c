// SPDX-License-Identifier: BSD-2-Clause
// Which GIDs the host has, from what netlink says. GID 0 is link-local and always there; IPv4
// addresses come next, then IPv6. An entry keeps its index as long as its address exists, a
// vanished one leaves a hole, new ones go into the lowest hole.
#include "daemon/daemon.h"

#include <linux/if.h>
#include <linux/if_addr.h>
#include <netinet/in.h>
#include <netlink/cache.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <string.h>

// Some indexes stay free so that programs see what an empty one looks like.
#define MAX_USED       (WF_GIDS - 4)
#define MAX_LINK_LOCAL (WF_GIDS / 2) // link-local ones beyond this index are left out

// How good GID 0 is: an address that others can reach beats one made up from a MAC, that one the
// one made up from the host's identity.
enum { RANK_IDENTITY = 1, RANK_MAC, RANK_ADDRESS };

static const uint8_t no_gid[16];

static bool is_free(const struct wf_gid_slot *g)
{
    return memcmp(g->gid.raw, no_gid, 16) == 0;
}

static void describe(struct wf_gid_slot *g, struct rtnl_link *l)
{
    struct nl_addr *mac = rtnl_link_get_addr(l);
    const char *name = rtnl_link_get_name(l);
    unsigned flags = rtnl_link_get_flags(l);
    g->ifindex = (uint32_t)rtnl_link_get_ifindex(l);
    g->ifmtu = rtnl_link_get_mtu(l);
    g->up = (flags & IFF_UP) && (flags & IFF_RUNNING);
    memset(g->mac, 0, sizeof(g->mac));
    if (mac && nl_addr_get_len(mac) == 6)
        memcpy(g->mac, nl_addr_get_binary_addr(mac), 6);
    memset(g->ifname, 0, sizeof(g->ifname));
    if (name)
        memcpy(g->ifname, name, strnlen(name, sizeof(g->ifname) - 1));
}

static bool addr_to_gid(struct rtnl_addr *a, uint8_t gid[16])
{
    struct nl_addr *local = rtnl_addr_get_local(a);
    int family = rtnl_addr_get_family(a);
    if (!local || rtnl_addr_get_flags(a) & (IFA_F_TENTATIVE | IFA_F_DADFAILED))
        return false;
    memset(gid, 0, 16);
    if (family == AF_INET && nl_addr_get_len(local) == 4) {
        gid[10] = gid[11] = 0xff;
        memcpy(gid + 12, nl_addr_get_binary_addr(local), 4);
        return true;
    }
    if (family == AF_INET6 && nl_addr_get_len(local) == 16) {
        memcpy(gid, nl_addr_get_binary_addr(local), 16);
        return true;
    }
    return false;
}

static bool is_link_local(const uint8_t gid[16])
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

static int index_of(const struct wf_gid_slot *t, const uint8_t gid[16])
{
    for (int i = 0; i < WF_GIDS; i++)
        if (memcmp(t[i].gid.raw, gid, 16) == 0)
            return i;
    return -1;
}

struct pick {
    struct weftd *d;
    struct wf_gid_slot *next;
    struct nl_cache *links;
    bool seen[WF_GIDS];
    int last;                // pass: first index not to use
    int family;              // pass: which addresses are added
    bool loopback;           // pass: loopback ones
    bool link_local;         // pass: link-local ones
    struct wf_gid_slot best; // candidate for GID 0
    int best_rank;
};

static void consider_first(struct pick *p, const struct wf_gid_slot *g, int rank)
{
    const struct wf_gid_slot *now = &p->d->gids.table->gids[0];
    // The one we have stays unless a better kind turned up.
    bool same = memcmp(now->gid.raw, g->gid.raw, 16) == 0;
    if (rank > p->best_rank || (rank == p->best_rank && same)) {
        p->best = *g;
        p->best_rank = rank;
    }
}

static void first_from_link(struct nl_object *o, void *arg)
{
    struct pick *p = arg;
    struct rtnl_link *l = (struct rtnl_link *)o;
    struct wf_gid_slot g = {0};
    unsigned flags = rtnl_link_get_flags(l);
    static const uint8_t no_mac[6];
    if (flags & IFF_LOOPBACK || !(flags & IFF_UP))
        return;
    describe(&g, l);
    if (memcmp(g.mac, no_mac, 6) == 0)
        return;
    uint8_t *r = g.gid.raw;
    r[0] = 0xfe;
    r[1] = 0x80;
    memcpy(r + 8,
           (uint8_t[]){g.mac[0] ^ 2, g.mac[1], g.mac[2], 0xff, 0xfe, g.mac[3], g.mac[4], g.mac[5]},
           8);
    consider_first(p, &g, RANK_MAC);
}

static void first_from_addr(struct nl_object *o, void *arg)
{
    struct pick *p = arg;
    struct rtnl_addr *a = (struct rtnl_addr *)o;
    struct wf_gid_slot g = {0};
    if (!addr_to_gid(a, g.gid.raw) || !is_link_local(g.gid.raw))
        return;
    struct rtnl_link *l = rtnl_link_get(p->links, rtnl_addr_get_ifindex(a));
    if (l && !(rtnl_link_get_flags(l) & IFF_LOOPBACK) && rtnl_link_get_flags(l) & IFF_UP) {
        describe(&g, l);
        consider_first(p, &g, RANK_ADDRESS);
    }
    rtnl_link_put(l);
}

static void first_from_identity(struct pick *p)
{
    struct wf_gid_slot g = {.ifmtu = 65536, .up = 1};
    uint64_t guid = p->d->gids.table->node_guid;
    g.gid.raw[0] = 0xfe;
    g.gid.raw[1] = 0x80;
    for (int i = 0; i < 8; i++)
        g.gid.raw[8 + i] = (uint8_t)(guid >> (56 - 8 * i));
    struct rtnl_link *lo = rtnl_link_get(p->links, 1);
    g.ifindex = 1;
    if (lo)
        describe(&g, lo);
    g.up = 1; // it is only for this host, which is always up
    rtnl_link_put(lo);
    consider_first(p, &g, RANK_IDENTITY);
}

// An index whose address vanished just now is not used again in the same step: programs should
// see the hole.
static void add_gid(struct pick *p, const struct wf_gid_slot *g)
{
    const struct wf_gid_slot *old = p->d->gids.table->gids;
    for (int i = 1; i < p->last; i++) {
        if (is_free(&p->next[i]) && is_free(&old[i])) {
            p->next[i] = *g;
            p->seen[i] = true;
            return;
        }
    }
}

// One address: refresh the entry it has, or (in the pass for its family) add one.
static void each_addr(struct nl_object *o, void *arg)
{
    struct pick *p = arg;
    struct rtnl_addr *a = (struct rtnl_addr *)o;
    struct wf_gid_slot g = {0};
    if (!addr_to_gid(a, g.gid.raw))
        return;
    struct rtnl_link *l = rtnl_link_get(p->links, rtnl_addr_get_ifindex(a));
    if (!l)
        return;
    unsigned flags = rtnl_link_get_flags(l);
    int i = index_of(p->next, g.gid.raw);
    describe(&g, l);
    if (i > 0) {
        p->next[i] = g;
        p->seen[i] = true;
    } else if (i < 0 && rtnl_addr_get_family(a) == p->family &&
               !!(flags & IFF_LOOPBACK) == p->loopback &&
               is_link_local(g.gid.raw) == p->link_local && flags & IFF_UP) {
        add_gid(p, &g);
    }
    rtnl_link_put(l);
}

static bool has_ipv4(const struct pick *p)
{
    for (int i = 1; i < WF_GIDS; i++)
        if (p->seen[i] && p->next[i].gid.raw[10] == 0xff)
            return true;
    return false;
}

void gids_pick(struct weftd *d, struct wf_gid_slot next[WF_GIDS])
{
    struct pick p = {.d = d, .next = next, .links = d->gids.links, .last = MAX_USED};
    memcpy(next, d->gids.table->gids, sizeof(struct wf_gid_slot) * WF_GIDS);
    first_from_identity(&p);
    nl_cache_foreach(d->gids.links, first_from_link, &p);
    nl_cache_foreach(d->gids.addrs, first_from_addr, &p);
    next[0] = p.best;
    d->gids.rank0 = p.best_rank;
    nl_cache_foreach(d->gids.addrs, each_addr, &p); // family 0: only refresh what is there
    for (int i = 1; i < WF_GIDS; i++)
        if (!p.seen[i] || memcmp(next[i].gid.raw, next[0].gid.raw, 16) == 0)
            memset(&next[i], 0, sizeof(next[i]));
    p.family = AF_INET;
    nl_cache_foreach(d->gids.addrs, each_addr, &p);
    // With no other IPv4 address 127.0.0.1 gives programs that ask for one something to use; not
    // later, when it would fill the hole of an address that is gone.
    bool start = atomic_load_explicit(&d->gids.table->seq, memory_order_relaxed) == 0;
    p.loopback = true;
    if (start && !has_ipv4(&p))
        nl_cache_foreach(d->gids.addrs, each_addr, &p);
    p.loopback = false;
    p.family = AF_INET6;
    nl_cache_foreach(d->gids.addrs, each_addr, &p);
    // Last: a host full of containers has one for each of its virtual interfaces.
    p.link_local = true;
    p.last = MAX_LINK_LOCAL;
    nl_cache_foreach(d->gids.addrs, each_addr, &p);
}
