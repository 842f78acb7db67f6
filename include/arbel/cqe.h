/* SPDX-License-Identifier: BSD-2-Clause */
/* The completion queue entry of Arbel hardware (InfiniHost III, "mem-free" mode): 32 bytes, eight
 * dwords, each big-endian in memory. weft_cq_ring() of weft/weft.h yields a CQ's entries; this file
 * names every field and reads it. Bit 31 is the most significant bit of a dword.
 *
 *  dw  bits   field                                     meaning, and when it is valid
 *  --  -----  ----------------------------------------  ------------------------------------------
 *  0   31:28  ver                                       version of the entry: 0
 *  0   27:24  reserved0                                 0
 *  0   23:0   my_qpn                                    QP (for XRC and SRQ receives too) that the
 *                                                       completion belongs to; always
 *  1   31:24  checksum_15_8                             0: no IP checksum offload here
 *  1   23:0   my_ee                                     0: RD is not supported
 *  2   31:24  checksum_7_0                              0
 *  2   23:0   rqpn                                      sender's QP; datagram receives
 *  3   31:28  sl                                        service level; UD receives
 *  3   27:25  reserved1                                 0
 *  3   24     ipok                                      0
 *  3   23     g                                         a GRH lies in front of the payload; UD
 *                                                       receives, on RoCE always 1
 *  3   22:16  ml_path                                   low bits of the destination LID: 0 on RoCE
 *  3   15:0   rlid                                      sender's LID: 0 on RoCE
 *  4   31:0   immediate_ethertype_pkey_indx_eecredits   receives: the immediate as it came on the
 *                                                       wire, or the invalidated R_Key. In error
 *                                                       entries see below
 *  5   31:0   byte_cnt                                  bytes placed, on UD 40 more: receives;
 *                                                       bytes read: READs and atomics
 * *  6   31:6   wqe_adr                                   which work request, in units of 64 bytes:
 *                                                       weft/weft.h says how it counts
 *  6   5:0    reserved2                                 0
 *  7   31:24  opcode                                    sends: ARBEL_OP_*; receives: BTH opcode of
 *                                                       the last packet; 0xfe, 0xff: errors
 *  7   23     s                                         1: a send queue's; not in error entries
 *  7   22:8   reserved4                                 0
 *  7   7      owner                                     1: hardware's, nothing to read; 0: software's
 *  7   6:0    reserved3                                 0
 *
 * Error entries (opcode 0xfe receive, 0xff send) have my_qpn, wqe_adr, opcode and owner as above and
 *  4   31:24  syndrome                                  ARBEL_SYNDROME_*
 *  4   23:16  vendor_code                               low 8 bits of the reason's number
 *  4   15:0   db_cnt                                    0 in this mode
 * and zero elsewhere. Every request has an entry of its own, flushed ones too.
 *
 * The names are those of struct arbelprm_completion_queue_entry_st in Mellanox's register headers.
 * Reading an entry: test arbel_cqe_hw_owned(), then read fields (the test loads with acquire order),
 * then arbel_cqe_give_back(), then publish the consumer index. */
#ifndef ARBEL_CQE_H
#define ARBEL_CQE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ARBEL_CQE_BYTES 32u

struct arbel_cqe {
    uint32_t dw[8]; /* big-endian */
};

/* Opcodes of a send queue's entries. */
enum arbel_op {
    ARBEL_OP_NOP = 0x00,
    ARBEL_OP_RDMA_WRITE = 0x08,
    ARBEL_OP_RDMA_WRITE_IMM = 0x09,
    ARBEL_OP_SEND = 0x0a,
    ARBEL_OP_SEND_IMM = 0x0b,
    ARBEL_OP_RDMA_READ = 0x10,
    ARBEL_OP_ATOMIC_CS = 0x11,
    ARBEL_OP_ATOMIC_FA = 0x12,
    ARBEL_OP_BIND_MW = 0x18,
    ARBEL_OP_RECV_ERROR = 0xfe,
    ARBEL_OP_SEND_ERROR = 0xff
};

enum arbel_syndrome {
    ARBEL_SYNDROME_LOCAL_LENGTH = 0x01,
    ARBEL_SYNDROME_LOCAL_QP_OP = 0x02,
    ARBEL_SYNDROME_LOCAL_EEC_OP = 0x03,
    ARBEL_SYNDROME_LOCAL_PROT = 0x04,
    ARBEL_SYNDROME_WR_FLUSH = 0x05,
    ARBEL_SYNDROME_MW_BIND = 0x06,
    ARBEL_SYNDROME_BAD_RESP = 0x10,
    ARBEL_SYNDROME_LOCAL_ACCESS = 0x11,
    ARBEL_SYNDROME_REMOTE_INVAL_REQ = 0x12,
    ARBEL_SYNDROME_REMOTE_ACCESS = 0x13,
    ARBEL_SYNDROME_REMOTE_OP = 0x14,
    ARBEL_SYNDROME_RETRY_EXC = 0x15,
    ARBEL_SYNDROME_RNR_RETRY_EXC = 0x16,
    ARBEL_SYNDROME_LOCAL_RDD_VIOL = 0x20,
    ARBEL_SYNDROME_REMOTE_INVAL_RD_REQ = 0x21,
    ARBEL_SYNDROME_REMOTE_ABORTED = 0x22,
    ARBEL_SYNDROME_INVAL_EECN = 0x23,
    ARBEL_SYNDROME_INVAL_EEC_STATE = 0x24
};

/* Bits high:low of dword n. */
static inline uint32_t arbel_cqe_bits(const struct arbel_cqe *cqe, unsigned n, unsigned high,
                                      unsigned low)
{
    const unsigned char *b = (const unsigned char *)&cqe->dw[n];
    uint32_t host = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    uint32_t mask = high - low == 31 ? 0xffffffffu : (1u << (high - low + 1)) - 1;

    return host >> low & mask;
}

/* Entry number `index` (free-running) of a ring of `entries`, a power of two. */
static inline struct arbel_cqe *arbel_cqe_at(void *ring, uint32_t entries, uint32_t index)
{
    return (struct arbel_cqe *)ring + (index & (entries - 1));
}

/* 1: nothing to read yet. What is read after a 0 belongs to the entry. */
static inline int arbel_cqe_hw_owned(const struct arbel_cqe *cqe)
{
    const unsigned char *last = (const unsigned char *)cqe + ARBEL_CQE_BYTES - 1;

    return __atomic_load_n(last, __ATOMIC_ACQUIRE) >> 7;
}

/* Back to hardware; the consumer index is published after this. */
static inline void arbel_cqe_give_back(struct arbel_cqe *cqe)
{
    __atomic_store_n((unsigned char *)cqe + ARBEL_CQE_BYTES - 1, 0x80, __ATOMIC_RELEASE);
}

static inline uint32_t arbel_cqe_ver(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 0, 31, 28);
}
static inline uint32_t arbel_cqe_my_qpn(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 0, 23, 0);
}
static inline uint32_t arbel_cqe_my_ee(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 1, 23, 0);
}
static inline uint32_t arbel_cqe_checksum(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 1, 31, 24) << 8 | arbel_cqe_bits(cqe, 2, 31, 24);
}
static inline uint32_t arbel_cqe_rqpn(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 2, 23, 0);
}
static inline uint32_t arbel_cqe_sl(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 3, 31, 28);
}
static inline uint32_t arbel_cqe_ipok(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 3, 24, 24);
}
static inline uint32_t arbel_cqe_g(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 3, 23, 23);
}
static inline uint32_t arbel_cqe_ml_path(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 3, 22, 16);
}
static inline uint32_t arbel_cqe_rlid(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 3, 15, 0);
}
/* In host order: htonl() of it is what ibv_wc.imm_data holds. */
static inline uint32_t arbel_cqe_immediate(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 4, 31, 0);
}
static inline uint32_t arbel_cqe_byte_cnt(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 5, 31, 0);
}
/* With its low six bits, as an offset or address in bytes. */
static inline uint32_t arbel_cqe_wqe_adr(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 6, 31, 6) << 6;
}
static inline uint32_t arbel_cqe_opcode(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 7, 31, 24);
}
/* Error entries have no s bit: their opcode tells. */
static inline int arbel_cqe_is_error(const struct arbel_cqe *cqe)
{
    return arbel_cqe_opcode(cqe) >= ARBEL_OP_RECV_ERROR;
}
static inline int arbel_cqe_is_send(const struct arbel_cqe *cqe)
{
    return arbel_cqe_is_error(cqe) ? arbel_cqe_opcode(cqe) == ARBEL_OP_SEND_ERROR
                                   : (int)arbel_cqe_bits(cqe, 7, 23, 23);
}
static inline uint32_t arbel_cqe_syndrome(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 4, 31, 24);
}
static inline uint32_t arbel_cqe_vendor_code(const struct arbel_cqe *cqe)
{
    return arbel_cqe_bits(cqe, 4, 23, 16);
}

#ifdef __cplusplus
}
#endif

#endif
