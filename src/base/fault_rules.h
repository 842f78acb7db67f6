// SPDX-License-Identifier: BSD-2-Clause
// Fault rules: the text of a rule file (weft-faults(5)) as a table. What a rule means is the
// engine's business (engine/faults.c); the tool only checks files with this.
#ifndef WF_BASE_FAULT_RULES_H
#define WF_BASE_FAULT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_FAULT_RULES 64u
#define WF_FAULT_TEXT  16384u // longest rule file

enum wf_fault_do {
    WF_FAULT_DROP,
    WF_FAULT_DUPLICATE,
    WF_FAULT_DELAY,
    WF_FAULT_REORDER,
    WF_FAULT_CORRUPT_PAYLOAD, // before the ICRC: the receiver cannot notice
    WF_FAULT_CORRUPT_ICRC,    // after it: the receiver drops the packet
    WF_FAULT_ECN,
    WF_FAULT_NAK,
    WF_FAULT_RNR,
    WF_FAULT_FREEZE,
    WF_FAULT_PORT_DOWN,
    WF_FAULT_PORT_UP,
    WF_FAULT_CQ_OVERRUN,
    WF_FAULT_FAIL, // a verb
    WF_FAULT_EVENT,
    WF_FAULT_KILL,
};

enum wf_fault_path { WF_FAULT_LOOP = 1, WF_FAULT_SHM = 2, WF_FAULT_UDP = 4 };
enum wf_fault_dir { WF_FAULT_TX = 1, WF_FAULT_RX = 2 };

// Kinds of packets, a bit each.
enum wf_fault_op {
    WF_FAULT_OP_SEND = 1 << 0,
    WF_FAULT_OP_WRITE = 1 << 1,
    WF_FAULT_OP_READ = 1 << 2,
    WF_FAULT_OP_ATOMIC = 1 << 3,
    WF_FAULT_OP_RESPONSE = 1 << 4, // READ responses and atomic acknowledgements
    WF_FAULT_OP_ACK = 1 << 5,
    WF_FAULT_OP_NAK = 1 << 6,
    WF_FAULT_OP_REQUEST =
        WF_FAULT_OP_SEND | WF_FAULT_OP_WRITE | WF_FAULT_OP_READ | WF_FAULT_OP_ATOMIC,
};

struct wf_fault_rule {
    enum wf_fault_do act;
    int line;           // in the file, for logs
    uint64_t time;      // delay, freeze, port down: ns
    uint32_t arg;       // copies, distance, NAK syndrome, RNR code, errno, event type
    char verb[24];      // FAIL
    uint32_t path, dir; // bits, 0: any
    uint32_t op;        // bits, 0: any
    uint32_t cm;        // CM messages, bit = attribute id - 0x10; 0: not a rule for CM
    char process[32];   // a pattern as in a shell; "": any
    bool has_qp;
    uint32_t qp; // below 0x10000: the index, else the number
    bool has_psn;
    uint32_t psn_lo, psn_hi; // relative to the QP's first
    uint32_t nth_lo, nth_hi; // 0: any; the match number, from 1
    uint32_t every;          // 0: any
    double p;                // 1: always
    uint64_t after, before;  // ns since the engine started; before 0: for ever
};

struct wf_fault_rules {
    uint64_t seed;
    unsigned n;
    struct wf_fault_rule rules[WF_FAULT_RULES];
};

// 0; or -EINVAL and in `err` what is wrong, with the line.
int wf_fault_parse(const char *text, size_t len, struct wf_fault_rules *out, char *err,
                   size_t err_len);

const char *wf_fault_act_name(enum wf_fault_do act);

#endif
