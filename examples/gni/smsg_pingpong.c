/* SPDX-License-Identifier: BSD-2-Clause */
/* Short messages between rank 0 and rank 1: half the round-trip time of 8 bytes. */
#include "job.h"

#include <pmi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void open_mailbox(struct job *job, int peer)
{
    gni_smsg_attr_t mine = {.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT,
                            .msg_buffer = job->memory,
                            .mem_hndl = job->window[job->rank].handle,
                            .mbox_maxcredit = 16,
                            .msg_maxsize = 64};
    gni_smsg_attr_t *all = calloc((size_t)job->size, sizeof(*all));
    check(GNI_SmsgBufferSizeNeeded(&mine, &mine.buff_size), "GNI_SmsgBufferSizeNeeded");
    everybody(&mine, all, sizeof(mine));
    check(GNI_SmsgInit(job->to[peer], &mine, &all[peer]), "GNI_SmsgInit");
    free(all);
    PMI_Barrier();
}

/* Every send leaves an event on the sender's side, which makes room for the next. */
static void reap(struct job *job)
{
    gni_cq_entry_t event;
    while (GNI_CqGetEvent(job->sent, &event) == GNI_RC_SUCCESS)
        ;
    while (GNI_CqGetEvent(job->arrived, &event) != GNI_RC_NOT_DONE)
        ;
}

static void send_one(struct job *job, int peer, uint64_t value)
{
    gni_return_t rc;
    while ((rc = GNI_SmsgSend(job->to[peer], &value, sizeof(value), NULL, 0, 0)) == GNI_RC_NOT_DONE)
        reap(job);
    check(rc, "GNI_SmsgSend");
}

static uint64_t receive_one(struct job *job, int peer)
{
    void *message;
    gni_return_t rc;
    while ((rc = GNI_SmsgGetNext(job->to[peer], &message)) == GNI_RC_NOT_DONE)
        ;
    check(rc, "GNI_SmsgGetNext");
    uint64_t value = *(uint64_t *)message;
    check(GNI_SmsgRelease(job->to[peer]), "GNI_SmsgRelease");
    return value;
}

int main(int argc, char **argv)
{
    struct job job;
    struct timespec a, b;
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000, wrong = 0;
    job_start(&job, 65536);
    if (job.size != 2) {
        fprintf(stderr, "two ranks, please\n");
        return 2;
    }
    int peer = 1 - job.rank;
    open_mailbox(&job, peer);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (uint64_t i = 0; i < rounds; i++) {
        if (job.rank == 0)
            send_one(&job, peer, i);
        wrong += receive_one(&job, peer) != i;
        if (job.rank == 1)
            send_one(&job, peer, i);
        if (i % 64 == 0)
            reap(&job);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    double us = (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3;
    if (job.rank == 0)
        printf("%llu rounds, %.3f us one way%s\n", (unsigned long long)rounds,
               us / (double)rounds / 2, wrong ? ", WRONG DATA" : "");
    job_end(&job);
    return wrong != 0;
}
