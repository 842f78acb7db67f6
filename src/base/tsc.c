// SPDX-License-Identifier: BSD-2-Clause
#include "base/tsc.h"

#include <stdbool.h>

#define RESYNC_NS 10000000ull

#if defined(__x86_64__)
static inline uint64_t ticks(void)
{
    return __builtin_ia32_rdtsc();
}
static const bool have_ticks = true;
#elif defined(__aarch64__)
static inline uint64_t ticks(void)
{
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
}
static const bool have_ticks = true;
#else
static inline uint64_t ticks(void)
{
    return 0;
}
static const bool have_ticks = false;
#endif

static uint64_t forward(struct wf_tsc *t, uint64_t ns)
{
    if (ns > t->last)
        t->last = ns;
    return t->last;
}

// Both clocks at one moment. Whoever is put off the CPU between the two readings would be wrong by so
// long: the closest pair of a few is taken.
static void read_both(uint64_t *now, uint64_t *ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        uint64_t before = ticks(), v = wf_clock_ns(), after = ticks();
        if (after - before >= best)
            continue;
        best = after - before;
        *now = before + best / 2;
        *ns = v;
    }
}

static uint64_t resync(struct wf_tsc *t)
{
    uint64_t now = 0, ns = 0;
    read_both(&now, &ns);
    uint64_t dt = now - t->base_ticks, dn = ns - t->base_ns;
    // A fresh pair of readings some way apart gives the rate. A counter that stopped, jumped back
    // or is slower than 1 MHz is not used: every call ends up here.
    if (t->base_ns && dn >= RESYNC_NS / 4 && dt >= dn / 1000 && dt < dn * 16) {
        t->scale = (uint64_t)(((__uint128_t)dn << 32) / dt);
        t->resync = (uint64_t)(((__uint128_t)RESYNC_NS << 32) / t->scale);
    } else if (t->base_ns && dn < RESYNC_NS / 4) {
        return forward(t, ns);
    } else {
        t->scale = 0;
        t->resync = 0;
    }
    t->base_ticks = now;
    t->base_ns = ns;
    return forward(t, ns);
}

uint64_t wf_tsc_ns(struct wf_tsc *t)
{
    if (!have_ticks)
        return wf_clock_ns();
    uint64_t now = ticks(), dt = now - t->base_ticks;
    if (!t->scale || dt >= t->resync)
        return resync(t);
    return forward(t, t->base_ns + (uint64_t)(((__uint128_t)dt * t->scale) >> 32));
}
