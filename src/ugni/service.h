// SPDX-License-Identifier: BSD-2-Clause
// What the serving thread does: messages, things that are due, callbacks of the program.
#ifndef WF_UGNI_SERVICE_H
#define WF_UGNI_SERVICE_H

#include <stdint.h>

uint64_t wf_gni_now(void); // nanoseconds

// Under the lock.
void wf_gni_service_messages(void);
void wf_gni_service_timers(void);
uint64_t wf_gni_service_next(void);

// With no lock held.
void wf_gni_service_callbacks(void);

// Have `fn(arg)` called by the thread at `at` or soon after, under the lock. One timer a function.
enum wf_gni_timer { WF_GNI_TIMER_DGRAM, WF_GNI_TIMER_HOLD, WF_GNI_TIMERS };
void wf_gni_service_at(enum wf_gni_timer which, uint64_t at);
void wf_gni_dgram_timer(uint64_t now);
void wf_gni_hold_timer(uint64_t now);

// Queue a callback of the program for the thread.
struct wf_gni_call {
    void (*fn)(void *a, uint64_t b, uint64_t c);
    void *a;
    uint64_t b, c;
};
void wf_gni_service_call(struct wf_gni_call call);

#endif
