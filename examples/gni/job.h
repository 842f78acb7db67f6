/* SPDX-License-Identifier: BSD-2-Clause */
/* What every uGNI program starts with: a job, a domain, queues, and an endpoint to each rank. */
#ifndef EXAMPLE_JOB_H
#define EXAMPLE_JOB_H

#include <gni_pub.h>

/* Memory of a rank that others reach. */
struct window {
    uint64_t address;
    gni_mem_handle_t handle;
};

struct job {
    int rank, size;
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t sent, arrived; /* events of our posts; of posts into our window */
    gni_ep_handle_t *to;           /* one for each rank, ourselves too */
    char *memory;                  /* our window */
    struct window *window;         /* everybody's */
};

/* Ends the program with the code's name unless it is GNI_RC_SUCCESS. */
void check(gni_return_t rc, const char *what);

void job_start(struct job *job, unsigned window_bytes);
void job_end(struct job *job);

/* out[r] = in of rank r. */
void everybody(void *in, void *out, int len);

/* Waits for the next event of a queue. */
gni_cq_entry_t next_event(gni_cq_handle_t cq);

/* Posts, waits until it is done, and hands the descriptor back. */
void post_and_wait(struct job *job, int rank, gni_post_descriptor_t *post);

#endif
