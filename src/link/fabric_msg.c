// SPDX-License-Identifier: BSD-2-Clause
// Messages between engines and weftd, used by both.
#include "link/fabric_proto.h"
#include "link/region.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int wf_fmsg_check(const struct wf_fmsg *m, size_t size)
{
    if (size != sizeof(*m) || m->version != WF_FABRIC_VERSION)
        return -EPROTO;
    if (m->type < WF_F_JOIN || m->type >= WF_F_TYPES || m->slot >= WF_SLOTS)
        return -EPROTO;
    switch (m->type) {
    case WF_F_MAD:
    case WF_F_MCAST_JOIN:
    case WF_F_MCAST_LEAVE:
        return m->index < WF_GIDS ? 0 : -EPROTO;
    case WF_F_WILL:
        return m->index < WF_GIDS && m->a <= UINT32_MAX ? 0 : -EPROTO;
    default:
        return 0;
    }
}

int wf_fmsg_send(int sock, const struct wf_fmsg *m, const int *fds, int nfds, int flags)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int) * WF_FABRIC_FDS)];
    } ctl = {0};
    struct iovec iov = {.iov_base = (void *)m, .iov_len = sizeof(*m)};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
    if (nfds > 0) {
        mh.msg_control = ctl.buf;
        mh.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)nfds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)nfds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)nfds);
    }
    ssize_t n;
    do
        n = sendmsg(sock, &mh, flags | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

static int take_fds(struct msghdr *mh, int fds[WF_FABRIC_FDS])
{
    int n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (n < WF_FABRIC_FDS)
                fds[n++] = fd;
            else
                close(fd);
        }
    }
    return n;
}

int wf_fmsg_recv(int sock, struct wf_fmsg *m, int fds[WF_FABRIC_FDS], int *nfds, int flags)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int) * WF_FABRIC_FDS)];
    } ctl;
    struct iovec iov = {.iov_base = m, .iov_len = sizeof(*m)};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = ctl.buf,
                        .msg_controllen = sizeof(ctl.buf)};
    for (int i = 0; i < WF_FABRIC_FDS; i++)
        fds[i] = -1;
    *nfds = 0;
    ssize_t n;
    do
        n = recvmsg(sock, &mh, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? -EAGAIN : -ECONNRESET;
    *nfds = take_fds(&mh, fds);
    if (n == 0)
        return -ECONNRESET;
    int ret = mh.msg_flags & MSG_TRUNC ? -EPROTO : wf_fmsg_check(m, (size_t)n);
    if (ret == 0 && mh.msg_flags & MSG_CTRUNC)
        ret = -EMFILE; // the kernel had no room for its descriptors; the message itself is whole
    for (int i = 0; ret && i < *nfds; i++) {
        close(fds[i]);
        fds[i] = -1;
    }
    return ret;
}

unsigned wf_fabric_address(const char *name, struct sockaddr_un *sa)
{
    memset(sa, 0, sizeof(*sa));
    sa->sun_family = AF_UNIX;
    int n;
    if (name)
        n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "%s", name);
    else
        n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, WF_FABRIC_NAME_FMT, geteuid());
    if ((size_t)n > sizeof(sa->sun_path) - 2)
        n = sizeof(sa->sun_path) - 2;
    return (unsigned)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}
