// SPDX-License-Identifier: BSD-2-Clause
// Which line of the program made a call: for reasons only, as walking a stack takes microseconds.
#include "base/record.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 16

static const void *base_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

const void *wf_call_site(void)
{
    void *frames[DEPTH];
    const void *own = base_of((const void *)&wf_call_site);
    int n = backtrace(frames, DEPTH);
    for (int i = 1; i < n; i++)
        if (base_of(frames[i]) != own)
            return frames[i];
    return n > 2 ? frames[2] : NULL; // linked into the program itself
}

const char *wf_call_site_name(const void *address, char *buf, size_t len)
{
    Dl_info info;
    if (!address || !dladdr(address, &info) || !info.dli_fname)
        snprintf(buf, len, "?");
    else if (info.dli_sname)
        snprintf(buf, len, "%s+0x%zx in %s", info.dli_sname,
                 (size_t)((const char *)address - (const char *)info.dli_saddr), info.dli_fname);
    else
        snprintf(buf, len, "%s+0x%zx", info.dli_fname,
                 (size_t)((const char *)address - (const char *)info.dli_fbase));
    return buf;
}
