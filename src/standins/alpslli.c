// SPDX-License-Identifier: BSD-2-Clause
#include <alps/libalpslli.h>

#include "base/gnijob.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char response[64];
static size_t response_len;

int alps_app_lli_lock(void)
{
    return pthread_mutex_lock(&lock);
}

int alps_app_lli_unlock(void)
{
    return pthread_mutex_unlock(&lock);
}

// A program outside any job is one of its own.
static uint32_t cookie(void)
{
    char name[32];
    snprintf(name, sizeof(name), "alone-%d", (int)getpid());
    wf_gni_job_export(wf_gni_job_cookie(name));
    return (uint32_t)strtoul(getenv("PMI_GNI_COOKIE"), NULL, 10);
}

static void answer(const void *data, size_t len)
{
    memcpy(response, data, len);
    response_len = len;
}

int alps_app_lli_put_request(int request, void *data, size_t length)
{
    uint32_t c = cookie();
    uint64_t apid = c;
    alpsAppLLIGni_t gni = {.count = 1};
    (void)data, (void)length;
    response_len = 0;
    switch (request) {
    case ALPS_APP_LLI_ALPS_REQ_APID:
        answer(&apid, sizeof(apid));
        return ALPS_APP_LLI_ALPS_STAT_OK;
    case ALPS_APP_LLI_ALPS_REQ_GNI:
        gni.u.buf[0].cookie = c;
        gni.u.buf[0].ptag = (uint8_t)strtoul(getenv("PMI_GNI_PTAG"), NULL, 10);
        answer(&gni, sizeof(gni));
        return ALPS_APP_LLI_ALPS_STAT_OK;
    default:
        return ALPS_APP_LLI_ALPS_STAT_FAILED;
    }
}

int alps_app_lli_get_response(int *status, size_t *length)
{
    *status = response_len ? ALPS_APP_LLI_ALPS_STAT_OK : ALPS_APP_LLI_ALPS_STAT_FAILED;
    *length = response_len;
    return *status;
}

int alps_app_lli_get_response_bytes(void *buffer, size_t length)
{
    if (!response_len || length > response_len)
        return ALPS_APP_LLI_ALPS_STAT_FAILED;
    memcpy(buffer, response, length);
    return ALPS_APP_LLI_ALPS_STAT_OK;
}
