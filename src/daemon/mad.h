// SPDX-License-Identifier: BSD-2-Clause
// The few fields of CM datagrams (IBA 12.6, 13.4.3) that weftd must know to route and answer them.
#ifndef WF_DAEMON_MAD_H
#define WF_DAEMON_MAD_H

#include <stdbool.h>
#include <stdint.h>

enum mad_attr {
    MAD_REQ = 0x10,
    MAD_MRA = 0x11,
    MAD_REJ = 0x12,
    MAD_REP = 0x13,
    MAD_RTU = 0x14,
    MAD_DREQ = 0x15,
    MAD_DREP = 0x16,
    MAD_SIDR_REQ = 0x17,
    MAD_SIDR_REP = 0x18,
    MAD_LAP = 0x19,
    MAD_APR = 0x1a,
};

#define MAD_LEN        256
#define MAD_DATA       24             // the message starts here
#define MAD_SERVICE_ID (MAD_DATA + 8) // REQ and SIDR_REQ
#define MAD_QP1_QKEY   0x80010000u

static inline uint16_t mad_attr(const uint8_t *mad)
{
    return (uint16_t)(mad[16] << 8 | mad[17]);
}

// Base version 1, class 7 version 2, method Send, a CM attribute.
static inline bool mad_is_cm(const uint8_t *mad)
{
    return mad[0] == 1 && mad[1] == 7 && mad[2] == 2 && mad[3] == 3 && mad_attr(mad) >= MAD_REQ &&
           mad_attr(mad) <= MAD_APR;
}

static inline uint32_t mad_remote_id(const uint8_t *mad)
{
    const uint8_t *p = mad + MAD_DATA + 4;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

#endif
