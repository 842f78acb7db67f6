// SPDX-License-Identifier: BSD-2-Clause
// What a process remembers of its own failures and waits, in one block that `weft explain --pid`
// and `weft why` read from outside, also while the process is stopped. Readers copy it and check
// what they copied; a record that is being written shows an odd `seq`.
#ifndef WF_BASE_NOTES_H
#define WF_BASE_NOTES_H

#include <stdatomic.h>
#include <stdint.h>

#define WF_NOTES      64u
#define WF_NOTE_WAITS 16u
#define WF_NOTE_TEXT  320u

// One root cause. Repetitions count.
struct wf_note {
    _Atomic uint32_t seq;
    uint32_t number; // enum wf_reason; 0: never used
    uint32_t count;
    int32_t err;       // what a refused call returned, 0 for other failures
    uint64_t first_ns; // CLOCK_MONOTONIC
    uint64_t last_ns;
    char text[WF_NOTE_TEXT];
};

// A thread that waits inside a call, and for what.
struct wf_note_wait {
    _Atomic int32_t tid; // 0: free
    uint32_t reserved;
    uint64_t since_ns;
    char text[WF_NOTE_TEXT];
};

struct wf_notes {
    uint32_t size;         // of this struct: tells versions apart
    _Atomic uint32_t next; // notes written so far; slot = next % WF_NOTES
    struct wf_note notes[WF_NOTES];
    struct wf_note_wait waits[WF_NOTE_WAITS];
};

extern struct wf_notes wf_notes;

// A call begins to wait (for longer than a moment); the result goes to wf_wait_end(). -1: the table
// is full, which wf_wait_end() takes.
int wf_wait_begin(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void wf_wait_end(int wait);

#endif
