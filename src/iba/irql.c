// SPDX-License-Identifier: BSD-2-Clause
// IRQL as a checked notion. It orders nothing here: it is a promise of the thread not to block, and
// every place that might block asks whether the promise holds.
#include "base/reason.h"
#include "weft/wdm.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local KIRQL level;
static atomic_uint violations;

static void violation(const char *what, unsigned at)
{
    const char *mode = getenv("WEFT_IRQL");
    atomic_fetch_add(&violations, 1);
    wf_explain(WF_R_IRQL, "%s at IRQL %u", what, at);
    if (mode && strcmp(mode, "abort") == 0)
        abort();
}

ULONG weft_wdm_irql_violations(VOID)
{
    return atomic_load(&violations);
}

VOID weft_wdm_may_block(const char *what)
{
    if (level >= DISPATCH_LEVEL)
        violation(what, level);
}

KIRQL KeGetCurrentIrql(VOID)
{
    return level;
}

VOID KeRaiseIrql(KIRQL NewIrql, PKIRQL OldIrql)
{
    if (NewIrql < level)
        violation("KeRaiseIrql to a lower level", level);
    *OldIrql = level;
    level = NewIrql;
}

KIRQL KeRaiseIrqlToDpcLevel(VOID)
{
    KIRQL old;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    return old;
}

VOID KeLowerIrql(KIRQL NewIrql)
{
    if (NewIrql > level)
        violation("KeLowerIrql to a higher level", level);
    level = NewIrql;
}
