// SPDX-License-Identifier: BSD-2-Clause
// The one table of BTH opcodes (IBA 9.2.1, table 38; FLUSH and ATOMIC WRITE of release 1.6).
#ifndef WF_WIRE_OPCODE_H
#define WF_WIRE_OPCODE_H

#include <stdint.h>

// BTH opcode = service << 5 | operation.
enum wf_service {
    WF_SVC_RC = 0,
    WF_SVC_UC = 1,
    WF_SVC_RD = 2,
    WF_SVC_UD = 3,
    WF_SVC_CNP = 4,
    WF_SVC_XRC = 5
};

enum wf_operation {
    WF_OP_SEND_FIRST = 0x00,
    WF_OP_SEND_MIDDLE = 0x01,
    WF_OP_SEND_LAST = 0x02,
    WF_OP_SEND_LAST_IMM = 0x03,
    WF_OP_SEND_ONLY = 0x04,
    WF_OP_SEND_ONLY_IMM = 0x05,
    WF_OP_WRITE_FIRST = 0x06,
    WF_OP_WRITE_MIDDLE = 0x07,
    WF_OP_WRITE_LAST = 0x08,
    WF_OP_WRITE_LAST_IMM = 0x09,
    WF_OP_WRITE_ONLY = 0x0a,
    WF_OP_WRITE_ONLY_IMM = 0x0b,
    WF_OP_READ_REQ = 0x0c,
    WF_OP_READ_RESP_FIRST = 0x0d,
    WF_OP_READ_RESP_MIDDLE = 0x0e,
    WF_OP_READ_RESP_LAST = 0x0f,
    WF_OP_READ_RESP_ONLY = 0x10,
    WF_OP_ACK = 0x11,
    WF_OP_ATOMIC_ACK = 0x12,
    WF_OP_CMP_SWAP = 0x13,
    WF_OP_FETCH_ADD = 0x14,
    WF_OP_SEND_LAST_INV = 0x16,
    WF_OP_SEND_ONLY_INV = 0x17,
    WF_OP_FLUSH = 0x1c,
    WF_OP_ATOMIC_WRITE = 0x1d,
};

#define WF_OPCODE(svc, op)    ((uint8_t)((svc) << 5 | (op)))
#define WF_OPCODE_OP(opcode)  ((enum wf_operation)((opcode)&0x1f))
#define WF_OPCODE_SVC(opcode) ((enum wf_service)((opcode) >> 5))
#define WF_OPCODE_CNP         0x81

enum wf_opcode_flags {
    // Extension headers, in wire order after the BTH.
    WF_H_XRCETH = 1 << 0,
    WF_H_DETH = 1 << 1,
    WF_H_FETH = 1 << 2,
    WF_H_RETH = 1 << 3,
    WF_H_ATOMICETH = 1 << 4,
    WF_H_AETH = 1 << 5,
    WF_H_ATOMICACK = 1 << 6,
    WF_H_IMM = 1 << 7,
    WF_H_IETH = 1 << 8,
    // Nature.
    WF_F_REQUEST = 1 << 16,
    WF_F_RESPONSE = 1 << 17,
    WF_F_FIRST = 1 << 18, // opens a message (First and Only)
    WF_F_LAST = 1 << 19,  // closes a message (Last and Only)
    WF_F_SEND = 1 << 20,
    WF_F_WRITE = 1 << 21,
    WF_F_READ = 1 << 22,
    WF_F_ATOMIC = 1 << 23,
    WF_F_PAYLOAD = 1 << 24,  // may carry payload
    WF_F_RECV_WQE = 1 << 25, // consumes a receive when the message ends
};

struct wf_opcode_info {
    const char *name; // NULL: the opcode is not assigned
    uint32_t flags;   // enum wf_opcode_flags
    uint8_t hdr_len;  // BTH and extension headers
};

extern const struct wf_opcode_info wf_opcode_table[256];

static inline const struct wf_opcode_info *wf_opcode_info(uint8_t opcode)
{
    return &wf_opcode_table[opcode];
}

#endif
