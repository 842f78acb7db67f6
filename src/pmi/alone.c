// SPDX-License-Identifier: BSD-2-Clause
// A job of one.
#include "pmi/backend.h"
#include <pmi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pair {
    struct pair *next;
    char *key, *value;
};

static struct pair *pairs;

static int alone_init(struct wf_pmi_job *job)
{
    job->rank = 0;
    job->size = 1;
    job->clique_size = 1;
    job->clique = calloc(1, sizeof(*job->clique));
    snprintf(job->name, sizeof(job->name), "alone-%d", (int)getpid());
    return job->clique ? PMI_SUCCESS : PMI_ERR_NOMEM;
}

static int alone_finalize(void)
{
    while (pairs) {
        struct pair *p = pairs;
        pairs = p->next;
        free(p->key);
        free(p->value);
        free(p);
    }
    return PMI_SUCCESS;
}

static int alone_barrier(void)
{
    return PMI_SUCCESS;
}

static int alone_gather(const void *in, void *out, size_t len)
{
    if (len)
        memmove(out, in, len);
    return PMI_SUCCESS;
}

static void alone_abort(int code, const char *text)
{
    fprintf(stderr, "PMI_Abort(%d): %s\n", code, text);
}

static int alone_put(const char *key, const char *value)
{
    struct pair *p = calloc(1, sizeof(*p));
    if (p) {
        p->key = strdup(key);
        p->value = strdup(value);
    }
    if (!p || !p->key || !p->value) {
        if (p) {
            free(p->key);
            free(p->value);
        }
        free(p);
        return PMI_ERR_NOMEM;
    }
    p->next = pairs; // the newest of a key is found first
    pairs = p;
    return PMI_SUCCESS;
}

static int alone_get(const char *key, char *value, size_t size)
{
    for (struct pair *p = pairs; p; p = p->next)
        if (strcmp(p->key, key) == 0) {
            if (strlen(p->value) >= size)
                return PMI_ERR_INVALID_LENGTH;
            strcpy(value, p->value);
            return PMI_SUCCESS;
        }
    return PMI_FAIL;
}

const struct wf_pmi_backend wf_pmi_alone = {
    alone_init, alone_finalize, alone_barrier, alone_gather, alone_abort, alone_put, alone_get};
