/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of a rank about its job: put one, then get the response's length, then its bytes. Link
 * with -lalpslli. The credentials are those of PMI_GNI_PTAG and PMI_GNI_COOKIE.
 */
#ifndef WEFT_LIBALPSLLI_H
#define WEFT_LIBALPSLLI_H

#include <alps/alps.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ALPS_APP_LLI_ALPS_REQ_APID 1 /* uint64_t: number of the job */
#define ALPS_APP_LLI_ALPS_REQ_GNI  2 /* alpsAppLLIGni_t */

#define ALPS_APP_LLI_ALPS_STAT_OK     0
#define ALPS_APP_LLI_ALPS_STAT_FAILED 1 /* no such request, or no job */

/* One thread's requests at a time. */
int alps_app_lli_lock(void);
int alps_app_lli_unlock(void);
int alps_app_lli_put_request(int request, void *data, size_t length);
int alps_app_lli_get_response(int *status, size_t *length);
int alps_app_lli_get_response_bytes(void *buffer, size_t length);

#ifdef __cplusplus
}
#endif
#endif
