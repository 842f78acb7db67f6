// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/thread.h"
#include "ugni/rc.h"
#include "ugni/segment.h"
#include "ugni/service.h"
#include "ugni/shm.h"
#include "ugni/state.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

// How long the thread looks away after it saw the program poll: short at first, longer while it
// goes on.
#define LOOK_AWAY_MIN_MS 1
#define LOOK_AWAY_MAX_MS 16

static struct {
    int epoll;
    pthread_t serve, listen;
    _Atomic uint32_t polls; // by calls of the program
} threads = {.epoll = -1};

static void ring_own_bell(void)
{
    uint64_t one = 1;
    if (write(wf_gni_shm_bell(), &one, sizeof(one)) < 0)
        return; // full counter: it rings already
}

void wf_gni_thread_polled(void)
{
    _Atomic uint32_t *bell = wf_gni_shm_bell_state();
    atomic_fetch_add_explicit(&threads.polls, 1, memory_order_relaxed);
    if (atomic_load_explicit(bell, memory_order_relaxed) != WF_GNI_BELL_POLLED) {
        atomic_store(bell, WF_GNI_BELL_POLLED);
        ring_own_bell(); // so that the thread starts to look whether polling goes on
    }
}

void wf_gni_thread_arm(void)
{
    _Atomic uint32_t *bell = wf_gni_shm_bell_state();
    atomic_store(bell, WF_GNI_BELL_ARMED);
    if (wf_gni_shm_pending() || wf_gni_rc_arm())
        ring_own_bell();
}

void wf_gni_thread_kick(void)
{
    ring_own_bell();
}

static int epoll_add(int fd, void *ptr, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = ptr};
    return epoll_ctl(threads.epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void wf_gni_thread_watch(int fd, struct wf_gni_peer *peer)
{
    epoll_add(fd, peer, EPOLLRDHUP);
}

// Milliseconds until the thread has something to do by itself; -1: never.
static int next_wait(uint64_t now)
{
    uint64_t at = wf_gni_service_next();
    if (at == WF_GNI_INFINITE)
        return -1;
    return at <= now ? 0 : (int)((at - now) / 1000000 + 1);
}

static void died(struct wf_gni_peer *peer)
{
    wf_gni_lock();
    if (!peer->dead)
        wf_gni_peer_died(peer);
    wf_gni_unlock();
}

// Take messages out, run what is due; then the callbacks, with no lock held.
static int serve_once(bool messages)
{
    wf_gni_lock();
    if (messages)
        wf_gni_service_messages();
    wf_gni_service_timers();
    int wait = next_wait(wf_gni_now());
    wf_gni_unlock();
    wf_gni_service_callbacks();
    return wait;
}

static int shorter(int a, int b)
{
    return a < 0 ? b : b < 0 ? a : a < b ? a : b;
}

static bool rc_pending(void)
{
    wf_gni_lock();
    bool some = wf_gni_rc_arm();
    wf_gni_unlock();
    return some;
}

static void *serve(void *arg)
{
    _Atomic uint32_t *bell = wf_gni_shm_bell_state();
    uint32_t polls = 0;
    int away = LOOK_AWAY_MIN_MS;
    (void)arg;
    wf_gni_rc_start();
    for (;;) {
        struct epoll_event ev[16];
        bool polled =
            atomic_load(bell) == WF_GNI_BELL_POLLED && atomic_load(&threads.polls) != polls;
        polls = atomic_load(&threads.polls);
        int wait = serve_once(!polled);
        if (polled) {
            wait = shorter(wait, away);
            away = away < LOOK_AWAY_MAX_MS ? away * 2 : away;
        } else {
            away = LOOK_AWAY_MIN_MS;
            atomic_store(bell, WF_GNI_BELL_ARMED);
            if (wf_gni_shm_pending() || rc_pending())
                continue;
        }
        int n = epoll_wait(threads.epoll, ev, 16, wait);
        for (int i = 0; i < n; i++) {
            uint64_t count;
            if (ev[i].data.ptr == &threads) {
                if (read(wf_gni_shm_bell(), &count, sizeof(count)) < 0)
                    continue;
            } else if (ev[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
                died(ev[i].data.ptr);
            }
        }
    }
    return NULL;
}

static void *listen_for_peers(void *arg)
{
    (void)arg;
    for (;;) {
        struct pollfd p = {wf_gni_shm_listener(), POLLIN, 0};
        if (poll(&p, 1, -1) > 0)
            wf_gni_shm_accept();
    }
    return NULL;
}

int wf_gni_thread_start(void)
{
    sigset_t all, old;
    threads.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (threads.epoll < 0)
        return -errno;
    epoll_add(wf_gni_shm_bell(), &threads, EPOLLIN);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int err = pthread_create(&threads.listen, NULL, listen_for_peers, NULL);
    if (!err)
        err = pthread_create(&threads.serve, NULL, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -err;
}
