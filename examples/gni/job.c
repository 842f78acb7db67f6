/* SPDX-License-Identifier: BSD-2-Clause */
#include "job.h"

#include <pmi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check(gni_return_t rc, const char *what)
{
    if (rc == GNI_RC_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", what, gni_err_str[rc]);
    PMI_Abort(1, what);
}

/* PMI_Allgather() promises no order, so each rank sends its number along. */
void everybody(void *in, void *out, int len)
{
    int rank, size, all = (int)sizeof(rank) + len;
    PMI_Get_rank(&rank);
    PMI_Get_size(&size);
    char *mine = malloc((size_t)all), *theirs = malloc((size_t)(all * size));
    memcpy(mine, &rank, sizeof(rank));
    memcpy(mine + sizeof(rank), in, (size_t)len);
    if (PMI_Allgather(mine, theirs, all) != PMI_SUCCESS)
        PMI_Abort(1, "PMI_Allgather");
    for (int i = 0; i < size; i++) {
        int from;
        memcpy(&from, theirs + i * all, sizeof(from));
        memcpy((char *)out + from * len, theirs + i * all + sizeof(from), (size_t)len);
    }
    free(mine);
    free(theirs);
}

void job_start(struct job *job, unsigned window_bytes)
{
    int spawned;
    uint32_t address, *addresses;
    struct window mine;

    PMI_Init(&spawned);
    PMI_Get_rank(&job->rank);
    PMI_Get_size(&job->size);

    /* PMI_Init() set these. Domains with the same tag and cookie can talk. */
    uint8_t ptag = (uint8_t)atoi(getenv("PMI_GNI_PTAG"));
    uint32_t cookie = (uint32_t)atoi(getenv("PMI_GNI_COOKIE"));
    check(GNI_CdmCreate((uint32_t)job->rank, ptag, cookie, 0, &job->cdm), "GNI_CdmCreate");
    check(GNI_CdmAttach(job->cdm, 0, &address, &job->nic), "GNI_CdmAttach");
    check(GNI_CqCreate(job->nic, 1024, 0, GNI_CQ_NOBLOCK, NULL, NULL, &job->sent), "GNI_CqCreate");
    check(GNI_CqCreate(job->nic, 4096, 0, GNI_CQ_NOBLOCK, NULL, NULL, &job->arrived),
          "GNI_CqCreate");

    job->memory = aligned_alloc(4096, window_bytes);
    memset(job->memory, 0, window_bytes);
    mine.address = (uint64_t)(uintptr_t)job->memory;
    check(GNI_MemRegister(job->nic, mine.address, window_bytes, job->arrived, GNI_MEM_READWRITE,
                          (uint32_t)-1, &mine.handle),
          "GNI_MemRegister");

    addresses = calloc((size_t)job->size, sizeof(*addresses));
    job->window = calloc((size_t)job->size, sizeof(*job->window));
    job->to = calloc((size_t)job->size, sizeof(gni_ep_handle_t));
    everybody(&address, addresses, sizeof(address));
    everybody(&mine, job->window, sizeof(mine));
    for (int r = 0; r < job->size; r++) {
        check(GNI_EpCreate(job->nic, job->sent, &job->to[r]), "GNI_EpCreate");
        check(GNI_EpBind(job->to[r], addresses[r], (uint32_t)r), "GNI_EpBind");
    }
    free(addresses);
}

void job_end(struct job *job)
{
    PMI_Barrier(); /* nobody needs our window any more */
    check(GNI_CdmDestroy(job->cdm), "GNI_CdmDestroy");
    PMI_Finalize();
    free(job->memory);
    free(job->window);
    free(job->to);
}

gni_cq_entry_t next_event(gni_cq_handle_t cq)
{
    gni_cq_entry_t event;
    gni_return_t rc;
    while ((rc = GNI_CqGetEvent(cq, &event)) == GNI_RC_NOT_DONE)
        sched_yield();
    if (rc == GNI_RC_TRANSACTION_ERROR) {
        char text[256] = "?";
        GNI_CqErrorStr(event, text, sizeof(text));
        PMI_Abort(1, text);
    }
    check(rc, "GNI_CqGetEvent");
    return event;
}

void post_and_wait(struct job *job, int rank, gni_post_descriptor_t *post)
{
    gni_post_descriptor_t *done;
    int rdma = post->type == GNI_POST_RDMA_PUT || post->type == GNI_POST_RDMA_GET;
    post->cq_mode |= GNI_CQMODE_GLOBAL_EVENT; /* "it is in the other's memory" */
    check(rdma ? GNI_PostRdma(job->to[rank], post) : GNI_PostFma(job->to[rank], post), "post");
    check(GNI_GetCompleted(job->sent, next_event(job->sent), &done), "GNI_GetCompleted");
}
