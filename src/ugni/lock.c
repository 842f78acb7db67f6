// SPDX-License-Identifier: BSD-2-Clause
// The one lock, joining the host's uGNI processes, sleeping and waking.
//
// Clients cancel threads that are blocked in a call, also asynchronously (libfabric, UCX, Cray's
// examples). So a thread that takes the lock cannot be cancelled before it gives it back, and a
// sleeping one can.
#include "base/reason.h"
#include "ugni/peer.h"
#include "ugni/rc.h"
#include "ugni/service.h"
#include "ugni/shm.h"
#include "ugni/state.h"
#include "ugni/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int cancel_state;

#define POOL(type, n)                                                                              \
    {                                                                                              \
        .size = (sizeof(type) + 63) & ~63ull, .max = (n)                                           \
    }

struct wf_gni_state wf_gni = {
    .cdm_pool = POOL(struct gni_cdm, 1u << 16),
    .nic_pool = POOL(struct gni_nic, 1u << 16),
    .ep_pool = POOL(struct gni_ep, 1u << 20),
    .cq_pool = POOL(struct gni_cq, 1u << 18),
    .err_pool = POOL(struct gni_err, 1u << 12),
    .chan_pool = POOL(struct gni_comp_chan, 1u << 12),
    .req_pool = POOL(struct wf_gni_req, 1u << WF_GNI_TID_BITS),
};

void wf_gni_lock(void)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(&lock);
    cancel_state = state;
}

void wf_gni_unlock(void)
{
    int state = cancel_state;
    pthread_mutex_unlock(&lock);
    if (state != PTHREAD_CANCEL_DISABLE)
        pthread_setcancelstate(state, NULL);
}

// ---- joining ------------------------------------------------------------------------------------

// A forked child starts over: its parent's objects are not its own.
static void forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    if (!wf_gni.joined)
        return;
    wf_gni_shm_forget();
    struct wf_gni_pool *const pools[] = {&wf_gni.cdm_pool, &wf_gni.nic_pool, &wf_gni.ep_pool,
                                         &wf_gni.cq_pool,  &wf_gni.err_pool, &wf_gni.chan_pool,
                                         &wf_gni.req_pool};
    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
        *pools[i] = (struct wf_gni_pool){.size = pools[i]->size, .max = pools[i]->max};
    memset(wf_gni.region, 0, sizeof(wf_gni.region));
    wf_gni.cdms = NULL;
    wf_gni.errs = NULL;
    wf_gni.orphans = NULL;
    wf_gni.joined = false;
    wf_gni_peers_forget();
    wf_gni_rc_forget();
}

bool wf_gni_join(void)
{
    static bool at_fork;
    if (wf_gni.joined)
        return true;
    if (!at_fork)
        at_fork = !pthread_atfork(NULL, NULL, forget_parent);
    uint32_t host = wf_gni_host_part();
    int err = wf_gni_shm_open(host);
    if (!err) {
        wf_gni.pe = WF_GNI_PE(host, wf_gni_shm_slot()); // the threads read it from their start
        err = wf_gni_thread_start();
    }
    if (err) {
        wf_explain(WF_R_GNI_JOIN, "%s", strerror(-err));
        return false;
    }
    wf_gni.joined = true;
    return true;
}

void wf_gni_progress(void)
{
    if (!wf_gni.joined)
        return;
    wf_gni_thread_polled();
    wf_gni_service_messages();
}

void wf_gni_doze(void)
{
    if (wf_gni.joined)
        wf_gni_thread_arm();
}

// A poller that finds nothing gives the core away now and then: hosts have more ranks than cores.
void wf_gni_idle(bool idle)
{
    static _Thread_local unsigned in_a_row;
    if (!idle)
        in_a_row = 0;
    else if (++in_a_row % 32 == 0)
        sched_yield();
}

// ---- sleeping -----------------------------------------------------------------------------------

uint64_t wf_gni_deadline(uint64_t timeout_ms, uint64_t forever)
{
    if (timeout_ms == forever || timeout_ms > WF_GNI_INFINITE / 2 / 1000000)
        return WF_GNI_INFINITE;
    return wf_gni_now() + timeout_ms * 1000000;
}

static int poll_ms(uint64_t deadline)
{
    uint64_t now = wf_gni_now();
    if (deadline == WF_GNI_INFINITE)
        return -1;
    if (deadline <= now)
        return 0;
    uint64_t ms = (deadline - now + 999999) / 1000000;
    return ms > 1000000 ? 1000000 : (int)ms;
}

struct sleeper {
    const struct wf_gni_waitable *w;
    uint32_t n;
    struct pollfd *p;
};

static void cancelled(void *arg)
{
    struct sleeper *s = arg;
    wf_gni_lock();
    for (uint32_t i = 0; i < s->n; i++)
        --*s->w[i].waiters;
    wf_gni_unlock();
    free(s->p);
}

bool wf_gni_sleep_any(const struct wf_gni_waitable *w, uint32_t n, uint64_t deadline)
{
    struct sleeper s = {w, n, calloc(n, sizeof(struct pollfd))};
    int got = 0, ms = poll_ms(deadline);
    if (!s.p)
        return true;
    for (uint32_t i = 0; i < n; i++) {
        if (*w[i].fd < 0)
            *w[i].fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        s.p[i] = (struct pollfd){*w[i].fd, POLLIN, 0};
        ++*w[i].waiters;
    }
    wf_gni_doze();
    // Cancellation may strike anywhere from inside the unlocking to inside the locking.
    pthread_cleanup_push(cancelled, &s);
    wf_gni_unlock();
    got = poll(s.p, n, ms);
    wf_gni_lock();
    pthread_cleanup_pop(0);
    bool interrupted = got < 0 && errno == EINTR;
    for (uint32_t i = 0; i < n; i++)
        --*w[i].waiters;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t count;
        if (s.p[i].revents && read(s.p[i].fd, &count, sizeof(count)) < 0)
            continue; // another waiter took the wake-up
    }
    free(s.p);
    return !interrupted;
}

bool wf_gni_sleep(int *fd, uint32_t *waiters, uint64_t deadline)
{
    struct wf_gni_waitable w = {fd, waiters};
    return wf_gni_sleep_any(&w, 1, deadline);
}

void wf_gni_wake(int fd, uint32_t waiters)
{
    uint64_t one = 1;
    if (waiters && fd >= 0 && write(fd, &one, sizeof(one)) < 0)
        return; // full counter: it is readable already
}

void wf_gni_evict(struct wf_gni_obj *obj, int fd, const uint32_t *waiters)
{
    obj->live = 0; // the sleepers find their handle invalid
    while (*(volatile const uint32_t *)waiters) {
        wf_gni_wake(fd, *waiters);
        wf_gni_unlock();
        sched_yield();
        wf_gni_lock();
    }
}

// ---- refusing -----------------------------------------------------------------------------------

static gni_return_t explain(gni_return_t rc, const char *fmt, va_list ap)
{
    char text[256];
    vsnprintf(text, sizeof(text), fmt, ap);
    wf_explain(WF_R_GNI_CALL, "%s: %s", gni_err_str[rc], text);
    return rc;
}

gni_return_t wf_gni_refuse(gni_return_t rc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    explain(rc, fmt, ap);
    va_end(ap);
    return rc;
}

gni_return_t wf_gni_fail(struct gni_nic *nic, gni_return_t rc, const char *func, const char *fmt,
                         ...)
{
    va_list ap;
    va_start(ap, fmt);
    explain(rc, fmt, ap);
    va_end(ap);
    nic->last.valid = 1;
    snprintf(nic->last.func, sizeof(nic->last.func), "%s", func);
    nic->last.data1 = (uint64_t)rc;
    return rc;
}
