// SPDX-License-Identifier: BSD-2-Clause
// The AETH syndrome (IBA 9.7.5.1.2): bits 6:5 type, bits 4:0 credits, RNR timer code or NAK code.
#ifndef WF_WIRE_AETH_H
#define WF_WIRE_AETH_H

#include <stdint.h>

enum wf_aeth_type {
    WF_AETH_ACK = 0,
    WF_AETH_RNR_NAK = 1,
    WF_AETH_RESERVED = 2, // also every syndrome with bit 7 set
    WF_AETH_NAK = 3,
};

enum wf_syndrome {
    WF_SYN_ACK_UNLIMITED = 0x1f, // no end-to-end credits: SRQ, UC, or flow control off
    WF_SYN_RNR = 0x20,           // | timer code
    WF_SYN_NAK_PSN_SEQ = 0x60,
    WF_SYN_NAK_INV_REQ = 0x61,
    WF_SYN_NAK_REM_ACCESS = 0x62,
    WF_SYN_NAK_REM_OP = 0x63,
    WF_SYN_NAK_INV_RD = 0x64,
};

#define WF_CREDITS_UNLIMITED UINT32_MAX

static inline enum wf_aeth_type wf_aeth_type(uint8_t syndrome)
{
    return syndrome & 0x80 ? WF_AETH_RESERVED : (enum wf_aeth_type)(syndrome >> 5 & 3);
}

static inline uint8_t wf_aeth_value(uint8_t syndrome)
{
    return syndrome & 0x1f;
}

// Nanoseconds of an RNR timer code (IBA table 45), 0 being the longest.
uint64_t wf_rnr_timer_ns(uint8_t code);

// Messages that a credit code grants (IBA table 46).
uint32_t wf_aeth_credits(uint8_t code);

// Largest credit code that grants no more than `credits`; 31 for WF_CREDITS_UNLIMITED.
uint8_t wf_aeth_credit_code(uint32_t credits);

#endif
