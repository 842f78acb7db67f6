// SPDX-License-Identifier: BSD-2-Clause
// The table of reasons and the two calls that everything goes through.
#include "base/reason.h"
#include "base/record.h"

#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

struct reason_text {
    uint32_t number;
    const char *name, *cause, *remedy;
};

static const struct reason_text texts[] = {
#define WF_REASON(num, name, cause, remedy) {num, #name, cause, remedy},
#include "base/reasons.def"
#undef WF_REASON
};
#define N_TEXTS (sizeof(texts) / sizeof(texts[0]))

static const struct reason_text *text_of(enum wf_reason why)
{
    static const struct reason_text unknown = {0, "?", "?", "?"};
    for (size_t i = 0; i < N_TEXTS; i++)
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

const char *wf_reason_fault(enum wf_reason why)
{
    switch (why) {
    case WF_R_NOT_SUPPORTED:
        return "Weft: this is a limit of it";
    case WF_R_OPCODE_ORDER:
        return "the sender's device";
    case WF_R_REMOTE_NAK:
        return "one of the two programs: the peer's side tells which";
    case WF_R_FLUSHED:
        return "nobody: this is the consequence of an earlier failure";
    default:
        break;
    }
    switch ((uint32_t)why / 100) {
    case 1:
        return "the program that made the call";
    case 2:
        return "the program on this side: its own memory or keys";
    case 3:
        return "one of the two programs: what the requester asked for is not what the responder "
               "granted";
    case 4:
        return "the peer, the way to it, or the numbers the two sides exchanged";
    case 5:
        return "the sender of the packet, or the network";
    case 6:
        return "the environment: this host and its limits";
    case 7:
        return "one of the two programs, or the way between them";
    default:
        return "the program that made the call";
    }
}

enum wf_reason wf_reason_at(unsigned i)
{
    return i < N_TEXTS ? (enum wf_reason)texts[i].number : WF_R_NONE;
}

enum wf_reason wf_reason_find(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    for (size_t i = 0; i < N_TEXTS; i++)
        if ((*text && !*end && texts[i].number == n) || strcasecmp(texts[i].name, text) == 0)
            return (enum wf_reason)texts[i].number;
    return WF_R_NONE;
}

int wf_refuse(int err, enum wf_reason why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    wf_record(why, err, fmt, ap);
    va_end(ap);
    return -err;
}

void wf_explain(enum wf_reason why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    wf_record(why, 0, fmt, ap);
    va_end(ap);
}
