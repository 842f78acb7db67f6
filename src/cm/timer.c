// SPDX-License-Identifier: BSD-2-Clause
// One timer an id, in a binary heap by deadline: thousands of ids in TIMEWAIT cost a few steps
// each.
#include "cm/internal.h"

#include <errno.h>

#define NO_MEMORY_PAUSE 100000000ull

static void put(struct wf_cm *cm, size_t at, struct wf_cm_id *id)
{
    cm->heap[at] = id;
    id->heap_at = at + 1;
}

static void sift_up(struct wf_cm *cm, size_t at, struct wf_cm_id *id)
{
    while (at > 0) {
        size_t parent = (at - 1) / 2;
        if (cm->heap[parent]->deadline <= id->deadline)
            break;
        put(cm, at, cm->heap[parent]);
        at = parent;
    }
    put(cm, at, id);
}

static void sift_down(struct wf_cm *cm, size_t at, struct wf_cm_id *id)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= cm->heap_len)
            break;
        if (child + 1 < cm->heap_len && cm->heap[child + 1]->deadline < cm->heap[child]->deadline)
            child++;
        if (id->deadline <= cm->heap[child]->deadline)
            break;
        put(cm, at, cm->heap[child]);
        at = child;
    }
    put(cm, at, id);
}

// Room for every id is made when it is created (id.c), so arming cannot fail.
void wf_cm_timer_arm(struct wf_cm_id *id, uint64_t deadline)
{
    struct wf_cm *cm = id->cm;
    size_t at = id->heap_at ? id->heap_at - 1 : cm->heap_len++;
    uint64_t before = id->heap_at ? id->deadline : WF_NEVER;
    id->deadline = deadline;
    if (deadline <= before)
        sift_up(cm, at, id);
    else
        sift_down(cm, at, id);
}

static void heap_remove(struct wf_cm_id *id)
{
    struct wf_cm *cm = id->cm;
    size_t at = id->heap_at - 1;
    struct wf_cm_id *last = cm->heap[--cm->heap_len];
    id->heap_at = 0;
    if (last == id)
        return;
    sift_down(cm, at, last);
    sift_up(cm, last->heap_at - 1, last);
}

void wf_cm_timer_stop(struct wf_cm_id *id)
{
    id->repeating = false;
    if (id->heap_at)
        heap_remove(id);
}

static void fire(struct wf_cm_id *id)
{
    struct wf_cm *cm = id->cm;
    if (!id->repeating || id->retries_left == 0) {
        wf_cm_timer_stop(id);
        // An event that found no memory must not be lost: nothing else will ever happen to the id.
        if (wf_cm_step(id, TIMER, NULL) == -ENOMEM)
            wf_cm_timer_arm(id, cm->now + NO_MEMORY_PAUSE);
        return;
    }
    id->retries_left--;
    cm->stats.repeated++;
    // A failure to send is a lost datagram: the next repetition may fare better.
    (void)cm->config.ops->send_mad(cm->config.arg, &id->peer, id->sgid_index, id->repeat);
    wf_cm_timer_arm(id, cm->now + id->interval);
}

void wf_cm_run(struct wf_cm *cm, uint64_t now)
{
    if (now > cm->now)
        cm->now = now;
    while (cm->heap_len && cm->heap[0]->deadline <= cm->now)
        fire(cm->heap[0]);
}

uint64_t wf_cm_deadline(const struct wf_cm *cm)
{
    return cm->heap_len ? cm->heap[0]->deadline : WF_NEVER;
}
