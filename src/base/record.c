// SPDX-License-Identifier: BSD-2-Clause
// Records of reasons. Always: the last ones are kept in wf_notes, repetitions only counted. With
// WEFT_EXPLAIN also one line for each root cause on standard error, with WEFT_EXPLAIN_FILE one JSON
// object a line in that file.
#include "base/record.h"

#include "base/clock.h"
#include "base/explain_json.h"
#include "base/notes.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// When nobody listens, a text is made at most this often for the same place in the source.
#define QUIET_NS 100000000ull
// Lines with different values for the same reason; what follows is counted only.
#define LINES_PER_REASON 8u

struct wf_notes wf_notes = {.size = sizeof(struct wf_notes)};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *places[WF_NOTES]; // the format of each note: the place it comes from
static bool to_stderr;
static bool silent;    // WEFT_EXPLAIN=0
static bool listening; // to_stderr or a file
static wf_reason_watcher *watcher;
static void *watcher_arg;

static void say(const struct wf_note *n)
{
    char line[WF_NOTE_TEXT + 700];
    enum wf_reason why = (enum wf_reason)n->number;
    int len = snprintf(line, sizeof(line), "weft: [%u %s] %s: %s. To do: %s.\n", n->number,
                       wf_reason_name(why), n->text, wf_reason_cause(why), wf_reason_remedy(why));
    // One write per line, so that lines of several processes do not mix.
    if (to_stderr && len > 0)
        (void)!write(STDERR_FILENO, line,
                     (size_t)len < sizeof(line) ? (size_t)len : sizeof(line) - 1);
    wf_explain_json(n, false);
}

static void say_repeated(const struct wf_note *n)
{
    if (to_stderr)
        dprintf(STDERR_FILENO, "weft: [%u %s] %u times in all: %s\n", n->number,
                wf_reason_name((enum wf_reason)n->number), n->count, n->text);
    wf_explain_json(n, true);
}

static void at_exit(void)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < WF_NOTES; i++)
        if (wf_notes.notes[i].count > 1)
            say_repeated(&wf_notes.notes[i]);
    pthread_mutex_unlock(&lock);
}

// What the parent recorded is not the child's.
static void forget_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    memset(wf_notes.notes, 0, sizeof(wf_notes.notes));
    memset(wf_notes.waits, 0, sizeof(wf_notes.waits));
    memset(places, 0, sizeof(places));
    atomic_store(&wf_notes.next, 0);
}

static void start(void)
{
    const char *v = getenv("WEFT_EXPLAIN");
    silent = v && strcmp(v, "0") == 0;
    to_stderr = v && *v && !silent;
    listening = to_stderr | wf_explain_json_open();
    if (listening)
        atexit(at_exit);
    pthread_atfork(NULL, NULL, forget_in_child);
}

void wf_record_no_device(void)
{
    static bool said;
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    const struct wf_note *n = NULL;
    for (unsigned i = 0; i < WF_NOTES; i++)
        if (wf_notes.notes[i].count && (!n || wf_notes.notes[i].last_ns > n->last_ns))
            n = &wf_notes.notes[i];
    if (n && !said && !to_stderr && !silent)
        dprintf(STDERR_FILENO, "weft: no device: [%u %s] %s: %s\n", n->number,
                wf_reason_name((enum wf_reason)n->number), n->text,
                wf_reason_cause((enum wf_reason)n->number));
    said = true;
    pthread_mutex_unlock(&lock);
}

bool wf_explaining(void)
{
    pthread_once(&once, start);
    return listening;
}

void wf_reason_watch(wf_reason_watcher *fn, void *arg)
{
    pthread_mutex_lock(&lock);
    watcher = fn;
    watcher_arg = arg;
    pthread_mutex_unlock(&lock);
}

static struct wf_note *find(enum wf_reason why, const char *place, const char *text)
{
    for (unsigned i = 0; i < WF_NOTES; i++) {
        struct wf_note *n = &wf_notes.notes[i];
        if (n->number == (uint32_t)why && places[i] == place &&
            (!text || strcmp(n->text, text) == 0))
            return n;
    }
    return NULL;
}

static unsigned lines_of(enum wf_reason why, struct wf_note **last)
{
    unsigned n = 0;
    for (unsigned i = 0; i < WF_NOTES; i++) {
        if (wf_notes.notes[i].number != (uint32_t)why)
            continue;
        n++;
        if (!*last || wf_notes.notes[i].last_ns > (*last)->last_ns)
            *last = &wf_notes.notes[i];
    }
    return n;
}

static void write_note(struct wf_note *n, enum wf_reason why, int err, const char *text,
                       uint64_t now)
{
    atomic_fetch_add(&n->seq, 1);
    n->number = (uint32_t)why;
    n->err = err;
    n->count = 1;
    n->first_ns = n->last_ns = now;
    snprintf(n->text, sizeof(n->text), "%s", text);
    atomic_fetch_add(&n->seq, 1);
}

static struct wf_note *new_note(enum wf_reason why, int err, const char *place, const char *text,
                                uint64_t now)
{
    unsigned i = atomic_load(&wf_notes.next) % WF_NOTES;
    struct wf_note *n = &wf_notes.notes[i];
    if (listening && n->count > 1)
        say_repeated(n);
    write_note(n, why, err, text, now);
    places[i] = place;
    atomic_fetch_add(&wf_notes.next, 1);
    return n;
}

static void again(struct wf_note *n, uint64_t now)
{
    n->count++;
    n->last_ns = now;
}

static void record_locked(enum wf_reason why, int err, const char *place, const char *text)
{
    uint64_t now = wf_clock_ns();
    struct wf_note *n = find(why, place, listening ? text : NULL);
    struct wf_note *last = NULL;
    if (n && listening) {
        again(n, now);
    } else if (n) {
        uint32_t count = n->count + 1;
        uint64_t first = n->first_ns;
        write_note(n, why, err, text, now);
        n->count = count;
        n->first_ns = first;
    } else if (listening && lines_of(why, &last) >= LINES_PER_REASON) {
        again(last, now);
    } else {
        n = new_note(why, err, place, text, now);
        if (listening)
            say(n);
    }
    if (watcher)
        watcher(watcher_arg, why, text);
}

void wf_record(enum wf_reason why, int err, const char *fmt, va_list ap)
{
    char text[WF_NOTE_TEXT];
    int saved = errno;
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    struct wf_note *n = listening || watcher ? NULL : find(why, fmt, NULL);
    if (n && wf_clock_ns() - n->last_ns < QUIET_NS) {
        n->count++;
    } else {
        vsnprintf(text, sizeof(text), fmt, ap);
        record_locked(why, err, fmt, text);
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
}
