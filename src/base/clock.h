// SPDX-License-Identifier: BSD-2-Clause
#ifndef WF_BASE_CLOCK_H
#define WF_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define WF_NSEC_PER_SEC 1000000000ull
#define WF_NEVER        UINT64_MAX

// Nanoseconds on CLOCK_MONOTONIC. Only engine/ and the faces read it; everything below takes `now`
// as an argument so that tests move time by hand.
static inline uint64_t wf_clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * WF_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

#endif
