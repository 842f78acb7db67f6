// SPDX-License-Identifier: BSD-2-Clause
// A rank of a job that a PMIx launcher started.
#include "pmi/backend.h"
#include <pmi.h>

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pmix_proc_t me;
static int ranks;
static unsigned gathers;

static int code(pmix_status_t s)
{
    return s == PMIX_SUCCESS ? PMI_SUCCESS : PMI_FAIL;
}

static int job_size(void)
{
    pmix_proc_t all;
    pmix_value_t *v;
    PMIX_PROC_CONSTRUCT(&all);
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    if (PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &v) != PMIX_SUCCESS)
        return -1;
    int n = (int)v->data.uint32;
    PMIX_VALUE_RELEASE(v);
    return n;
}

// "0,1,5": the ranks of this node.
static int clique_from(const char *list, struct wf_pmi_job *job)
{
    size_t n = 1;
    for (const char *p = list; *p; p++)
        n += *p == ',';
    job->clique = calloc(n, sizeof(*job->clique));
    if (!job->clique)
        return PMI_ERR_NOMEM;
    for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        job->clique[job->clique_size++] = atoi(p);
    return PMI_SUCCESS;
}

static int clique(struct wf_pmi_job *job)
{
    pmix_proc_t all;
    pmix_value_t *v;
    char self[16];
    PMIX_PROC_CONSTRUCT(&all);
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    snprintf(self, sizeof(self), "%d", job->rank);
    if (PMIx_Get(&all, PMIX_LOCAL_PEERS, NULL, 0, &v) != PMIX_SUCCESS)
        return clique_from(self, job);
    int rc = clique_from(v->type == PMIX_STRING && v->data.string ? v->data.string : self, job);
    PMIX_VALUE_RELEASE(v);
    return rc;
}

static int pmix_init(struct wf_pmi_job *job)
{
    // Without a server PMIx_Init() would make a job of one after a wait; that is alone.c's part.
    if (!getenv("PMIX_NAMESPACE") || PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS)
        return PMI_FAIL;
    job->rank = (int)me.rank;
    job->size = ranks = job_size();
    snprintf(job->name, sizeof(job->name), "%s", me.nspace);
    return ranks > 0 ? clique(job) : PMI_FAIL;
}

static int pmix_finalize(void)
{
    return code(PMIx_Finalize(NULL, 0));
}

static int fence(bool collect)
{
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    pmix_status_t s = PMIx_Fence(NULL, 0, &info, 1);
    PMIX_INFO_DESTRUCT(&info);
    return code(s);
}

static int pmix_barrier(void)
{
    return fence(true); // with the data: PMI promises what was put before
}

static int gather_one(const char *key, int rank, void *out, size_t len)
{
    pmix_proc_t from;
    pmix_value_t *v;
    PMIX_PROC_CONSTRUCT(&from);
    PMIX_LOAD_PROCID(&from, me.nspace, (pmix_rank_t)rank);
    if (PMIx_Get(&from, key, NULL, 0, &v) != PMIX_SUCCESS)
        return PMI_FAIL;
    bool fits = v->type == PMIX_BYTE_OBJECT && v->data.bo.size == len;
    if (fits && len)
        memcpy(out, v->data.bo.bytes, len);
    PMIX_VALUE_RELEASE(v);
    return fits ? PMI_SUCCESS : PMI_FAIL;
}

static int pmix_gather(const void *in, void *out, size_t len)
{
    char key[32];
    pmix_value_t v;
    snprintf(key, sizeof(key), "weft.g%u", gathers++);
    PMIX_VALUE_CONSTRUCT(&v);
    v.type = PMIX_BYTE_OBJECT;
    v.data.bo.bytes = (char *)in; // copied by the put
    v.data.bo.size = len;
    int rc = code(PMIx_Put(PMIX_GLOBAL, key, &v));
    if (rc == PMI_SUCCESS)
        rc = code(PMIx_Commit());
    if (rc == PMI_SUCCESS)
        rc = fence(true);
    for (int r = 0; rc == PMI_SUCCESS && r < ranks; r++)
        rc = gather_one(key, r, (char *)out + (size_t)r * len, len);
    return rc;
}

static void pmix_abort(int exit_code, const char *text)
{
    PMIx_Abort(exit_code, text, NULL, 0);
}

static int pmix_put(const char *key, const char *value)
{
    pmix_value_t v;
    PMIX_VALUE_CONSTRUCT(&v);
    v.type = PMIX_STRING;
    v.data.string = (char *)value;
    int rc = code(PMIx_Put(PMIX_GLOBAL, key, &v));
    return rc == PMI_SUCCESS ? code(PMIx_Commit()) : rc;
}

// PMI names no rank with a key: ask whoever has it.
static int pmix_get(const char *key, char *value, size_t size)
{
    pmix_info_t info;
    bool now = true;
    int rc = PMI_FAIL;
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, PMIX_IMMEDIATE, &now, PMIX_BOOL);
    for (int r = 0; rc != PMI_SUCCESS && r < ranks; r++) {
        pmix_proc_t from;
        pmix_value_t *v;
        PMIX_PROC_CONSTRUCT(&from);
        PMIX_LOAD_PROCID(&from, me.nspace, (pmix_rank_t)r);
        if (PMIx_Get(&from, key, &info, 1, &v) != PMIX_SUCCESS)
            continue;
        if (v->type == PMIX_STRING && strlen(v->data.string) < size) {
            strcpy(value, v->data.string);
            rc = PMI_SUCCESS;
        }
        PMIX_VALUE_RELEASE(v);
    }
    PMIX_INFO_DESTRUCT(&info);
    return rc;
}

const struct wf_pmi_backend wf_pmi_pmix = {pmix_init,  pmix_finalize, pmix_barrier, pmix_gather,
                                           pmix_abort, pmix_put,      pmix_get};
