// SPDX-License-Identifier: BSD-2-Clause
// CLOCK_MONOTONIC at the price of reading the CPU's time-stamp counter. It is compared with the
// kernel's clock every 10 ms, so the two never differ by more than the counter drifts in that time,
// and it never goes back. Where there is no such counter the kernel's clock is read.
#ifndef WF_BASE_TSC_H
#define WF_BASE_TSC_H

#include "base/clock.h"

struct wf_tsc {
    uint64_t base_ticks, base_ns;
    uint64_t scale;  // ns per tick, 32 bits after the point; 0: not calibrated yet
    uint64_t resync; // ticks after base_ticks when to compare again
    uint64_t last;
};

// Not for two threads at once: the caller's lock covers it.
uint64_t wf_tsc_ns(struct wf_tsc *t);

#endif
