// SPDX-License-Identifier: BSD-2-Clause
// Devices, versions, statistics.
#include "ugni/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

gni_nic_device_t wf_gni_device_type(void)
{
    static int type = -1;
    if (type < 0) {
        const char *v = getenv("WEFT_GNI_DEVICE");
        type = v && !strcasecmp(v, "gemini") ? GNI_DEVICE_GEMINI : GNI_DEVICE_ARIES;
    }
    return (gni_nic_device_t)type;
}

gni_return_t GNI_GetDeviceType(gni_nic_device_t *dev_type)
{
    if (!dev_type)
        return GNI_RC_ERROR_RESOURCE; // the one failure that the call knows
    *dev_type = wf_gni_device_type();
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetNumLocalDevices(int *num_devices)
{
    if (!num_devices)
        return GNI_RC_INVALID_PARAM;
    *num_devices = 1;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetLocalDeviceIds(int len, int *device_ids)
{
    if (len < 1 || !device_ids)
        return GNI_RC_INVALID_PARAM;
    device_ids[0] = WF_GNI_DEVICE_ID;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetVersion(uint32_t *version)
{
    if (!version)
        return GNI_RC_INVALID_PARAM;
    *version = GNI_VERSION;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetVersionInformation(gni_version_info_t *version_info)
{
    if (!version_info)
        return GNI_RC_INVALID_PARAM;
    memset(version_info, 0, sizeof(*version_info));
    version_info->ugni_version = version_info->kgni_version = GNI_VERSION;
    snprintf(version_info->ugni_build_string, MAX_BUILD_STRING_LENGTH, "weft %s", WEFT_VERSION);
    snprintf(version_info->kgni_build_string, MAX_BUILD_STRING_LENGTH, "weft %s", WEFT_VERSION);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetPtag(uint32_t device_id, uint32_t cookie, uint8_t *ptag)
{
    if (!ptag)
        return GNI_RC_INVALID_PARAM;
    if (device_id != WF_GNI_DEVICE_ID)
        return GNI_RC_NO_MATCH;
    wf_gni_lock();
    *ptag = wf_gni_ptag_of(cookie);
    wf_gni_unlock();
    return GNI_RC_SUCCESS;
}

// A program built without CRAY_CONFIG_GHAL_ARIES counts seven; its numbers are the first seven
// here.
static gni_return_t statistic(gni_nic_handle_t h, unsigned stat, uint32_t *value, bool reset)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(h);
    if (nic && stat < WF_GNI_STATS && (value || reset)) {
        if (value)
            *value = nic->stats[stat];
        if (reset)
            nic->stats[stat] = 0;
        rc = GNI_RC_SUCCESS;
    }
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_GetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat, uint32_t *value)
{
    return statistic(nic_hndl, (unsigned)stat, value, false);
}

gni_return_t GNI_ResetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat)
{
    return statistic(nic_hndl, (unsigned)stat, NULL, true);
}
