// SPDX-License-Identifier: BSD-2-Clause
// The atomic memory operations of both generations: what a command means and what it makes of a
// word.
#ifndef WF_UGNI_AMO_H
#define WF_UGNI_AMO_H

#include <stdbool.h>
#include <stdint.h>

struct wf_gni_amo {
    bool fetch;
    bool cached;
    bool second;   // second generation: Aries only
    uint8_t width; // bytes of a word: 4 or 8
    uint8_t op;    // enum wf_gni_amo_op
};

enum wf_gni_amo_op {
    WF_GNI_AMO_ADD,
    WF_GNI_AMO_AND,
    WF_GNI_AMO_OR,
    WF_GNI_AMO_XOR,
    WF_GNI_AMO_SWAP,
    WF_GNI_AMO_AX,
    WF_GNI_AMO_CSWAP,
    WF_GNI_AMO_IMIN,
    WF_GNI_AMO_IMAX,
    WF_GNI_AMO_FPMIN,
    WF_GNI_AMO_FPMAX,
    WF_GNI_AMO_FPADD,
};

// False when cmd is no command.
bool wf_gni_amo_decode(uint32_t cmd, struct wf_gni_amo *out);

// Bytes from one word that is worked on to the next. The two operands of AX and CSWAP travel as two
// words where nothing is fetched, and the length counts both: every other word is left alone.
static inline unsigned wf_gni_amo_stride(const struct wf_gni_amo *amo)
{
    bool two = !amo->fetch && (amo->op == WF_GNI_AMO_AX || amo->op == WF_GNI_AMO_CSWAP);
    return two ? 2u * amo->width : amo->width;
}

// The word that the operation stores over `old`. Of 32-bit words only the low halves count.
uint64_t wf_gni_amo_result(const struct wf_gni_amo *amo, uint64_t old, uint64_t first,
                           uint64_t second);

// Do it to the naturally aligned word at `p`, atomically also towards this host's CPUs; the old
// value is returned.
uint64_t wf_gni_amo_apply(const struct wf_gni_amo *amo, void *p, uint64_t first, uint64_t second);

#endif
