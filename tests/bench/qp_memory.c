// SPDX-License-Identifier: BSD-2-Clause
// qp_memory COUNT: resident memory of an open device, and of each idle RC queue pair with default
// depths (16 sends, 16 receives), moved to INIT. Prints "device KB" and "qp bytes".
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long resident_kb(void)
{
    long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &total, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int fail(const char *what, long i)
{
    fprintf(stderr, "qp_memory: %s %ld: %s\n", what, i, strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1000, start = resident_kb();
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
    struct ibv_cq *cq = pd ? ibv_create_cq(ctx, 1024, NULL, NULL, 0) : NULL;
    struct ibv_qp **qps = calloc((size_t)count, sizeof(*qps));
    if (!cq || !qps)
        return fail("device", 0);
    memset(qps, 0, (size_t)count * sizeof(*qps));
    printf("device %ld\n", resident_kb() - start);
    long before = resident_kb();
    for (long i = 0; i < count; i++) {
        struct ibv_qp_init_attr init = {
            .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
        qps[i] = ibv_create_qp(pd, &init);
        if (!qps[i])
            return fail("QP", i);
        if (ibv_modify_qp(qps[i], &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
            return fail("modify QP", i);
    }
    printf("qp %.0f\n", (double)(resident_kb() - before) * 1024 / (double)count);
    for (long i = 0; i < count; i++)
        if (ibv_destroy_qp(qps[i]))
            return fail("destroy QP", i);
    free(qps);
    return 0;
}
