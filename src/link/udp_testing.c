// SPDX-License-Identifier: BSD-2-Clause
#include "link/udp_testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static union ibv_gid gid4(uint8_t last)
{
    return (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff, 127, 0, 0, last}};
}

static int open_socket(bool v6, const union ibv_gid *at, uint16_t *port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(*port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(*port)};
    memcpy(&in.sin_addr, at->raw + 12, 4);
    memcpy(&in6.sin6_addr, at->raw, 16);
    struct sockaddr *sa = v6 ? (struct sockaddr *)&in6 : (struct sockaddr *)&in;
    socklen_t len = v6 ? sizeof(in6) : sizeof(in);
    int fd = socket(sa->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, sa, len) || getsockname(fd, sa, &len))
        return -errno;
    *port = ntohs(v6 ? in6.sin6_port : in.sin_port);
    return fd;
}

static struct wf_path path_between(const union ibv_gid *from, const union ibv_gid *to)
{
    return (struct wf_path){
        .sgid = *from, .dgid = *to, .tclass = 0x68, .hop_limit = 33, .local = true, .ifindex = 1};
}

int udp_testing_open(struct udp_testing *t, bool v6)
{
    return udp_testing_open_at(t, v6, 0);
}

int udp_testing_open_at(struct udp_testing *t, bool v6, uint16_t port)
{
    const union ibv_gid one = {.raw = {[15] = 1}};
    union ibv_gid a = v6 ? one : gid4(2), b = v6 ? one : gid4(3);
    *t = (struct udp_testing){.fds = {-1, -1}, .port = port};
    t->fds[0] = open_socket(v6, &a, &t->port);
    if (t->fds[0] < 0)
        return t->fds[0];
    t->to_b = path_between(&a, &b);
    t->to_a = path_between(&b, &a);
    int rc = wf_udp_link_create(v6 ? -1 : t->fds[0], v6 ? t->fds[0] : -1, &t->a);
    if (rc || v6) {
        t->b = t->a;
        return rc;
    }
    t->fds[1] = open_socket(v6, &b, &t->port);
    return t->fds[1] < 0 ? t->fds[1] : wf_udp_link_create(t->fds[1], -1, &t->b);
}

void udp_testing_close(struct udp_testing *t)
{
    if (t->b && t->b != t->a)
        t->b->ops->destroy(t->b);
    if (t->a)
        t->a->ops->destroy(t->a);
    for (int i = 0; i < 2; i++)
        if (t->fds[i] >= 0)
            close(t->fds[i]);
}

static bool blocked, no_gso;

void udp_testing_block(bool on)
{
    blocked = on;
}

void udp_testing_no_gso(bool on)
{
    no_gso = on;
}

int __real_sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);

static bool segmented(const struct msghdr *m)
{
    const struct cmsghdr *c = m->msg_control;
    for (; c; c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)m, (struct cmsghdr *)(uintptr_t)c))
        if (c->cmsg_level == SOL_UDP)
            return true;
    return false;
}

// The error that the first message meets, or 0.
static int error_for(const struct msghdr *m)
{
    if (blocked)
        return EAGAIN;
    return no_gso && segmented(m) ? EINVAL : 0;
}

int __wrap_sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
    errno = error_for(&msgs[0].msg_hdr);
    return errno ? -1 : __real_sendmmsg(fd, msgs, no_gso ? 1 : n, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
    errno = error_for(m);
    return errno ? -1 : __real_sendmsg(fd, m, flags);
}
