/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of cells, cut into one piece for each rank. In each step every cell becomes the sum of
 * itself and its two neighbours, modulo 1000; the cells at the edges come from the ranks beside
 * (the halo). Each rank puts its edge cells straight into its neighbours' halos and counts the two
 * events that tell it that its own halo is filled.
 */
#include "job.h"

#include <pmi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELLS 100 /* of a rank */
#define STEPS 50

/* Two sets, used in turn: a fast neighbour fills the next step's halo while we still read this. */
struct piece {
    uint64_t halo_left, cell[CELLS], halo_right;
};

static void put_edge(struct job *job, int rank, uint64_t *from, uint64_t at)
{
    gni_post_descriptor_t p = {.type = GNI_POST_FMA_PUT, .length = sizeof(*from)};
    p.local_addr = (uint64_t)(uintptr_t)from;
    p.remote_addr = job->window[rank].address + at;
    p.remote_mem_hndl = job->window[rank].handle;
    p.cq_mode = GNI_CQMODE_REMOTE_EVENT;
    post_and_wait(job, rank, &p);
}

static void step(struct job *job, int n)
{
    struct piece *now = (struct piece *)job->memory + n % 2,
                 *next = (struct piece *)job->memory + (n + 1) % 2;
    uint64_t base = (uint64_t)((char *)now - job->memory);
    int left = (job->rank + job->size - 1) % job->size, right = (job->rank + 1) % job->size;
    put_edge(job, left, &now->cell[0], base + offsetof(struct piece, halo_right));
    put_edge(job, right, &now->cell[CELLS - 1], base + offsetof(struct piece, halo_left));
    next_event(job->arrived);
    next_event(job->arrived);
    for (int i = 0; i < CELLS; i++) {
        uint64_t before = i ? now->cell[i - 1] : now->halo_left;
        uint64_t after = i < CELLS - 1 ? now->cell[i + 1] : now->halo_right;
        next->cell[i] = (before + now->cell[i] + after) % 1000;
    }
    PMI_Barrier(); /* events carry no step number: nobody runs ahead by two */
}

/* The same on one rank. */
static int wrong_cells(const struct job *job)
{
    int n = job->size * CELLS, wrong = 0;
    uint64_t *a = calloc((size_t)n, sizeof(*a)), *b = calloc((size_t)n, sizeof(*b));
    for (int i = 0; i < n; i++)
        a[i] = (uint64_t)i % 7;
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < n; i++)
            b[i] = (a[(i + n - 1) % n] + a[i] + a[(i + 1) % n]) % 1000;
        memcpy(a, b, (size_t)n * sizeof(*a));
    }
    const struct piece *mine = (const struct piece *)job->memory + STEPS % 2;
    for (int i = 0; i < CELLS; i++)
        wrong += mine->cell[i] != a[job->rank * CELLS + i];
    free(a);
    free(b);
    return wrong;
}

int main(void)
{
    struct job job;
    job_start(&job, 8192);
    struct piece *first = (struct piece *)job.memory;
    for (int i = 0; i < CELLS; i++)
        first->cell[i] = (uint64_t)(job.rank * CELLS + i) % 7;
    PMI_Barrier();
    for (int n = 0; n < STEPS; n++)
        step(&job, n);
    int wrong = wrong_cells(&job);
    printf("rank %d of %d: %d steps, %d cells wrong\n", job.rank, job.size, STEPS, wrong);
    job_end(&job);
    return wrong != 0;
}
