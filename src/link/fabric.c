// SPDX-License-Identifier: BSD-2-Clause
// Joining, leaving and joining again. Events and requests are in fabric_call.c.
#include "link/fabric.h"
#include "base/reason.h"
#include "link/fabric_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int watch(int epfd, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int map_gids(struct wf_fabric *f, int fd)
{
    void *p = mmap(NULL, sizeof(struct wf_gid_table), PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    if (f->gids)
        munmap((void *)f->gids, sizeof(*f->gids));
    close_fd(&f->gid_fd);
    f->gids = p;
    f->gid_fd = fd;
    return 0;
}

static int take_join_reply(struct wf_fabric *f, const struct wf_fmsg *m, int fds[], bool again)
{
    int next = 2;
    if (fds[0] < 0 || fds[1] < 0 || m->slot == 0 || (again && m->slot != f->slot))
        return -EPROTO;
    int ret = map_gids(f, fds[0]);
    if (ret)
        return ret;
    fds[0] = -1;
    close_fd(&f->keepsake);
    f->keepsake = fds[1];
    fds[1] = -1;
    for (int i = 0; i < 2; i++) {
        if (!(m->flags & (i ? WF_FM_IPV6 : WF_FM_IPV4)))
            continue;
        // Packets in flight sit in the sockets we have, so those stay.
        if (f->udp[i] < 0 && !again) {
            f->udp[i] = fds[next];
            fds[next] = -1;
        }
        next++;
    }
    f->slot = m->slot;
    f->generation = m->generation;
    return 0;
}

static int register_with(struct wf_fabric *f, bool again)
{
    struct wf_fmsg m = {.type = WF_F_JOIN};
    int fds[WF_FABRIC_FDS] = {f->region_fd, f->doorbell}, got[WF_FABRIC_FDS];
    int nfds = 2;
    if (again) {
        m.flags = WF_FM_REJOIN;
        m.slot = f->slot;
        m.generation = f->generation;
        fds[nfds++] = f->keepsake;
        fds[nfds++] = f->gid_fd;
    }
    int ret = wf_fabric_call(f, &m, fds, nfds, got);
    if (ret == 0)
        ret = take_join_reply(f, &m, got, again);
    for (int i = 0; i < WF_FABRIC_FDS; i++)
        close_fd(&got[i]);
    return ret;
}

static int reach(struct wf_fabric *f, bool again)
{
    // A weftd that ends just now takes the connection and drops it: try once more.
    int ret = -ETIMEDOUT;
    for (int attempt = 0; attempt < 3; attempt++) {
        ret = wf_fabric_connect(wf_fabric_now_ms() + WF_FABRIC_TIMEOUT_MS, again);
        if (ret < 0)
            return ret;
        f->sock = ret;
        ret = watch(f->epfd, f->sock);
        if (ret == 0)
            ret = register_with(f, again);
        if (ret == 0)
            return 0;
        close_fd(&f->sock);
        if (ret != -ENOTCONN)
            break;
    }
    return ret == -ENOTCONN ? -ETIMEDOUT : ret;
}

static void drop(struct wf_fabric *f)
{
    wf_fabric_free_peers(f);
    wf_fabric_forget_all(f);
    wf_fabric_forget_groups(f, NULL);
    while (f->head) {
        struct queued_event *q = f->head;
        f->head = q->next;
        free(q);
    }
    int *fds[] = {&f->sock,     &f->epfd,      &f->wakefd, &f->udp[0],  &f->udp[1],
                  &f->doorbell, &f->region_fd, &f->gid_fd, &f->keepsake};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        close_fd(fds[i]);
    if (f->gids)
        munmap((void *)f->gids, sizeof(*f->gids));
    wf_region_unmap(f->region);
    free(f);
}

static struct wf_fabric *alloc_fabric(void)
{
    struct wf_fabric *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    f->sock = f->epfd = f->wakefd = f->udp[0] = f->udp[1] = -1;
    f->doorbell = f->region_fd = f->gid_fd = f->keepsake = -1;
    f->tail = &f->head;
    f->pid = getpid();
    return f;
}

int wf_fabric_join(struct wf_fabric **out)
{
    struct wf_fabric *f = alloc_fabric();
    if (!f)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "joining the fabric");
    f->epfd = epoll_create1(EPOLL_CLOEXEC);
    f->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    f->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int ret = f->epfd < 0 || f->wakefd < 0 || f->doorbell < 0 ? -errno : watch(f->epfd, f->wakefd);
    if (ret == 0)
        ret = wf_region_create(&f->region, &f->region_fd);
    if (ret) {
        drop(f);
        return wf_refuse(-ret, WF_R_LIMIT, "descriptors and memory of this process: %s",
                         strerror(-ret));
    }
    ret = reach(f, false);
    if (ret) {
        drop(f);
        return ret == -EACCES // who it belongs to has been told
                   ? ret
                   : wf_refuse(-ret, WF_R_NO_DAEMON, "joining the fabric: %s", strerror(-ret));
    }
    if (f->udp[0] < 0 && f->udp[1] < 0)
        wf_explain(WF_R_PORT_TAKEN, "slot %u has no UDP socket", f->slot);
    *out = f;
    return 0;
}

int wf_fabric_rejoin(struct wf_fabric *f)
{
    if (f->sock >= 0)
        return 0;
    int ret = reach(f, true);
    if (ret)
        return wf_refuse(-ret, WF_R_NO_DAEMON, "joining the fabric again as slot %u: %s", f->slot,
                         strerror(-ret));
    wf_fabric_replay(f);
    return 0;
}

void wf_fabric_leave(struct wf_fabric *f)
{
    if (!f)
        return;
    // A forked child shares the connection but is not the member.
    if (f->pid == getpid() && f->sock >= 0)
        (void)wf_fabric_tell(f, &(struct wf_fmsg){.type = WF_F_LEAVE}, 0);
    drop(f);
}

uint32_t wf_fabric_slot(const struct wf_fabric *f)
{
    return f->slot;
}

uint64_t wf_fabric_generation(const struct wf_fabric *f)
{
    return f->generation;
}

int wf_fabric_udp_fd(const struct wf_fabric *f, int family)
{
    return family == AF_INET ? f->udp[0] : family == AF_INET6 ? f->udp[1] : -1;
}

struct wf_region *wf_fabric_region(const struct wf_fabric *f)
{
    return f->region;
}

int wf_fabric_doorbell(const struct wf_fabric *f)
{
    return f->doorbell;
}

int wf_fabric_fd(const struct wf_fabric *f)
{
    return f->sock >= 0 || f->head ? f->epfd : -1;
}

// weftd never holds the lock for long; one that was killed while writing leaves seq odd for ever,
// and then the copy is as good as it gets.
void wf_fabric_gids(const struct wf_fabric *f, struct wf_gid_table *out)
{
    const struct wf_gid_table *t = f->gids;
    for (int tries = 0; tries < 100000; tries++) {
        uint32_t before = atomic_load_explicit(&t->seq, memory_order_acquire);
        memcpy(out, (const void *)t, sizeof(*out));
        atomic_thread_fence(memory_order_acquire);
        if (!(before & 1) && atomic_load_explicit(&t->seq, memory_order_relaxed) == before)
            break;
    }
}
