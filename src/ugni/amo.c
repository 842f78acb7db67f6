// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/amo.h"

#include <math.h>
#include <string.h>

#define NO_FETCH 0x100u
#define SHORT    0x200u
#define SECOND   0x040u

// First generation: low nibble 8 to 13, 0x10 cached. CSWAP always fetches.
static bool decode_first(uint32_t cmd, struct wf_gni_amo *out)
{
    static const uint8_t ops[] = {WF_GNI_AMO_ADD, WF_GNI_AMO_AND, WF_GNI_AMO_OR,
                                  WF_GNI_AMO_XOR, WF_GNI_AMO_AX,  WF_GNI_AMO_CSWAP};
    uint32_t op = cmd & 0xf;
    if (cmd & ~(NO_FETCH | 0x1fu) || op < 8 || op > 13)
        return false;
    out->op = ops[op - 8];
    out->cached = cmd & 0x10;
    out->width = 8;
    return out->fetch || out->op != WF_GNI_AMO_CSWAP;
}

// Second generation: bits 4..1 the operation, bit 0 set on 64-bit words, 0x20 cached.
static bool decode_second(uint32_t cmd, struct wf_gni_amo *out)
{
    static const int8_t ops[16] = {WF_GNI_AMO_AND,
                                   WF_GNI_AMO_OR,
                                   WF_GNI_AMO_XOR,
                                   WF_GNI_AMO_SWAP,
                                   WF_GNI_AMO_AX,
                                   WF_GNI_AMO_CSWAP,
                                   -1,
                                   -1,
                                   WF_GNI_AMO_IMIN,
                                   WF_GNI_AMO_IMAX,
                                   WF_GNI_AMO_ADD,
                                   -1,
                                   WF_GNI_AMO_FPMIN,
                                   WF_GNI_AMO_FPMAX,
                                   WF_GNI_AMO_FPADD,
                                   -1};
    bool is_short = cmd & SHORT;
    int8_t op = ops[cmd >> 1 & 0xf];
    if (cmd & ~(NO_FETCH | SHORT | SECOND | 0x3fu) || op < 0 || (cmd & 1) == is_short)
        return false;
    out->op = (uint8_t)op;
    out->cached = cmd & 0x20;
    out->width = is_short ? 4 : 8;
    return true;
}

bool wf_gni_amo_decode(uint32_t cmd, struct wf_gni_amo *out)
{
    *out = (struct wf_gni_amo){.fetch = !(cmd & NO_FETCH), .second = cmd & SECOND};
    return out->second ? decode_second(cmd, out) : decode_first(cmd, out);
}

static uint64_t fp64(enum wf_gni_amo_op op, uint64_t old, uint64_t first)
{
    double a, b, r;
    memcpy(&a, &old, 8);
    memcpy(&b, &first, 8);
    r = op == WF_GNI_AMO_FPMIN ? fmin(a, b) : op == WF_GNI_AMO_FPMAX ? fmax(a, b) : a + b;
    memcpy(&old, &r, 8);
    return old;
}

static uint64_t fp32(enum wf_gni_amo_op op, uint64_t old, uint64_t first)
{
    uint32_t old32 = (uint32_t)old, first32 = (uint32_t)first;
    float a, b, r;
    memcpy(&a, &old32, 4);
    memcpy(&b, &first32, 4);
    r = op == WF_GNI_AMO_FPMIN ? fminf(a, b) : op == WF_GNI_AMO_FPMAX ? fmaxf(a, b) : a + b;
    memcpy(&old32, &r, 4);
    return old32;
}

static uint64_t signed_order(const struct wf_gni_amo *amo, uint64_t old, uint64_t first)
{
    int64_t a = amo->width == 4 ? (int32_t)old : (int64_t)old;
    int64_t b = amo->width == 4 ? (int32_t)first : (int64_t)first;
    bool keep = amo->op == WF_GNI_AMO_IMIN ? a <= b : a >= b;
    return keep ? old : first;
}

uint64_t wf_gni_amo_result(const struct wf_gni_amo *amo, uint64_t old, uint64_t first,
                           uint64_t second)
{
    uint64_t mask = amo->width == 4 ? 0xffffffffull : ~0ull;
    old &= mask;
    first &= mask;
    second &= mask;
    switch ((enum wf_gni_amo_op)amo->op) {
    case WF_GNI_AMO_ADD:
        return (old + first) & mask;
    case WF_GNI_AMO_AND:
        return old & first;
    case WF_GNI_AMO_OR:
        return old | first;
    case WF_GNI_AMO_XOR:
        return old ^ first;
    case WF_GNI_AMO_SWAP:
        return first;
    case WF_GNI_AMO_AX:
        return (old & first) ^ second;
    case WF_GNI_AMO_CSWAP:
        return old == first ? second : old;
    case WF_GNI_AMO_IMIN:
    case WF_GNI_AMO_IMAX:
        return signed_order(amo, old, first);
    case WF_GNI_AMO_FPMIN:
    case WF_GNI_AMO_FPMAX:
    case WF_GNI_AMO_FPADD:
        return amo->width == 4 ? fp32(amo->op, old, first) : fp64(amo->op, old, first);
    }
    return old;
}

uint64_t wf_gni_amo_apply(const struct wf_gni_amo *amo, void *p, uint64_t first, uint64_t second)
{
    if (amo->width == 4) {
        uint32_t old = __atomic_load_n((uint32_t *)p, __ATOMIC_RELAXED), new;
        do
            new = (uint32_t)wf_gni_amo_result(amo, old, first, second);
        while (!__atomic_compare_exchange_n((uint32_t *)p, &old, new, true, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED));
        return old;
    }
    uint64_t old = __atomic_load_n((uint64_t *)p, __ATOMIC_RELAXED), new;
    do
        new = wf_gni_amo_result(amo, old, first, second);
    while (!__atomic_compare_exchange_n((uint64_t *)p, &old, new, true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED));
    return old;
}
