// SPDX-License-Identifier: BSD-2-Clause
#include "wire/opcode.h"

#include "wire/headers.h"

enum {
    REQ = WF_F_REQUEST,
    FIRST = WF_F_FIRST,
    LAST = WF_F_LAST,
    ONLY = WF_F_FIRST | WF_F_LAST,
    SEND = WF_F_REQUEST | WF_F_SEND | WF_F_PAYLOAD,
    WRITE = WF_F_REQUEST | WF_F_WRITE | WF_F_PAYLOAD,
    RESP = WF_F_RESPONSE | WF_F_READ | WF_F_PAYLOAD,
    RECV = WF_F_RECV_WQE,
    NONE = 0
};

// The length follows from the headers, so that the two cannot disagree.
#define BYTES(f, bit, n) ((f) & (bit) ? (n) : 0)
#define HDR_LEN(f)                                                                                 \
    (WF_BTH_LEN + BYTES(f, WF_H_XRCETH, 4) + BYTES(f, WF_H_DETH, 8) + BYTES(f, WF_H_FETH, 4) +     \
     BYTES(f, WF_H_RETH, 16) + BYTES(f, WF_H_ATOMICETH, 28) + BYTES(f, WF_H_AETH, 4) +             \
     BYTES(f, WF_H_ATOMICACK, 8) + BYTES(f, WF_H_IMM, 4) + BYTES(f, WF_H_IETH, 4))
#define ROW(svc, op, name, flags) [WF_OPCODE(svc, op)] = {name, flags, HDR_LEN(flags)}

// Requests that RC, UC and XRC share (IBA table 38); XRC requests start with an XRCETH.
#define CONNECTED(svc, n, x)                                                                       \
    ROW(svc, WF_OP_SEND_FIRST, n "_SEND_FIRST", SEND | FIRST | (x)),                               \
        ROW(svc, WF_OP_SEND_MIDDLE, n "_SEND_MIDDLE", SEND | (x)),                                 \
        ROW(svc, WF_OP_SEND_LAST, n "_SEND_LAST", SEND | LAST | RECV | (x)),                       \
        ROW(svc, WF_OP_SEND_LAST_IMM, n "_SEND_LAST_IMM", SEND | LAST | RECV | WF_H_IMM | (x)),    \
        ROW(svc, WF_OP_SEND_ONLY, n "_SEND_ONLY", SEND | ONLY | RECV | (x)),                       \
        ROW(svc, WF_OP_SEND_ONLY_IMM, n "_SEND_ONLY_IMM", SEND | ONLY | RECV | WF_H_IMM | (x)),    \
        ROW(svc, WF_OP_WRITE_FIRST, n "_WRITE_FIRST", WRITE | FIRST | WF_H_RETH | (x)),            \
        ROW(svc, WF_OP_WRITE_MIDDLE, n "_WRITE_MIDDLE", WRITE | (x)),                              \
        ROW(svc, WF_OP_WRITE_LAST, n "_WRITE_LAST", WRITE | LAST | (x)),                           \
        ROW(svc, WF_OP_WRITE_LAST_IMM, n "_WRITE_LAST_IMM", WRITE | LAST | RECV | WF_H_IMM | (x)), \
        ROW(svc, WF_OP_WRITE_ONLY, n "_WRITE_ONLY", WRITE | ONLY | WF_H_RETH | (x)),               \
        ROW(svc, WF_OP_WRITE_ONLY_IMM, n "_WRITE_ONLY_IMM",                                        \
            WRITE | ONLY | RECV | WF_H_RETH | WF_H_IMM | (x))

// What only the reliable services have; responses never carry an XRCETH.
#define RELIABLE(svc, n, x)                                                                        \
    ROW(svc, WF_OP_READ_REQ, n "_READ_REQ", REQ | ONLY | WF_F_READ | WF_H_RETH | (x)),             \
        ROW(svc, WF_OP_READ_RESP_FIRST, n "_READ_RESP_FIRST", RESP | FIRST | WF_H_AETH),           \
        ROW(svc, WF_OP_READ_RESP_MIDDLE, n "_READ_RESP_MIDDLE", RESP),                             \
        ROW(svc, WF_OP_READ_RESP_LAST, n "_READ_RESP_LAST", RESP | LAST | WF_H_AETH),              \
        ROW(svc, WF_OP_READ_RESP_ONLY, n "_READ_RESP_ONLY", RESP | ONLY | WF_H_AETH),              \
        ROW(svc, WF_OP_ACK, n "_ACK", WF_F_RESPONSE | WF_H_AETH),                                  \
        ROW(svc, WF_OP_ATOMIC_ACK, n "_ATOMIC_ACK",                                                \
            WF_F_RESPONSE | WF_F_ATOMIC | WF_H_AETH | WF_H_ATOMICACK),                             \
        ROW(svc, WF_OP_CMP_SWAP, n "_CMP_SWAP", REQ | ONLY | WF_F_ATOMIC | WF_H_ATOMICETH | (x)),  \
        ROW(svc, WF_OP_FETCH_ADD, n "_FETCH_ADD",                                                  \
            REQ | ONLY | WF_F_ATOMIC | WF_H_ATOMICETH | (x)),                                      \
        ROW(svc, WF_OP_SEND_LAST_INV, n "_SEND_LAST_INV", SEND | LAST | RECV | WF_H_IETH | (x)),   \
        ROW(svc, WF_OP_SEND_ONLY_INV, n "_SEND_ONLY_INV", SEND | ONLY | RECV | WF_H_IETH | (x))

const struct wf_opcode_info wf_opcode_table[256] = {
    CONNECTED(WF_SVC_RC, "RC", NONE),
    RELIABLE(WF_SVC_RC, "RC", NONE),
    ROW(WF_SVC_RC, WF_OP_FLUSH, "RC_FLUSH", REQ | ONLY | WF_H_FETH | WF_H_RETH),
    ROW(WF_SVC_RC, WF_OP_ATOMIC_WRITE, "RC_ATOMIC_WRITE", REQ | ONLY | WF_F_PAYLOAD | WF_H_RETH),
    CONNECTED(WF_SVC_UC, "UC", NONE),
    CONNECTED(WF_SVC_XRC, "XRC", WF_H_XRCETH),
    RELIABLE(WF_SVC_XRC, "XRC", WF_H_XRCETH),
    ROW(WF_SVC_UD, WF_OP_SEND_ONLY, "UD_SEND_ONLY", SEND | ONLY | RECV | WF_H_DETH),
    ROW(WF_SVC_UD, WF_OP_SEND_ONLY_IMM, "UD_SEND_ONLY_IMM",
        SEND | ONLY | RECV | WF_H_DETH | WF_H_IMM),
    // Neither request nor response of a QP's stream (annex A17.9.3): 16 zero bytes follow the BTH.
    [WF_OPCODE_CNP] = {"CNP", WF_F_PAYLOAD, WF_BTH_LEN},
};
