// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/ce.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

// The calls that set the rounding mode are opaque to the compiler and the sums go through volatile
// objects: the additions stay between them.

// Bits of a command: 0 wide, 5 greatest index; the rest is the operation.
#define WIDE   0x01u
#define GIDX   0x20u
#define OP(c)  ((c) & ~(WIDE | GIDX))
#define AND_OP 0x00u
#define OR_OP  0x02u
#define XOR_OP 0x04u
#define IMIN   0x10u
#define IMAX   0x12u
#define IADD   0x14u
#define FPMIN  0x18u
#define FPMAX  0x1au
#define FPADD  0x1cu

static bool indexed(uint32_t cmd)
{
    return OP(cmd) == IMIN || OP(cmd) == IMAX || OP(cmd) == FPMIN || OP(cmd) == FPMAX;
}

bool wf_gni_ce_command(uint32_t cmd)
{
    static const uint8_t plain[] = {AND_OP, OR_OP, XOR_OP, IADD, FPADD};
    if (cmd > 0x3b)
        return false;
    if (indexed(cmd))
        return true;
    for (unsigned i = 0; i < sizeof(plain); i++)
        if (!(cmd & GIDX) && OP(cmd) == plain[i])
            return true;
    return false;
}

static uint64_t cut(uint32_t cmd, uint64_t v)
{
    return cmd & WIDE ? v : (uint32_t)v;
}

static double as_double(uint32_t cmd, uint64_t v)
{
    double d;
    float f;
    uint32_t low = (uint32_t)v;
    if (cmd & WIDE) {
        memcpy(&d, &v, sizeof(d));
        return d;
    }
    memcpy(&f, &low, sizeof(f));
    return f;
}

static uint64_t fp_add(uint32_t cmd, uint64_t a, uint64_t b)
{
    if (cmd & WIDE) {
        volatile double r = as_double(cmd, a) + as_double(cmd, b);
        double out = r;
        memcpy(&a, &out, sizeof(a));
        return a;
    }
    volatile float r = (float)as_double(cmd, a) + (float)as_double(cmd, b);
    float out = r;
    uint32_t low;
    memcpy(&low, &out, sizeof(low));
    return low;
}

static int rounding_mode(uint32_t rounding)
{
    return rounding & GNI_CE_MODE_ROUND_UP     ? FE_UPWARD
           : rounding & GNI_CE_MODE_ROUND_DOWN ? FE_DOWNWARD
           : rounding & GNI_CE_MODE_ROUND_ZERO ? FE_TOWARDZERO
                                               : FE_TONEAREST;
}

static uint8_t exceptions(void)
{
    int e = fetestexcept(FE_ALL_EXCEPT);
    return (uint8_t)((e & FE_INVALID ? GNI_CE_FPE_OP_INVAL : 0) |
                     (e & FE_OVERFLOW ? GNI_CE_FPE_OFLOW : 0) |
                     (e & FE_UNDERFLOW ? GNI_CE_FPE_UFLOW : 0) |
                     (e & FE_INEXACT ? GNI_CE_FPE_PRECISION : 0));
}

static void fp_add_all(uint32_t cmd, bool two_op, uint32_t rounding, struct wf_gni_ce_value *acc,
                       const struct wf_gni_ce_value *part)
{
    fenv_t env;
    feholdexcept(&env);
    fesetround(rounding_mode(rounding));
    acc->op[0] = fp_add(cmd, acc->op[0], part->op[0]);
    if (two_op)
        acc->op[1] = fp_add(cmd, acc->op[1], part->op[1]);
    acc->fpe |= exceptions();
    fesetenv(&env);
}

// Below 0 when a comes first.
static int order(uint32_t cmd, uint64_t a, uint64_t b)
{
    if (OP(cmd) == FPMIN || OP(cmd) == FPMAX) {
        double x = as_double(cmd, a), y = as_double(cmd, b);
        return x < y ? -1 : x > y;
    }
    int64_t x = cmd & WIDE ? (int64_t)a : (int32_t)a, y = cmd & WIDE ? (int64_t)b : (int32_t)b;
    return x < y ? -1 : x > y;
}

static bool is_nan(uint32_t cmd, uint64_t v)
{
    return (OP(cmd) == FPMIN || OP(cmd) == FPMAX) && isnan(as_double(cmd, v));
}

// The better value wins; of equal ones the index decides. A NaN is an invalid operation and loses.
static void choose(uint32_t cmd, struct wf_gni_ce_value *acc, const struct wf_gni_ce_value *part)
{
    bool max = OP(cmd) == IMAX || OP(cmd) == FPMAX, take;
    int by = order(cmd, part->op[0], acc->op[0]);
    if (is_nan(cmd, acc->op[0]) || is_nan(cmd, part->op[0])) {
        acc->fpe |= GNI_CE_FPE_OP_INVAL;
        take = is_nan(cmd, acc->op[0]);
    } else if (by) {
        take = max ? by > 0 : by < 0;
    } else {
        take = cmd & GIDX ? part->op[1] > acc->op[1] : part->op[1] < acc->op[1];
    }
    if (take) {
        acc->op[0] = part->op[0];
        acc->op[1] = part->op[1];
    }
}

static uint64_t integer(uint32_t cmd, uint64_t a, uint64_t b)
{
    switch (OP(cmd)) {
    case AND_OP:
        return a & b;
    case OR_OP:
        return a | b;
    case XOR_OP:
        return a ^ b;
    default:
        return cut(cmd, a + b);
    }
}

struct wf_gni_ce_value wf_gni_ce_first(uint32_t cmd, bool two_op,
                                       const struct wf_gni_ce_value *part)
{
    struct wf_gni_ce_value v = *part;
    v.op[0] = cut(cmd, v.op[0]);
    v.op[1] = indexed(cmd) || two_op ? cut(cmd, v.op[1]) : 0;
    return v;
}

void wf_gni_ce_reduce(uint32_t cmd, bool two_op, uint32_t rounding, struct wf_gni_ce_value *acc,
                      const struct wf_gni_ce_value *raw)
{
    struct wf_gni_ce_value part = wf_gni_ce_first(cmd, two_op, raw);
    acc->fpe |= part.fpe;
    if (indexed(cmd)) {
        choose(cmd, acc, &part);
    } else if (OP(cmd) == FPADD) {
        fp_add_all(cmd, two_op, rounding, acc, &part);
    } else {
        acc->op[0] = integer(cmd, acc->op[0], part.op[0]);
        acc->op[1] = integer(cmd, acc->op[1], part.op[1]);
    }
}

// ---- the result record: done 63, status 59..56, exceptions 51..48, reduction 47..0
// ---------------

uint64_t gni_ce_res_get_status(gni_ce_result_t *r)
{
    return r->control >> 56 & 0xf;
}

uint64_t gni_ce_res_status_ok(gni_ce_result_t *r)
{
    return gni_ce_res_get_status(r) == 0;
}

uint64_t gni_ce_res_get_fpe(gni_ce_result_t *r)
{
    return r->control >> 48 & 0xf;
}

uint64_t gni_ce_res_get_red_id(gni_ce_result_t *r)
{
    return r->control & 0xffffffffffffull;
}
