// SPDX-License-Identifier: BSD-2-Clause
#include <pmi.h>

#include "base/gnijob.h"
#include "pmi/backend.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN  256
#define KEY_MAX_LEN   256
#define VALUE_MAX_LEN 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // one call at a time
static const struct wf_pmi_backend *backend;             // NULL before PMI_Init
static struct wf_pmi_job job;

// libugni, when the program has it, sets PMI_GNI_DEV_ID and PMI_GNI_LOC_ADDR: the address is this
// process's own.
static void export_address(void)
{
    void (*set)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "weft_gni_export_address");
    if (set)
        set();
}

static int start(void)
{
    static const struct wf_pmi_backend *const all[] = {&wf_pmi_local, &wf_pmi_pmix, &wf_pmi_alone};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        job = (struct wf_pmi_job){0};
        if (all[i]->init(&job) != PMI_SUCCESS)
            continue;
        backend = all[i];
        wf_gni_job_export(wf_gni_job_cookie(job.name));
        export_address();
        return PMI_SUCCESS;
    }
    return PMI_FAIL;
}

int PMI_Init(int *spawned)
{
    if (!spawned)
        return PMI_ERR_INVALID_ARG;
    pthread_mutex_lock(&lock);
    int rc = backend ? PMI_SUCCESS : start();
    pthread_mutex_unlock(&lock);
    *spawned = PMI_FALSE;
    return rc;
}

int PMI_Initialized(PMI_BOOL *initialized)
{
    if (!initialized)
        return PMI_ERR_INVALID_ARG;
    *initialized = backend ? PMI_TRUE : PMI_FALSE;
    return PMI_SUCCESS;
}

int PMI_Finalize(void)
{
    pthread_mutex_lock(&lock);
    int rc = backend ? backend->finalize() : PMI_ERR_INIT;
    backend = NULL;
    free(job.clique);
    job.clique = NULL;
    pthread_mutex_unlock(&lock);
    return rc;
}

static int tell(int *where, int value)
{
    if (!backend)
        return PMI_ERR_INIT;
    if (!where)
        return PMI_ERR_INVALID_ARG;
    *where = value;
    return PMI_SUCCESS;
}

int PMI_Get_size(int *size)
{
    return tell(size, job.size);
}

int PMI_Get_rank(int *rank)
{
    return tell(rank, job.rank);
}

int PMI_Get_universe_size(int *size)
{
    return tell(size, job.size);
}

int PMI_Get_appnum(int *appnum)
{
    return tell(appnum, 0);
}

int PMI_Get_clique_size(int *size)
{
    return tell(size, job.clique_size);
}

int PMI_Get_clique_ranks(int ranks[], int length)
{
    if (!backend)
        return PMI_ERR_INIT;
    if (!ranks)
        return PMI_ERR_INVALID_ARG;
    if (length < job.clique_size)
        return PMI_ERR_INVALID_LENGTH;
    memcpy(ranks, job.clique, (size_t)job.clique_size * sizeof(*ranks));
    return PMI_SUCCESS;
}

int PMI_Barrier(void)
{
    pthread_mutex_lock(&lock);
    int rc = backend ? backend->barrier() : PMI_ERR_INIT;
    pthread_mutex_unlock(&lock);
    return rc;
}

int PMI_Allgather(void *in, void *out, int len)
{
    if (backend && (len < 0 || (len && (!in || !out))))
        return PMI_ERR_INVALID_ARG;
    pthread_mutex_lock(&lock);
    int rc = backend ? backend->gather(in, out, (size_t)len) : PMI_ERR_INIT;
    pthread_mutex_unlock(&lock);
    return rc;
}

int PMI_Abort(int exit_code, const char error_msg[])
{
    const struct wf_pmi_backend *b = backend ? backend : &wf_pmi_alone;
    b->abort(exit_code, error_msg ? error_msg : "");
    _Exit(exit_code);
}

// ---- keys ---------------------------------------------------------------------------------------

int PMI_KVS_Get_my_name(char kvsname[], int length)
{
    if (!backend)
        return PMI_ERR_INIT;
    if (!kvsname)
        return PMI_ERR_INVALID_ARG;
    if (length < (int)strlen(job.name) + 1)
        return PMI_ERR_INVALID_LENGTH;
    strcpy(kvsname, job.name);
    return PMI_SUCCESS;
}

int PMI_KVS_Get_name_length_max(int *length)
{
    return tell(length, NAME_MAX_LEN);
}

int PMI_KVS_Get_key_length_max(int *length)
{
    return tell(length, KEY_MAX_LEN);
}

int PMI_KVS_Get_value_length_max(int *length)
{
    return tell(length, VALUE_MAX_LEN);
}

static int check_key(const char *kvsname, const char *key)
{
    if (!backend)
        return PMI_ERR_INIT;
    if (!kvsname || strcmp(kvsname, job.name) != 0)
        return PMI_ERR_INVALID_ARG;
    if (!key || !*key)
        return PMI_ERR_INVALID_KEY;
    return strlen(key) < KEY_MAX_LEN ? PMI_SUCCESS : PMI_ERR_INVALID_KEY_LENGTH;
}

int PMI_KVS_Put(const char kvsname[], const char key[], const char value[])
{
    int rc = check_key(kvsname, key);
    if (rc != PMI_SUCCESS)
        return rc;
    if (!value)
        return PMI_ERR_INVALID_VAL;
    if (strlen(value) >= VALUE_MAX_LEN)
        return PMI_ERR_INVALID_VAL_LENGTH;
    pthread_mutex_lock(&lock);
    rc = backend->put(key, value);
    pthread_mutex_unlock(&lock);
    return rc;
}

int PMI_KVS_Commit(const char kvsname[])
{
    return check_key(kvsname, "any"); // every put is committed at once
}

int PMI_KVS_Get(const char kvsname[], const char key[], char value[], int length)
{
    int rc = check_key(kvsname, key);
    if (rc != PMI_SUCCESS)
        return rc;
    if (!value || length <= 0)
        return PMI_ERR_INVALID_ARG;
    pthread_mutex_lock(&lock);
    rc = backend->get(key, value, (size_t)length);
    pthread_mutex_unlock(&lock);
    return rc;
}
