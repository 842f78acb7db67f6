// SPDX-License-Identifier: BSD-2-Clause
// The engine's thread. Two modes: while callers poll it only watches (wakes now and then to see
// whether they still do); once they stop or say that they sleep, it dozes on everything that can
// bring work, and does that work itself. It also runs deferred calls.
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tap.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WATCH_TICK_NS 2000000u
#define MAX_FDS       8
#define DOZE_ROUNDS   16
// Where something came, more may follow: to look again for so long costs less than to be woken.
#define LINGER_NS 20000u
// Polling for so long without a pause is polling in earnest; after it was not meant so, longer than
// the tick: else two programs that wait for each other's memory would keep missing each other.
#define EARNEST_NS      200000u
#define EARNEST_LONG_NS 4000000u
#define POLLS_A_TICK    16u // fewer are no polling to rely on: a loop that sleeps in between

void wf_thread_kick(struct wf_hca *h)
{
    uint64_t one = 1;
    if (h->kick_fd >= 0 && write(h->kick_fd, &one, sizeof(one)) < 0) {
        // Only a full counter can refuse, and then the thread is awake already.
    }
}

void wf_doze_locked(struct wf_hca *h)
{
    h->polled_at = 0;
    if (h->mode == WF_THREAD_DOZE || !h->threaded)
        return;
    h->mode = WF_THREAD_DOZE;
    atomic_store_explicit(&h->region->sleeping, 1, memory_order_seq_cst);
    wf_thread_kick(h);
}

void wf_hca_doze(struct wf_hca *h)
{
    wf_enter(h);
    wf_doze_locked(h);
    wf_exit(h);
}

static int add_fd(int epfd, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    return fd < 0 ? 0 : epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev);
}

struct sleeper {
    int doze_fd;  // epoll over all that can bring work
    int watch_fd; // epoll over kick and fabric only
    int fabric_fd;
};

static void drain(int fd)
{
    uint64_t v;
    if (fd >= 0 && read(fd, &v, sizeof(v)) < 0) {
        // Nothing to drain is fine.
    }
}

// weftd may be replaced: its socket is then another.
static void follow_fabric(struct wf_hca *h, struct sleeper *s)
{
    int fd = h->fabric ? wf_fabric_fd(h->fabric) : -1;
    if (fd == s->fabric_fd)
        return;
    if (s->fabric_fd >= 0) {
        epoll_ctl(s->doze_fd, EPOLL_CTL_DEL, s->fabric_fd, NULL);
        epoll_ctl(s->watch_fd, EPOLL_CTL_DEL, s->fabric_fd, NULL);
    }
    s->fabric_fd = fd;
    add_fd(s->doze_fd, fd);
    add_fd(s->watch_fd, fd);
}

static void sleeper_close(struct sleeper *s)
{
    if (s->doze_fd >= 0)
        close(s->doze_fd);
    if (s->watch_fd >= 0)
        close(s->watch_fd);
}

static int sleeper_open(struct wf_hca *h, struct sleeper *s)
{
    s->doze_fd = epoll_create1(EPOLL_CLOEXEC);
    s->watch_fd = epoll_create1(EPOLL_CLOEXEC);
    s->fabric_fd = -1;
    if (s->doze_fd < 0 || s->watch_fd < 0) {
        int err = -errno;
        sleeper_close(s);
        return err;
    }
    add_fd(s->doze_fd, h->kick_fd);
    add_fd(s->watch_fd, h->kick_fd);
    if (h->fabric)
        add_fd(s->doze_fd, wf_fabric_doorbell(h->fabric));
    int fds[MAX_FDS];
    int n = h->udp ? h->udp->ops->fds(h->udp, fds, MAX_FDS) : 0;
    for (int i = 0; i < n; i++)
        add_fd(s->doze_fd, fds[i]);
    return 0;
}

// How long the thread may sleep, in milliseconds for epoll_wait; rounded up, never a busy loop.
static int sleep_ms(struct wf_hca *h, uint64_t next)
{
    wf_now(h);
    uint64_t now = h->env.now;
    if (h->mode == WF_THREAD_WATCH && next > now + WATCH_TICK_NS)
        next = now + WATCH_TICK_NS;
    if (next == WF_NEVER)
        return -1;
    if (next <= now)
        return 0;
    uint64_t ms = (next - now + 999999) / 1000000;
    return ms > 60000 ? 60000 : (int)ms;
}

// Do callers still poll? If they stopped and left work waiting, they poll on and off (a program
// that spins on its memory, say): next time more polls in a row are asked for.
static void watch(struct wf_hca *h, uint32_t *seen)
{
    bool polled = h->polls - *seen >= POLLS_A_TICK;
    *seen = h->polls;
    if (polled) {
        h->earnest_ns = EARNEST_NS;
        return;
    }
    wf_doze_locked(h);
    if (wf_progress_locked(h))
        h->earnest_ns = EARNEST_LONG_NS;
}

// One turn under the lock. Returns when to wake again.
static uint64_t turn(struct wf_hca *h, uint32_t *seen)
{
    uint64_t next = WF_NEVER;
    wf_fabric_events(h);
    if (wf_timers_due(h, h->env.now, &next))
        next = h->env.now;
    if (h->mode == WF_THREAD_WATCH)
        watch(h, seen);
    if (h->mode == WF_THREAD_DOZE) {
        // Set anew each time: the peer that rings takes it back. Before the last look at the rings.
        atomic_store_explicit(&h->region->sleeping, 1, memory_order_seq_cst);
        // Some rounds only: callers want the lock too.
        int got = 0;
        for (int i = 0; i < DOZE_ROUNDS; i++) {
            int n = wf_progress_locked(h);
            got += n;
            if (!n && !h->ready.head)
                break;
        }
        if (got)
            h->awake_until = h->env.now + LINGER_NS;
        if (h->ready.head || h->env.now < h->awake_until)
            next = h->env.now;
        uint64_t qp = wf_heap_next(h);
        if (qp < next)
            next = qp;
        uint64_t cq = h->moderated_cqs ? wf_cq_expire_moderated(h) : WF_NEVER;
        if (cq < next)
            next = cq;
        if (h->tap && wf_tap_next(h) < next)
            next = wf_tap_next(h);
        if (h->blocked.head) // a full link: look again soon
            next = h->env.now + 1000000;
    }
    if (wf_has_news(h))
        next = h->env.now;
    return next;
}

struct start {
    struct wf_hca *hca;
    struct sleeper sleeper;
};

static void *thread_main(void *arg)
{
    struct start *start = arg;
    struct wf_hca *h = start->hca;
    struct sleeper s = start->sleeper;
    uint32_t seen = 0;
    free(start);
    for (;;) {
        wf_enter(h);
        if (h->stopping) {
            pthread_mutex_unlock(&h->lock);
            break;
        }
        follow_fabric(h, &s);
        uint64_t next = turn(h, &seen);
        int fd = h->mode == WF_THREAD_DOZE ? s.doze_fd : s.watch_fd;
        int ms = sleep_ms(h, next);
        pthread_mutex_unlock(&h->lock);
        wf_work_run(h);
        struct epoll_event ev[MAX_FDS];
        epoll_wait(fd, ev, MAX_FDS, ms);
        drain(h->kick_fd);
        if (h->fabric && fd == s.doze_fd)
            drain(wf_fabric_doorbell(h->fabric));
    }
    sleeper_close(&s);
    return NULL;
}

static int give_up(struct wf_hca *h, struct start *start, int err)
{
    free(start);
    if (h->kick_fd >= 0)
        close(h->kick_fd);
    h->kick_fd = -1;
    return err;
}

int wf_thread_start(struct wf_hca *h)
{
    struct start *start = calloc(1, sizeof(*start));
    if (!start)
        return -ENOMEM;
    start->hca = h;
    h->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int err = h->kick_fd < 0 ? -errno : sleeper_open(h, &start->sleeper);
    if (err)
        return give_up(h, start, err);
    h->threaded = true;
    h->mode = WF_THREAD_DOZE;
    h->earnest_ns = EARNEST_NS;
    atomic_store_explicit(&h->region->sleeping, 1, memory_order_relaxed);
    // Signals are the program's: none is taken by this thread but those that its own instructions
    // cause, which base/guard.h catches.
    sigset_t all, old;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = -pthread_create(&h->thread, NULL, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err) {
        sleeper_close(&start->sleeper);
        h->threaded = false;
        return give_up(h, start, err);
    }
    pthread_setname_np(h->thread, "weft");
    return 0;
}

void wf_thread_stop(struct wf_hca *h)
{
    wf_enter(h);
    h->stopping = true;
    pthread_mutex_unlock(&h->lock);
    wf_thread_kick(h);
    pthread_join(h->thread, NULL);
    close(h->kick_fd);
}
