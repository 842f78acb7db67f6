// SPDX-License-Identifier: BSD-2-Clause
// The GID table in its memfd, following netlink.
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <netlink/cache.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define FILE_SIZE WF_CONTROL_FILE_SIZE

// Clients get a descriptor through which nobody can write: our own mapping, made before the seal,
// stays writable.
static int make_file(struct gids *g)
{
    g->memfd = memfd_create("weft-gids", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (g->memfd < 0 || ftruncate(g->memfd, (off_t)FILE_SIZE))
        return -errno;
    uint8_t *p = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, g->memfd, 0);
    if (p == MAP_FAILED)
        return -errno;
    g->table = (struct wf_gid_table *)p;
    g->roster = (struct wf_roster_entry *)(p + WF_ROSTER_OFFSET);
    g->control = (struct wf_control *)(p + WF_CONTROL_OFFSET);
    int seals = F_SEAL_SHRINK | F_SEAL_GROW;
    if (fcntl(g->memfd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
        fcntl(g->memfd, F_ADD_SEALS, seals | F_SEAL_SEAL);
    return 0;
}

int gids_find(const struct weftd *d, const uint8_t gid[16])
{
    for (int i = 0; i < WF_GIDS; i++)
        if (memcmp(d->gids.table->gids[i].gid.raw, gid, 16) == 0)
            return i;
    return -1;
}

// Linux' rule for RoCE: the largest MTU that leaves 80 bytes for headers.
static uint32_t mtu_enum(uint32_t ifmtu)
{
    for (uint32_t e = IBV_MTU_4096; e > IBV_MTU_256; e--)
        if (ifmtu >= (128u << e) + 80)
            return e;
    return IBV_MTU_256;
}

// The port is down only when it has interfaces and all are down: a host without any still serves
// its own processes.
static void summarize(const struct wf_gid_slot *g, uint32_t *active, uint32_t *mtu)
{
    static const uint8_t none[16];
    unsigned used = 0, up = 0;
    uint32_t smallest = UINT32_MAX;
    for (int i = 0; i < WF_GIDS; i++) {
        if (memcmp(g[i].gid.raw, none, 16) == 0)
            continue;
        if (g[i].ifmtu && g[i].ifmtu < smallest)
            smallest = g[i].ifmtu;
        used += g[i].ifindex > 1;
        up += g[i].ifindex > 1 && g[i].up;
    }
    *active = used == 0 || up > 0;
    *mtu = mtu_enum(smallest);
}

static void write_table(struct wf_gid_table *t, const struct wf_gid_slot *next, uint32_t active,
                        uint32_t mtu)
{
    atomic_fetch_add_explicit(&t->seq, 1, memory_order_acq_rel);
    atomic_thread_fence(memory_order_release);
    memcpy(t->gids, next, sizeof(t->gids));
    t->port_active = active;
    t->active_mtu = mtu;
    atomic_fetch_add_explicit(&t->seq, 1, memory_order_release);
}

void gids_follow(struct weftd *d)
{
    struct wf_gid_table *t = d->gids.table;
    struct wf_gid_slot next[WF_GIDS], old[WF_GIDS];
    uint32_t active, mtu, was_active = t->port_active;
    d->gids.dirty = false;
    memset(next, 0, sizeof(next));
    gids_pick(d, next);
    summarize(next, &active, &mtu);
    if (memcmp(next, t->gids, sizeof(next)) == 0 && active == was_active && mtu == t->active_mtu)
        return;
    memcpy(old, t->gids, sizeof(old));
    write_table(t, next, active, mtu);
    for (uint32_t i = 0; i < WF_GIDS; i++)
        if (memcmp(old[i].gid.raw, next[i].gid.raw, 16))
            client_broadcast(d, &(struct wf_fmsg){.type = WF_F_GID_CHANGE, .index = i}, NULL);
    if (active != was_active)
        client_broadcast(d, &(struct wf_fmsg){.type = WF_F_PORT, .index = active}, NULL);
    mcast_rejoin_groups(d);
}

static void changed(struct nl_cache *cache, struct nl_object *o, int action, void *arg)
{
    ((struct weftd *)arg)->gids.dirty = true;
}

static void netlink_ready(struct weftd *d, struct source *s, uint32_t events)
{
    // An overrun loses messages; libnl reads the whole tables again then.
    if (nl_cache_mngr_data_ready(d->gids.manager) < 0) {
        struct nl_sock *sk = nl_socket_alloc();
        if (sk && nl_connect(sk, NETLINK_ROUTE) == 0) {
            nl_cache_refill(sk, d->gids.links);
            nl_cache_refill(sk, d->gids.addrs);
        }
        nl_socket_free(sk);
    }
    gids_follow(d);
}

static int start_netlink(struct weftd *d)
{
    struct nl_cache_mngr *m;
    struct nl_cache *links, *addrs;
    if (nl_cache_mngr_alloc(NULL, NETLINK_ROUTE, 0, &m) < 0)
        return -ENOSYS;
    d->gids.manager = m;
    if (nl_cache_mngr_add(m, "route/link", changed, d, &links) < 0 ||
        nl_cache_mngr_add(m, "route/addr", changed, d, &addrs) < 0)
        return -ENOSYS;
    d->gids.links = links;
    d->gids.addrs = addrs;
    d->gids.netlink = (struct source){netlink_ready, nl_cache_mngr_get_fd(m)};
    fcntl(d->gids.netlink.fd, F_SETFD, FD_CLOEXEC);
    return watch(d, &d->gids.netlink, EPOLLIN);
}

int gids_init(struct weftd *d)
{
    int ret = make_file(&d->gids);
    if (ret)
        return ret;
    d->gids.table->node_guid = identity_guid();
    d->gids.table->port_active = 1;
    ret = start_netlink(d);
    if (ret == 0)
        gids_follow(d);
    return ret;
}

// The table of an earlier weftd: its indexes are in use by connections, so they are kept. Only
// entries whose address still exists survive the next look.
void gids_adopt(struct weftd *d, int memfd)
{
    static bool done;
    int seals = memfd < 0 ? -1 : fcntl(memfd, F_GET_SEALS);
    if (done || seals < 0 || !(seals & F_SEAL_SHRINK) ||
        lseek(memfd, 0, SEEK_END) != (off_t)FILE_SIZE)
        return;
    uint8_t *p = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, memfd, 0);
    if (p == MAP_FAILED)
        return;
    done = true;
    const struct wf_gid_table *old = (const struct wf_gid_table *)p;
    write_table(d->gids.table, old->gids, old->port_active, old->active_mtu);
    control_adopt(d, (const struct wf_control *)(p + WF_CONTROL_OFFSET));
    slots_expect(d, (const struct wf_roster_entry *)(p + WF_ROSTER_OFFSET));
    munmap(p, FILE_SIZE);
    gids_follow(d);
}
