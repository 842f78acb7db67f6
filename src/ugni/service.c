// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/service.h"
#include "base/clock.h"
#include "ugni/peer.h"
#include "ugni/rc.h"
#include "ugni/shm.h"
#include "ugni/state.h"
#include "ugni/thread.h"

#include <stdlib.h>

// Nobody tells when a full ring has room again.
#define RETRY_NS 1000000

struct queued_call {
    struct queued_call *next;
    struct wf_gni_call call;
};

static uint64_t due[WF_GNI_TIMERS] = {WF_GNI_INFINITE, WF_GNI_INFINITE};
static struct queued_call *calls, **calls_tail = &calls;

uint64_t wf_gni_now(void)
{
    return wf_clock_ns();
}

void wf_gni_service_messages(void)
{
    wf_gni_shm_poll();
    wf_gni_rc_poll();
    wf_gni_peers_flush();
}

void wf_gni_service_at(enum wf_gni_timer which, uint64_t at)
{
    if (at < due[which]) {
        due[which] = at;
        wf_gni_thread_kick();
    }
}

uint64_t wf_gni_service_next(void)
{
    uint64_t at = wf_gni_rc_next();
    if (wf_gni_peers_waiting() && at > wf_gni_now() + RETRY_NS)
        at = wf_gni_now() + RETRY_NS;
    for (int i = 0; i < WF_GNI_TIMERS; i++)
        if (due[i] < at)
            at = due[i];
    return at;
}

void wf_gni_service_timers(void)
{
    static void (*const fn[WF_GNI_TIMERS])(uint64_t) = {
        [WF_GNI_TIMER_DGRAM] = wf_gni_dgram_timer,
        [WF_GNI_TIMER_HOLD] = wf_gni_hold_timer,
    };
    uint64_t now = wf_gni_now();
    wf_gni_peers_flush();
    for (int i = 0; i < WF_GNI_TIMERS; i++)
        if (due[i] <= now) {
            due[i] = WF_GNI_INFINITE; // the function asks again if it wants more
            fn[i](now);
        }
}

void wf_gni_service_call(struct wf_gni_call call)
{
    struct queued_call *q = malloc(sizeof(*q));
    if (!q)
        return;
    *q = (struct queued_call){NULL, call};
    *calls_tail = q;
    calls_tail = &q->next;
    wf_gni_thread_kick();
}

void wf_gni_service_callbacks(void)
{
    for (;;) {
        wf_gni_lock();
        struct queued_call *q = calls;
        if (q && !(calls = q->next))
            calls_tail = &calls;
        wf_gni_unlock();
        if (!q)
            return;
        q->call.fn(q->call.a, q->call.b, q->call.c);
        free(q);
    }
}
