// SPDX-License-Identifier: BSD-2-Clause
// The environment as clients read it. A process's PE address is its own, so no launcher can set
// PMI_GNI_LOC_ADDR: the library does when it is loaded into a rank, and libpmi has it done once
// more by PMI_Init(). A job that only has a PMIx namespace (mpirun, without PMI calls) gets its
// cookie and tag here too.
#include "base/gnijob.h"
#include "ugni/state.h"

#include <string.h>
#include <unistd.h>

#define OWNER "WEFT_GNI_LOC_PID" // who set the address: children inherit variables, not addresses

void weft_gni_export_address(void);

static bool inherited(void)
{
    const char *pid = getenv(OWNER);
    return pid && atoi(pid) != (int)getpid();
}

static void set_number(const char *name, const char *format, uint32_t n)
{
    char text[40];
    snprintf(text, sizeof(text), format, n, n);
    setenv(name, text, 1);
}

void weft_gni_export_address(void)
{
    uint32_t pe, cpu;
    if (getenv("PMI_GNI_LOC_ADDR") && !inherited())
        return;
    if (GNI_CdmGetNicAddress(WF_GNI_DEVICE_ID, &pe, &cpu) != GNI_RC_SUCCESS)
        return;
    set_number("PMI_GNI_DEV_ID", "%u:%u", WF_GNI_DEVICE_ID);
    set_number("PMI_GNI_LOC_ADDR", "%u:%u", pe);
    set_number(OWNER, "%u", (uint32_t)getpid());
}

__attribute__((constructor)) static void loaded(void)
{
    const char *space = getenv("PMIX_NAMESPACE");
    if (space && !getenv("PMI_GNI_COOKIE"))
        wf_gni_job_export(wf_gni_job_cookie(space));
    if (getenv("PMI_GNI_COOKIE"))
        weft_gni_export_address();
}
