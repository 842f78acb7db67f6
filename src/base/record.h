// SPDX-License-Identifier: BSD-2-Clause
// Where reasons go: between the files of this folder, and for whoever wants to see each of them.
#ifndef WF_BASE_RECORD_H
#define WF_BASE_RECORD_H

#include "base/reason.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

// Is anybody listening, so that what costs time to find out is worth it?
bool wf_explaining(void);

void wf_record(enum wf_reason why, int err, const char *fmt, va_list ap);

// Without Weft's device the program gets nowhere, and mostly says no more than that: print the
// newest reason, once, even where nobody asked for explanations (WEFT_EXPLAIN=0: not even then).
void wf_record_no_device(void);

// Called with each new or repeated reason (flight recorder, comments in captures). One at most;
// NULL takes it back. It must not explain anything itself.
typedef void wf_reason_watcher(void *arg, enum wf_reason why, const char *text);
void wf_reason_watch(wf_reason_watcher *fn, void *arg);

// "main+0x1f in ./program" of an address in this process, "?" when it cannot be told.
const char *wf_call_site_name(const void *address, char *buf, size_t len);
// The nearest caller outside this library.
const void *wf_call_site(void);

#endif
