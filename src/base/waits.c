// SPDX-License-Identifier: BSD-2-Clause
// Who waits inside a call, and for what: written only by calls that have waited for a while.
#include "base/clock.h"
#include "base/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

int wf_wait_begin(const char *fmt, ...)
{
    for (unsigned i = 0; i < WF_NOTE_WAITS; i++) {
        struct wf_note_wait *w = &wf_notes.waits[i];
        int32_t none = 0;
        if (!atomic_compare_exchange_strong(&w->tid, &none, -1))
            continue;
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(w->text, sizeof(w->text), fmt, ap);
        va_end(ap);
        w->since_ns = wf_clock_ns();
        atomic_store(&w->tid, gettid());
        return (int)i;
    }
    return -1;
}

void wf_wait_end(int wait)
{
    if (wait >= 0)
        atomic_store(&wf_notes.waits[wait].tid, 0);
}
