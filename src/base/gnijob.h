// SPDX-License-Identifier: BSD-2-Clause
// How a uGNI job is named: its cookie decides its protection tag. The launcher, libpmi and libugni
// agree on it here.
#ifndef WF_BASE_GNIJOB_H
#define WF_BASE_GNIJOB_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// A tag among those of user jobs (3 to 253).
static inline uint8_t wf_gni_job_ptag(uint32_t cookie)
{
    return (uint8_t)(3 + (cookie * 2654435761u >> 16) % 251);
}

// The same cookie for every process that was given the same name.
static inline uint32_t wf_gni_job_cookie(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    // Clients read it with atoi(): keep it positive.
    return h & 0x7fffffff ? h & 0x7fffffff : 1;
}

// PMI_GNI_COOKIE and PMI_GNI_PTAG, unless set: lists of which some clients take the first entry and
// others the second.
static inline void wf_gni_job_export(uint32_t cookie)
{
    char text[32];
    snprintf(text, sizeof(text), "%u:%u", cookie, cookie);
    setenv("PMI_GNI_COOKIE", text, 0);
    cookie = (uint32_t)strtoul(getenv("PMI_GNI_COOKIE"), NULL, 10);
    snprintf(text, sizeof(text), "%u:%u", wf_gni_job_ptag(cookie), wf_gni_job_ptag(cookie));
    setenv("PMI_GNI_PTAG", text, 0);
}

#endif
