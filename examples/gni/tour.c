/* SPDX-License-Identifier: BSD-2-Clause */
/* Put, get and atomics: each rank works on the window of the next one. */
#include "job.h"

#include <pmi.h>
#include <stdio.h>
#include <string.h>

#define WINDOW  16384
#define PUT_AT  0    /* where the left neighbour writes */
#define COUNTER 4096 /* everybody adds to rank 0's */
#define SCRATCH 8192 /* our own use */

static gni_post_descriptor_t post_to(struct job *job, int rank, gni_post_type_t type, uint64_t at,
                                     uint64_t len)
{
    gni_post_descriptor_t p = {.type = type, .length = len};
    p.local_addr = job->window[job->rank].address + SCRATCH;
    p.local_mem_hndl = job->window[job->rank].handle;
    p.remote_addr = job->window[rank].address + at;
    p.remote_mem_hndl = job->window[rank].handle;
    return p;
}

int main(void)
{
    struct job job;
    job_start(&job, WINDOW);
    int right = (job.rank + 1) % job.size, left = (job.rank + job.size - 1) % job.size;
    char *scratch = job.memory + SCRATCH, want[64];
    int wrong = 0;

    /* Put a text into the right neighbour's window and tell it so. */
    snprintf(scratch, 64, "hello from rank %d", job.rank);
    gni_post_descriptor_t put = post_to(&job, right, GNI_POST_FMA_PUT, PUT_AT, 64);
    put.cq_mode = GNI_CQMODE_REMOTE_EVENT;
    post_and_wait(&job, right, &put);
    next_event(job.arrived);
    snprintf(want, sizeof(want), "hello from rank %d", left);
    wrong += strcmp(job.memory + PUT_AT, want) != 0;
    PMI_Barrier();

    /* Get back what we wrote there. The neighbour does nothing. */
    memset(scratch, 0, 64);
    gni_post_descriptor_t get = post_to(&job, right, GNI_POST_RDMA_GET, PUT_AT, 64);
    post_and_wait(&job, right, &get);
    snprintf(want, sizeof(want), "hello from rank %d", job.rank);
    wrong += strcmp(scratch, want) != 0;

    /* Everybody adds its rank + 1 to a counter of rank 0, and is told what it was before. */
    gni_post_descriptor_t add = post_to(&job, 0, GNI_POST_AMO, COUNTER, 8);
    add.amo_cmd = GNI_FMA_ATOMIC_FADD;
    add.first_operand = (uint64_t)job.rank + 1;
    post_and_wait(&job, 0, &add);
    PMI_Barrier();
    uint64_t sum = (uint64_t)job.size * ((uint64_t)job.size + 1) / 2, counter;
    memcpy(&counter, job.memory + COUNTER, 8);
    wrong += job.rank == 0 && counter != sum;

    printf("rank %d of %d: %s\n", job.rank, job.size,
           wrong ? "WRONG" : "put, get and AMO are right");
    job_end(&job);
    return wrong;
}
