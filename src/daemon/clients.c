// SPDX-License-Identifier: BSD-2-Clause
// Connections of the engines, from accept to death.
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// Datagrams beyond this many waiting messages are dropped, as a network would.
#define OUT_MADS 4096

struct outgoing {
    struct wf_fmsg m;
    struct outgoing *next;
};

static void free_outgoing(struct client *c)
{
    while (c->out) {
        struct outgoing *o = c->out;
        c->out = o->next;
        free(o);
    }
    c->out_tail = &c->out;
    c->out_count = 0;
}

static void flush_out(struct weftd *d, struct client *c)
{
    while (c->out) {
        struct outgoing *o = c->out;
        if (wf_fmsg_send(c->sock.fd, &o->m, NULL, 0, MSG_DONTWAIT) == -EAGAIN)
            return;
        c->out = o->next;
        c->out_count--;
        free(o);
    }
    c->out_tail = &c->out;
    watch(d, &c->sock, EPOLLIN);
}

void client_send(struct weftd *d, struct client *c, const struct wf_fmsg *msg, const int *fds,
                 int nfds)
{
    struct wf_fmsg m = *msg;
    m.version = WF_FABRIC_VERSION;
    if (c->gone)
        return;
    if (!c->out && wf_fmsg_send(c->sock.fd, &m, fds, nfds, MSG_DONTWAIT) != -EAGAIN)
        return;
    // A reply with descriptors does not wait: its asker is blocked and has read what came before,
    // so it has room unless it misbehaves.
    if (nfds || (m.type == WF_F_MAD && c->out_count >= OUT_MADS))
        return;
    struct outgoing *o = malloc(sizeof(*o));
    if (!o)
        return;
    o->m = m;
    o->next = NULL;
    *c->out_tail = o;
    c->out_tail = &o->next;
    c->out_count++;
    watch(d, &c->sock, EPOLLIN | EPOLLOUT);
}

void client_broadcast(struct weftd *d, const struct wf_fmsg *m, const struct client *but)
{
    for (struct client *c = d->clients; c; c = c->next)
        if (c != but && c->slot)
            client_send(d, c, m, NULL, 0);
}

// The dead process may have died within a copy: its hazards would block others for ever.
void clients_clear_hazards(struct weftd *d, uint32_t slot)
{
    for (struct client *c = d->clients; c; c = c->next)
        for (int k = 0; c->region && k < WF_HAZARDS_PER_SLOT; k++)
            atomic_store_explicit(&c->region->hazard[slot][k], 0, memory_order_release);
}

static void unlink_client(struct weftd *d, struct client *c)
{
    struct client **p = &d->clients;
    while (*p && *p != c)
        p = &(*p)->next;
    if (*p)
        *p = c->next;
    c->next = d->graveyard;
    d->graveyard = c;
}

static void close_source(struct weftd *d, struct source *s)
{
    if (s->fd < 0)
        return;
    // Explicitly: a forked child of the client may keep the open file, and with it the watch,
    // alive.
    epoll_ctl(d->epfd, EPOLL_CTL_DEL, s->fd, NULL);
    close(s->fd);
    s->fd = -1;
}

void client_close(struct weftd *d, struct client *c)
{
    if (c->gone)
        return;
    c->gone = true;
    // A forked child may hold a copy of the connection.
    shutdown(c->sock.fd, SHUT_RDWR);
    close_source(d, &c->sock);
    close_source(d, &c->pidfd);
    unlink_client(d, c);
    mads_forget(d, c);
    mcast_forget(d, c);
    if (c->slot) {
        d->members_joined--;
        d->idle_since = now_ms();
        d->by_slot[c->slot] = NULL;
        clients_clear_hazards(d, c->slot);
        wills_run(d, c);
        client_broadcast(
            d,
            &(struct wf_fmsg){.type = WF_F_PEER_DIED, .slot = c->slot, .generation = c->generation},
            NULL);
        slots_give(d, c->slot);
    }
    wills_forget(c);
}

void clients_bury(struct weftd *d)
{
    while (d->graveyard) {
        struct client *c = d->graveyard;
        d->graveyard = c->next;
        free_outgoing(c);
        if (c->region)
            munmap(c->region, sizeof(*c->region));
        if (c->region_fd >= 0)
            close(c->region_fd);
        if (c->doorbell >= 0)
            close(c->doorbell);
        free(c);
    }
}

static void sock_ready(struct weftd *d, struct source *s, uint32_t events)
{
    struct client *c = (struct client *)((char *)s - offsetof(struct client, sock));
    struct wf_fmsg m;
    int fds[WF_FABRIC_FDS], nfds, ret = 0;
    if (c->gone)
        return;
    if (events & EPOLLOUT)
        flush_out(d, c);
    // A few at a time: one client that floods must not starve the others.
    for (int n = 0; n < 32 && !c->gone; n++) {
        ret = wf_fmsg_recv(c->sock.fd, &m, fds, &nfds, MSG_DONTWAIT);
        if (ret)
            break;
        request_handle(d, c, &m, fds, nfds);
        for (int i = 0; i < WF_FABRIC_FDS; i++)
            if (fds[i] >= 0)
                close(fds[i]);
    }
    if (ret && ret != -EAGAIN)
        client_close(d, c);
}

static void pidfd_ready(struct weftd *d, struct source *s, uint32_t events)
{
    client_close(d, (struct client *)((char *)s - offsetof(struct client, pidfd)));
}

static struct client *new_client(int fd, pid_t pid)
{
    struct client *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->sock = (struct source){sock_ready, fd};
    c->pidfd = (struct source){pidfd_ready, pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1};
    c->pid = pid;
    c->region_fd = c->doorbell = -1;
    c->out_tail = &c->out;
    return c;
}

// Out of descriptors: the connection would stay ready for ever. A spare one lets us take and end
// it.
static void turn_away(struct weftd *d, int listener)
{
    close(d->spare_fd);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    d->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void client_accept(struct weftd *d, struct source *s, uint32_t events)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    int size = 1 << 20;
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            turn_away(d, s->fd);
        return;
    }
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    struct client *c = NULL;
    // The abstract name space has no permissions: this is the check that keeps other users out.
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.uid == geteuid())
        c = new_client(fd, cred.pid);
    if (!c) {
        close(fd);
        return;
    }
    watch(d, &c->sock, EPOLLIN);
    if (c->pidfd.fd >= 0)
        watch(d, &c->pidfd, EPOLLIN);
    c->next = d->clients;
    d->clients = c;
}
