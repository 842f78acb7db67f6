// SPDX-License-Identifier: BSD-2-Clause
// gni_rates amo|put: two ranks; rank 0 posts to rank 1 and prints millions of AMOs a second, or
// MB/s of 64 KiB puts.
#include <gni_pub.h>
#include <pmi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WINDOW  (1u << 20)
#define DEPTH   256
#define PUT_LEN 65536u

struct rank {
    uint32_t pe;
    uint64_t memory;
    gni_mem_handle_t handle;
};

static void check(gni_return_t rc, const char *what)
{
    if (rc == GNI_RC_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", what, gni_err_str[rc]);
    PMI_Abort(1, what);
}

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double per_second(gni_ep_handle_t ep, gni_cq_handle_t cq, gni_post_descriptor_t *posts,
                         int n)
{
    int sent = 0, done = 0;
    double start = seconds();
    while (done < n) {
        gni_cq_entry_t e;
        gni_post_descriptor_t *p = &posts[sent % DEPTH];
        if (sent < n && sent - done < DEPTH) {
            check(p->type == GNI_POST_AMO ? GNI_PostFma(ep, p) : GNI_PostRdma(ep, p), "post");
            sent++;
        }
        while (GNI_CqGetEvent(cq, &e) == GNI_RC_SUCCESS) {
            check(GNI_GetCompleted(cq, e, &p), "GNI_GetCompleted");
            done++;
        }
    }
    return n / (seconds() - start);
}

int main(int argc, char **argv)
{
    int amo = argc > 1 && !strcmp(argv[1], "amo"), n = amo ? 500000 : 20000, spawned, rank;
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;
    struct rank mine, both[2];
    static gni_post_descriptor_t posts[DEPTH];
    PMI_Init(&spawned);
    PMI_Get_rank(&rank);
    check(GNI_CdmCreate((uint32_t)rank, GNI_FIND_ALLOC_PTAG,
                        (uint32_t)atoi(getenv("PMI_GNI_COOKIE")), 0, &cdm),
          "GNI_CdmCreate");
    check(GNI_CdmAttach(cdm, 0, &mine.pe, &nic), "GNI_CdmAttach");
    check(GNI_CqCreate(nic, DEPTH, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), "GNI_CqCreate");
    mine.memory = (uintptr_t)calloc(1, WINDOW);
    check(GNI_MemRegister(nic, mine.memory, WINDOW, NULL, 0, UINT32_MAX, &mine.handle),
          "GNI_MemRegister");
    PMI_Allgather(&mine, both, sizeof(mine)); // in rank order here
    check(GNI_EpCreate(nic, cq, &ep), "GNI_EpCreate");
    check(GNI_EpBind(ep, both[1 - rank].pe, (uint32_t)(1 - rank)), "GNI_EpBind");
    for (int i = 0; i < DEPTH; i++)
        posts[i] = (gni_post_descriptor_t){.type = amo ? GNI_POST_AMO : GNI_POST_RDMA_PUT,
                                           .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                           .local_addr = mine.memory,
                                           .local_mem_hndl = mine.handle,
                                           .remote_addr = both[1 - rank].memory,
                                           .remote_mem_hndl = both[1 - rank].handle,
                                           .length = amo ? 8 : PUT_LEN,
                                           .amo_cmd = GNI_FMA_ATOMIC_ADD,
                                           .first_operand = 1};
    if (rank == 0) {
        per_second(ep, cq, posts, n / 10);
        double rate = per_second(ep, cq, posts, n);
        printf("%s %.3f\n", amo ? "million AMOs a second" : "MB/s",
               amo ? rate / 1e6 : rate * PUT_LEN / 1e6);
    }
    PMI_Barrier();
    GNI_CdmDestroy(cdm);
    PMI_Finalize();
    return 0;
}
