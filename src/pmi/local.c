// SPDX-License-Identifier: BSD-2-Clause
// A rank of `weft run -n N`.
#include "pmi/backend.h"
#include "pmi/ranks.h"
#include <pmi.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static int fd = -1;
static struct wf_pmi_job *mine;

static int number(const char *name, int low, int high)
{
    const char *v = getenv(name);
    char *end;
    long n = v ? strtol(v, &end, 10) : -1;
    return v && *v && !*end && n >= low && n <= high ? (int)n : -1;
}

static int transfer(void *buf, size_t len, int receive)
{
    for (char *p = buf; len;) {
        ssize_t n = receive ? recv(fd, p, len, 0) : send(fd, p, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return PMI_FAIL;
        p += n;
        len -= (size_t)n;
    }
    return PMI_SUCCESS;
}

static int request(enum wf_ranks_op op, const void *data, size_t len, int arg)
{
    struct wf_ranks_msg m = {op, (uint32_t)len, arg, 0};
    if (len > WF_RANKS_BYTES)
        return PMI_ERR_INVALID_LENGTH;
    int rc = transfer(&m, sizeof(m), 0);
    return rc == PMI_SUCCESS && len ? transfer((void *)data, len, 0) : rc;
}

// The answer's bytes go to `out`; more than `size` is a failure, after they were read past.
static int answer(void *out, size_t size, size_t *got)
{
    struct wf_ranks_msg m;
    char skip[512];
    int rc = transfer(&m, sizeof(m), 1);
    if (rc != PMI_SUCCESS)
        return rc;
    size_t take = m.len < size ? m.len : size;
    if (take)
        rc = transfer(out, take, 1);
    for (size_t left = m.len - take; rc == PMI_SUCCESS && left;) {
        size_t n = left < sizeof(skip) ? left : sizeof(skip);
        rc = transfer(skip, n, 1);
        left -= n;
    }
    if (got)
        *got = m.len;
    if (rc != PMI_SUCCESS || m.op != WF_RANKS_DONE)
        return PMI_FAIL;
    return m.len > size ? PMI_ERR_INVALID_LENGTH : PMI_SUCCESS;
}

static int local_init(struct wf_pmi_job *job)
{
    const char *name = getenv(WF_RANKS_JOB);
    fd = number(WF_RANKS_FD, 0, 1 << 20);
    job->size = number(WF_RANKS_SIZE, 1, WF_RANKS_MAX);
    job->rank = number(WF_RANKS_RANK, 0, job->size - 1);
    int ppn = number(WF_RANKS_PPN, 1, job->size);
    if (fd < 0 || job->size < 0 || job->rank < 0 || ppn < 0 || !name)
        return PMI_FAIL;
    int first = job->rank / ppn * ppn;
    job->clique_size = first + ppn > job->size ? job->size - first : ppn;
    job->clique = calloc((size_t)job->clique_size, sizeof(*job->clique));
    if (!job->clique)
        return PMI_ERR_NOMEM;
    for (int i = 0; i < job->clique_size; i++)
        job->clique[i] = first + i;
    snprintf(job->name, sizeof(job->name), "%s", name);
    mine = job;
    return PMI_SUCCESS;
}

static int local_finalize(void)
{
    int rc = request(WF_RANKS_LEAVE, NULL, 0, 0);
    return rc == PMI_SUCCESS ? answer(NULL, 0, NULL) : rc;
}

static int local_barrier(void)
{
    int rc = request(WF_RANKS_BARRIER, NULL, 0, 0);
    return rc == PMI_SUCCESS ? answer(NULL, 0, NULL) : rc;
}

static int local_gather(const void *in, void *out, size_t len)
{
    size_t got = 0, all = len * (size_t)mine->size;
    int rc = request(WF_RANKS_GATHER, in, len, 0);
    if (rc == PMI_SUCCESS)
        rc = answer(out, all, &got);
    return rc == PMI_SUCCESS && got != all ? PMI_FAIL : rc;
}

static void local_abort(int code, const char *text)
{
    request(WF_RANKS_ABORT, text, strlen(text), code);
}

static int local_put(const char *key, const char *value)
{
    char buf[8192];
    int n = snprintf(buf, sizeof(buf), "%s%c%s", key, 0, value);
    int rc = request(WF_RANKS_PUT, buf, (size_t)n + 1, 0);
    return rc == PMI_SUCCESS ? answer(NULL, 0, NULL) : rc;
}

static int local_get(const char *key, char *value, size_t size)
{
    int rc = request(WF_RANKS_GET, key, strlen(key) + 1, 0);
    return rc == PMI_SUCCESS ? answer(value, size, NULL) : rc;
}

const struct wf_pmi_backend wf_pmi_local = {
    local_init, local_finalize, local_barrier, local_gather, local_abort, local_put, local_get};
