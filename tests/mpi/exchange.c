// SPDX-License-Identifier: BSD-2-Clause
// An MPI program for tests/apps/mpi.sh: every byte that arrives is looked at. Prints one line.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void check(int good, const char *what, int n)
{
    if (good)
        return;
    printf("rank %d: %s of %d is wrong\n", rank, what, n);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static unsigned char byte_of(int from, int to, int i)
{
    return (unsigned char)(from * 31 + to * 7 + i * 13 + i / 251);
}

static void ring(int n)
{
    int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
    unsigned char *out = malloc((size_t)n + 1), *in = calloc((size_t)n + 1, 1);
    for (int lap = 0; lap < 4; lap++) {
        for (int i = 0; i < n; i++)
            out[i] = byte_of(rank, next, i + lap);
        MPI_Request r[2];
        MPI_Irecv(in, n, MPI_BYTE, prev, lap, MPI_COMM_WORLD, &r[0]);
        MPI_Isend(out, n, MPI_BYTE, next, lap, MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i++)
            check(in[i] == byte_of(prev, rank, i + lap), "ring", n);
    }
    free(out);
    free(in);
}

static void allreduce(int n)
{
    long *v = malloc(sizeof(*v) * (size_t)n), *sum = calloc((size_t)n, sizeof(*sum));
    for (int i = 0; i < n; i++)
        v[i] = (long)i * (rank + 1);
    MPI_Allreduce(v, sum, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        check(sum[i] == (long)i * ranks * (ranks + 1) / 2, "allreduce", n);
    free(v);
    free(sum);
}

static void alltoall(int n)
{
    unsigned char *out = malloc((size_t)n * (size_t)ranks), *in = malloc((size_t)n * (size_t)ranks);
    for (int to = 0; to < ranks; to++)
        for (int i = 0; i < n; i++)
            out[to * n + i] = byte_of(rank, to, i);
    MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        for (int i = 0; i < n; i++)
            check(in[from * n + i] == byte_of(from, rank, i), "alltoall", n);
    free(out);
    free(in);
}

// One-sided: everyone writes its slot at everyone, adds to one counter, reads it all back.
static void one_sided(int n)
{
    int *mem, *got = malloc(sizeof(int) * (size_t)n);
    int *mine = malloc(sizeof(int) * (size_t)n);
    long *counter, one = 1, before;
    MPI_Win win, cwin;
    MPI_Win_allocate((MPI_Aint)sizeof(int) * n * ranks, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &mem, &win);
    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &cwin);
    *counter = 0;
    memset(mem, 0, sizeof(int) * (size_t)n * (size_t)ranks);
    for (int i = 0; i < n; i++)
        mine[i] = rank * 1000003 + i;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Win_lock_all(0, cwin);
    for (int to = 0; to < ranks; to++)
        MPI_Put(mine, n, MPI_INT, to, (MPI_Aint)rank * n, n, MPI_INT, win);
    for (int i = 0; i < 100; i++)
        MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, cwin);
    MPI_Win_flush_all(win);
    MPI_Win_flush_all(cwin);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int at = 0; at < ranks; at++) {
        int from = (rank + 1) % ranks;
        MPI_Get(got, n, MPI_INT, at, (MPI_Aint)from * n, n, MPI_INT, win);
        MPI_Win_flush(at, win);
        for (int i = 0; i < n; i++)
            check(got[i] == from * 1000003 + i, "put and get", n);
    }
    MPI_Win_unlock_all(cwin);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    check(rank != 0 || *counter == 100L * ranks, "fetch and add", 100);
    MPI_Win_free(&cwin);
    MPI_Win_free(&win);
    free(mine);
    free(got);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {1, 100, 5000, 70000, 1000000};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ring(sizes[i]);
        allreduce(sizes[i] / 8 + 1);
        alltoall(sizes[i] / 4 + 1);
    }
    if (argc > 1 && !strcmp(argv[1], "rma"))
        for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
            one_sided(sizes[i] / 4 + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("exchange: %d ranks, all right\n", ranks);
    MPI_Finalize();
    return 0;
}
