/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PMI 1, as uGNI programs use it, with Cray's PMI_Allgather(). Link with -lpmi. A program finds its
 * job through PMIx (mpirun, prterun, srun --mpi=pmix) or `weft run -n N`; alone it is a job of one.
 *
 * Calls return PMI_SUCCESS or a PMI_ERR_* code. All but PMI_Init and PMI_Initialized answer
 * PMI_ERR_INIT before PMI_Init. PMI_Barrier and PMI_Allgather block until every rank is there and
 * answer PMI_FAIL when one of them died.
 */
#ifndef WEFT_PMI_H
#define WEFT_PMI_H

#ifdef __cplusplus
extern "C" {
#endif

#define PMI_SUCCESS                0
#define PMI_FAIL                   (-1)
#define PMI_ERR_INIT               1
#define PMI_ERR_NOMEM              2
#define PMI_ERR_INVALID_ARG        3
#define PMI_ERR_INVALID_KEY        4
#define PMI_ERR_INVALID_KEY_LENGTH 5
#define PMI_ERR_INVALID_VAL        6
#define PMI_ERR_INVALID_VAL_LENGTH 7
#define PMI_ERR_INVALID_LENGTH     8
#define PMI_ERR_INVALID_NUM_ARGS   9
#define PMI_ERR_INVALID_ARGS       10
#define PMI_ERR_INVALID_NUM_PARSED 11
#define PMI_ERR_INVALID_KEYVALP    12
#define PMI_ERR_INVALID_SIZE       13

#define PMI_TRUE  1
#define PMI_FALSE 0
typedef int PMI_BOOL;

/* *spawned: PMI_FALSE always. May be called again. */
int PMI_Init(int *spawned);
int PMI_Initialized(PMI_BOOL *initialized);
int PMI_Finalize(void);

int PMI_Get_size(int *size);
int PMI_Get_rank(int *rank);
int PMI_Get_universe_size(int *size);
int PMI_Get_appnum(int *appnum);

/* The ranks on this rank's node, in ascending order. */
int PMI_Get_clique_size(int *size);
int PMI_Get_clique_ranks(int ranks[], int length);

int PMI_Barrier(void);
/* out: size times len bytes. The order is that of the ranks here; portable programs do not count on
 * it. */
int PMI_Allgather(void *in, void *out, int len);
/* Ends the whole job with this exit code; does not return. */
int PMI_Abort(int exit_code, const char error_msg[]);

/* The job's store of keys. A value is seen by others after its rank's PMI_KVS_Commit() and a
 * PMI_Barrier(). */
int PMI_KVS_Get_my_name(char kvsname[], int length);
int PMI_KVS_Get_name_length_max(int *length);
int PMI_KVS_Get_key_length_max(int *length);
int PMI_KVS_Get_value_length_max(int *length);
int PMI_KVS_Put(const char kvsname[], const char key[], const char value[]);
int PMI_KVS_Commit(const char kvsname[]);
int PMI_KVS_Get(const char kvsname[], const char key[], char value[], int length);

#ifdef __cplusplus
}
#endif

#endif
