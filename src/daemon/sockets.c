// SPDX-License-Identifier: BSD-2-Clause
// The UDP sockets on port 4791. All of one family form one SO_REUSEPORT group in which a classic
// BPF program picks a socket by its index, which is the slot in the QPN that the packet is for.
//
// The kernel numbers a group's sockets in the order of binding and gives the index of one that
// closes to the last. So none may ever close while a client lives, not even when weftd is killed:
// every socket also lies, unread, in the queue of a Unix socket pair, the keepsake, whose reading
// end every client holds. A new weftd gets that end from the first client that joins again, takes
// the sockets out in order and goes on with the very same group; steering never stops.
#include "daemon/daemon.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

#define ADOPT_MS   900
#define RCVBUF     (4 << 20)
#define KEEP_MAGIC 0x7765666bu

static const int families[2] = {AF_INET, AF_INET6};

struct keep_msg {
    uint32_t magic, slot, has[2];
};

static int bind_port(int s, int family)
{
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(WF_ROCE_PORT)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(WF_ROCE_PORT)};
    return family == AF_INET ? bind(s, (struct sockaddr *)&a4, sizeof(a4))
                             : bind(s, (struct sockaddr *)&a6, sizeof(a6));
}

static int open_socket(int family, int reuse)
{
    int s = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, off = 0;
    int size = RCVBUF;
    if (s < 0)
        return -errno;
    setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &reuse, sizeof(reuse));
    setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    // A multicast datagram goes to every socket that does not say this; it is for slot 0's only.
    if (family == AF_INET)
        setsockopt(s, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off));
    else
        setsockopt(s, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &off, sizeof(off));
    if (family == AF_INET6)
        setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind_port(s, family) == 0)
        return s;
    int err = errno;
    close(s);
    return -err;
}

// Offset 0 is the BTH. A packet too short for the load goes to index 0, weftd.
static void attach_steering(int s)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffff, 2, 0),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
        BPF_STMT(BPF_RET | BPF_A, 0),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    setsockopt(s, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog, sizeof(prog));
}

// 0 or -1: too many descriptors of this user are on their way already.
static int keep(struct weftd *d, uint32_t slot)
{
    struct keep_msg msg = {.magic = KEEP_MAGIC, .slot = slot};
    int fds[2], n = 0;
    for (int f = 0; f < 2; f++) {
        msg.has[f] = d->sockets.fd[f][slot] >= 0;
        if (msg.has[f])
            fds[n++] = d->sockets.fd[f][slot];
    }
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(fds))];
    } ctl = {0};
    struct iovec iov = {&msg, sizeof(msg)};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n) {
        mh.msg_control = ctl.buf;
        mh.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n);
        struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)n);
    }
    return sendmsg(d->sockets.keep_tx, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 0;
}

// Sockets that could not be kept would leave a hole in the group when weftd is killed. As the last
// ones they may still go.
static void drop_last(struct weftd *d)
{
    struct sockets *s = &d->sockets;
    for (int f = 0; f < 2; f++) {
        if (s->fd[f][s->count] >= 0)
            close(s->fd[f][s->count]);
        s->fd[f][s->count] = -1;
        s->have[f] = false;
    }
}

void sockets_ensure(struct weftd *d, uint32_t slot)
{
    struct sockets *s = &d->sockets;
    for (; s->count <= slot && (s->have[0] || s->have[1]); s->count++) {
        for (int f = 0; f < 2; f++) {
            int fd = s->have[f] ? open_socket(families[f], 1) : -1;
            s->fd[f][s->count] = fd < 0 ? -1 : fd;
            if (fd < 0)
                s->have[f] = false; // a gap would shift all later indexes
            else if (s->count == 0)
                attach_steering(fd);
        }
        if (keep(d, s->count) && s->count) {
            drop_last(d);
            return;
        }
    }
}

// Free: nobody has the port. Ours: sockets of this user with SO_REUSEPORT have it, which are those
// that clients of an earlier weftd keep.
enum port_state { PORT_FREE, PORT_OURS, PORT_FOREIGN };

static enum port_state probe_port(int family)
{
    int fd = open_socket(family, 0);
    enum port_state state = fd >= 0 ? PORT_FREE : PORT_FOREIGN;
    if (fd == -EADDRINUSE && (fd = open_socket(family, 1)) >= 0)
        state = PORT_OURS; // it was last in the group, so closing it moves no index
    if (fd >= 0)
        close(fd);
    return state;
}

void sockets_init(struct weftd *d)
{
    struct sockets *s = &d->sockets;
    int pair[2] = {-1, -1}, size = 1 << 20;
    memset(s->fd, -1, sizeof(s->fd));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0)
        setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    s->keep_rx = pair[0];
    s->keep_tx = pair[1];
    s->adopting = true;
    s->adopt_until = now_ms() + ADOPT_MS;
    sockets_tick(d);
}

// A fresh group, unless members of an older one are there.
static bool try_fresh(struct weftd *d)
{
    enum port_state state[2];
    for (int f = 0; f < 2; f++)
        state[f] = probe_port(families[f]);
    if (state[0] == PORT_OURS || state[1] == PORT_OURS)
        return false;
    d->sockets.have[0] = state[0] == PORT_FREE;
    d->sockets.have[1] = state[1] == PORT_FREE;
    sockets_ensure(d, 0);
    net_start(d);
    return true;
}

// Until the sockets of an earlier weftd are handed over, or turn out to be gone: it may have been
// about to exit.
void sockets_tick(struct weftd *d)
{
    struct sockets *s = &d->sockets;
    if (!s->adopting)
        return;
    if (try_fresh(d)) {
        s->adopting = false;
    } else if (now_ms() >= s->adopt_until) {
        s->adopting = false; // whoever holds the port does not talk to us: go on without it
        slots_start_elsewhere(d);
    }
    if (!s->adopting)
        request_retry_joins(d);
}

// In this order: when our name is free, so is the port.
void sockets_end(struct weftd *d)
{
    for (int f = 0; f < 2; f++)
        for (int i = 0; i < WF_SLOTS; i++)
            if (d->sockets.fd[f][i] >= 0)
                close(d->sockets.fd[f][i]);
    close(d->sockets.keep_rx);
    close(d->sockets.keep_tx);
}

static bool is_ours(int fd, int family)
{
    int type = 0, domain = 0;
    socklen_t len = sizeof(int);
    union {
        struct sockaddr_in a4;
        struct sockaddr_in6 a6;
    } sa;
    socklen_t salen = sizeof(sa);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) || type != SOCK_DGRAM ||
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) || domain != family ||
        getsockname(fd, (struct sockaddr *)&sa, &salen))
        return false;
    return (family == AF_INET ? sa.a4.sin_port : sa.a6.sin6_port) == htons(WF_ROCE_PORT);
}

static bool take_kept(int keepsake, struct keep_msg *msg, int fds[2])
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(2 * sizeof(int))];
    } ctl;
    struct iovec iov = {msg, sizeof(*msg)};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = ctl.buf,
                        .msg_controllen = sizeof(ctl.buf)};
    fds[0] = fds[1] = -1;
    if (recvmsg(keepsake, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof(*msg))
        return false;
    struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
    int got[2] = {-1, -1}, n = 0;
    if (c && c->cmsg_type == SCM_RIGHTS) {
        n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(got, CMSG_DATA(c), sizeof(int) * (size_t)(n > 2 ? 2 : n));
    }
    for (int f = 0, i = 0; f < 2; f++)
        if (msg->has[f] && i < n)
            fds[f] = got[i++];
    return msg->magic == KEEP_MAGIC;
}

void sockets_adopt(struct weftd *d, int keepsake)
{
    struct sockets *s = &d->sockets;
    struct keep_msg msg;
    int fds[2];
    if (s->count || keepsake < 0)
        return;
    while (s->count < WF_SLOTS && take_kept(keepsake, &msg, fds) && msg.slot == s->count) {
        for (int f = 0; f < 2; f++) {
            bool ok = fds[f] >= 0 && is_ours(fds[f], families[f]);
            s->fd[f][s->count] = ok ? fds[f] : -1;
            s->have[f] = ok && (s->count == 0 || s->have[f]);
        }
        (void)keep(d, s->count++);
    }
    if (!s->count)
        return;
    s->adopting = false;
    net_start(d);
    mcast_rejoin_groups(d);
    request_retry_joins(d);
}

void sockets_drain(struct weftd *d, uint32_t slot)
{
    char byte;
    for (int f = 0; f < 2; f++)
        for (int n = 0; d->sockets.fd[f][slot] >= 0 && n < 100000; n++)
            if (recv(d->sockets.fd[f][slot], &byte, 1, MSG_DONTWAIT | MSG_TRUNC) < 0)
                break;
}
