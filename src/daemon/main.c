// SPDX-License-Identifier: BSD-2-Clause
// weftd [--socket NAME] [--linger SECONDS] [--foreground]
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 50

// The name is bound before the starter returns, so whoever started us can connect at once.
static int bind_name(const char *name)
{
    struct sockaddr_un sa;
    socklen_t len = wf_fabric_address(name, &sa);
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0 || bind(s, (struct sockaddr *)&sa, len) || listen(s, 1024)) {
        int err = errno;
        if (s >= 0)
            close(s);
        return -err;
    }
    return s;
}

static void detach(void)
{
    pid_t pid = fork();
    if (pid > 0)
        _exit(0);
    setsid();
    if (chdir("/"))
        _exit(1);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
}

// Each client costs us up to six descriptors.
static void raise_limits(void)
{
    struct rlimit rl;
    if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
        rl.rlim_cur = rl.rlim_max;
        setrlimit(RLIMIT_NOFILE, &rl);
    }
    rl = (struct rlimit){0, 0};
    setrlimit(RLIMIT_CORE, &rl);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

static int wait_time(const struct weftd *d)
{
    if (d->sockets.adopting || d->gids.dirty || d->early)
        return TICK_MS;
    if (d->slots.expecting)
        return now_ms() < d->slots.expecting_since + 5000 ? TICK_MS : 1000;
    if (d->members_joined)
        return -1;
    uint64_t end = d->idle_since + d->linger_ms, now = now_ms();
    return end > now ? (int)(end - now) : 0;
}

static void run(struct weftd *d)
{
    struct epoll_event ev[64];
    for (;;) {
        int n = epoll_wait(d->epfd, ev, 64, wait_time(d));
        for (int i = 0; i < n; i++) {
            struct source *s = ev[i].data.ptr;
            s->ready(d, s, ev[i].events);
        }
        clients_bury(d);
        sockets_tick(d);
        early_tick(d);
        if (d->slots.expecting)
            slots_check_expected(d);
        if (d->gids.dirty)
            gids_follow(d);
        if (!d->members_joined && !d->sockets.adopting && now_ms() >= d->idle_since + d->linger_ms)
            return;
    }
}

static int start(struct weftd *d, int listener)
{
    d->epfd = epoll_create1(EPOLL_CLOEXEC);
    d->listener = (struct source){client_accept, listener};
    d->idle_since = now_ms();
    d->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (d->epfd < 0)
        return -errno;
    int ret = gids_init(d);
    if (ret)
        return ret;
    slots_init(d);
    d->generation = (uint32_t)slots_generation(d);
    sockets_init(d);
    return watch(d, &d->listener, EPOLLIN);
}

static int usage(void)
{
    fputs("usage: weftd [--socket NAME] [--linger SECONDS] [--foreground]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"socket", required_argument, NULL, 's'},
                                            {"linger", required_argument, NULL, 'l'},
                                            {"foreground", no_argument, NULL, 'f'},
                                            {"version", no_argument, NULL, 'v'},
                                            {0}};
    static struct weftd d;
    const char *name = NULL;
    bool foreground = false;
    d.linger_ms = 5000;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 's')
            name = optarg;
        else if (o == 'l')
            d.linger_ms = (uint64_t)(strtod(optarg, NULL) * 1000);
        else if (o == 'f')
            foreground = true;
        else if (o == 'v')
            return printf("weftd %s\n", WEFT_VERSION) < 0;
        else
            return usage();
    }
    syscall(SYS_close_range, 3u, ~0u, 0u);
    int listener = bind_name(name);
    if (listener == -EADDRINUSE)
        return 0; // another one was faster, which serves as well
    if (listener < 0)
        return 1;
    if (!foreground)
        detach();
    raise_limits();
    listen(listener, 1024); // again, so that peers see the pid after the fork
    if (start(&d, listener))
        return 1;
    run(&d);
    sockets_end(&d);
    return 0;
}
