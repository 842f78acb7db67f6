// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/daemon.h"

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

uint64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

int watch(struct weftd *d, struct source *s, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = s};
    if (epoll_ctl(d->epfd, EPOLL_CTL_ADD, s->fd, &ev) == 0)
        return 0;
    if (errno != EEXIST || epoll_ctl(d->epfd, EPOLL_CTL_MOD, s->fd, &ev))
        return -errno;
    return 0;
}
