// SPDX-License-Identifier: BSD-2-Clause
// Two queue pairs of one process, connected with each other, for tests of what verbs answer.
#ifndef TESTS_VERBS_PAIR_H
#define TESTS_VERBS_PAIR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAIR_ALL                                                                                   \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

struct node {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    uint8_t *mem;
    int gid_index;
    union ibv_gid gid;
};

struct end {
    struct node *node;
    struct ibv_cq *scq, *rcq;
    struct ibv_qp *qp;
    uint8_t *mem; // this end's part of the node's memory
};

#define END_MEM 65536u

struct pair_opts {
    enum ibv_qp_type type;
    uint32_t max_wr;                   // 0: 16
    uint32_t max_sge;                  // 0: 4
    uint8_t timeout, retry, rnr_retry; // timeout 0: 14 with 7 and 7
    uint64_t send_ops;
    uint32_t dest; // 0: the other end
};

// Every call that fails ends the program with status 1 and says where.
#define must(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            die_at(__FILE__, __LINE__, #cond);                                                     \
    } while (0)
__attribute__((noreturn)) void die_at(const char *file, int line, const char *what);

void node_open(struct node *n);
void node_close(struct node *n);
// CQs are made where the ends have none.
void pair_make(struct node *n, struct end e[2], const struct pair_opts *o);
void pair_free(struct end e[2]); // with the CQs

// Move a QP to RTS, towards dest (QPN) at the node's own GID.
void to_rts(struct end *e, const struct pair_opts *o, uint32_t dest);

struct ibv_sge sge_of(const struct end *e, size_t offset, uint32_t len);
void post_recv(struct end *e, uint64_t id, uint32_t len);
int post(struct end *e, struct ibv_send_wr *wr);
// The next completion, waiting at most 10 seconds.
struct ibv_wc next_wc(struct ibv_cq *cq);
uint64_t now_ms(void);

#endif
