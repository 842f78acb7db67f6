// SPDX-License-Identifier: BSD-2-Clause
#include "wire/aeth.h"

// Both tables of the standard share one series from code 1 up: 1, 2, 3, 4, 6, 8, 12, 16, 24 ...
static uint32_t series(uint8_t code)
{
    if (code < 2)
        return code;
    return (code & 1 ? 3u : 2u) << (code / 2 - 1);
}

uint64_t wf_rnr_timer_ns(uint8_t code)
{
    code &= 31;
    uint64_t units = code ? series(code) : 65536;
    return units * 10000;
}

uint32_t wf_aeth_credits(uint8_t code)
{
    code &= 31;
    return code == 31 ? WF_CREDITS_UNLIMITED : series(code);
}

uint8_t wf_aeth_credit_code(uint32_t credits)
{
    uint8_t code = credits == WF_CREDITS_UNLIMITED ? 31 : 30;
    while (wf_aeth_credits(code) > credits)
        code--;
    return code;
}
