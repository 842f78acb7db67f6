/* SPDX-License-Identifier: BSD-2-Clause */
/* Every rank sends a short message to every rank, itself too, and checks what it gets. */
#include "job.h"

#include <pmi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static void open_mailboxes(struct job *job, gni_smsg_attr_t *mine)
{
    gni_smsg_attr_t *all = calloc((size_t)job->size, sizeof(*all));
    everybody(mine, all, sizeof(*mine));
    for (int r = 0; r < job->size; r++) {
        gni_smsg_attr_t here = *mine, there = all[r];
        here.mbox_offset = mine->buff_size * (uint32_t)r;          /* for rank r, in our window */
        there.mbox_offset = mine->buff_size * (uint32_t)job->rank; /* for us, in theirs */
        check(GNI_SmsgInit(job->to[r], &here, &there), "GNI_SmsgInit");
    }
    free(all);
    PMI_Barrier();
}

int main(void)
{
    struct job job;
    gni_smsg_attr_t attr = {.msg_type = GNI_SMSG_TYPE_MBOX, .mbox_maxcredit = 2, .msg_maxsize = 16};
    gni_cq_entry_t event;
    int sent = 0, got = 0, wrong = 0;
    check(GNI_SmsgBufferSizeNeeded(&attr, &attr.buff_size), "GNI_SmsgBufferSizeNeeded");
    job_start(&job, 65536);
    attr.msg_buffer = job.memory;
    attr.mem_hndl = job.window[job.rank].handle;
    open_mailboxes(&job, &attr);
    while (sent < job.size || got < job.size) {
        if (sent < job.size) {
            int to = (job.rank + sent) % job.size;
            int message[2] = {job.rank, to};
            gni_return_t rc = GNI_SmsgSend(job.to[to], message, sizeof(message), NULL, 0, 0);
            sent += rc == GNI_RC_SUCCESS;
            if (rc != GNI_RC_NOT_DONE)
                check(rc, "GNI_SmsgSend");
        }
        while (GNI_CqGetEvent(job.sent, &event) == GNI_RC_SUCCESS)
            ;
        for (int r = 0; r < job.size; r++) {
            void *m;
            if (GNI_SmsgGetNext(job.to[r], &m) != GNI_RC_SUCCESS)
                continue;
            wrong += ((int *)m)[0] != r || ((int *)m)[1] != job.rank;
            got++;
            check(GNI_SmsgRelease(job.to[r]), "GNI_SmsgRelease");
        }
        sched_yield();
    }
    if (wrong || job.rank == 0)
        printf("rank %d of %d: %d messages, %d wrong\n", job.rank, job.size, got, wrong);
    job_end(&job);
    return wrong != 0;
}
