// SPDX-License-Identifier: BSD-2-Clause
#include "base/reason.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reason_text {
    uint32_t number;
    const char *name, *cause, *remedy;
};

static const struct reason_text texts[] = {
#define WF_REASON(num, name, cause, remedy) {num, #name, cause, remedy},
#include "base/reasons.def"
#undef WF_REASON
};

static const struct reason_text *text_of(enum wf_reason why)
{
    static const struct reason_text unknown = {0, "?", "?", "?"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].number == (uint32_t)why)
            return &texts[i];
    return &unknown;
}

const char *wf_reason_name(enum wf_reason why)
{
    return text_of(why)->name;
}

const char *wf_reason_cause(enum wf_reason why)
{
    return text_of(why)->cause;
}

const char *wf_reason_remedy(enum wf_reason why)
{
    return text_of(why)->remedy;
}

static int explaining(void)
{
    static int on = -1;
    if (on < 0) {
        const char *v = getenv("WEFT_EXPLAIN");
        on = v && *v && strcmp(v, "0") != 0;
    }
    return on;
}

// One write per line, so that lines of several processes do not mix.
static void print_line(enum wf_reason why, const char *fmt, va_list ap)
{
    char detail[512], line[1024];
    const struct reason_text *t = text_of(why);
    vsnprintf(detail, sizeof(detail), fmt, ap);
    snprintf(line, sizeof(line), "weft: [%u %s] %s: %s. %s.\n", t->number, t->name, detail, t->cause,
             t->remedy);
    fputs(line, stderr);
}

int wf_refuse(int err, enum wf_reason why, const char *fmt, ...)
{
    if (explaining()) {
        va_list ap;
        va_start(ap, fmt);
        print_line(why, fmt, ap);
        va_end(ap);
    }
    return -err;
}

void wf_explain(enum wf_reason why, const char *fmt, ...)
{
    if (!explaining())
        return;
    va_list ap;
    va_start(ap, fmt);
    print_line(why, fmt, ap);
    va_end(ap);
}
