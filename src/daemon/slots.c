// SPDX-License-Identifier: BSD-2-Clause
// Process slots: the top 8 bits of every QPN and communication id. A slot that was just given back
// is handed out last, and each use has another generation, so that what is still on its way to the
// old process is not taken for the new one's.
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

// Slot 0 is weftd; 255 would share its QPNs with the multicast QPN.
#define FIRST_SLOT 1
#define LAST_SLOT  254

#define BLIND_MS 3000

static void push(struct slots *s, uint32_t slot)
{
    s->queue[(s->first + s->count++) % WF_SLOTS] = (uint8_t)slot;
}

void slots_init(struct weftd *d)
{
    for (uint32_t i = FIRST_SLOT; i <= LAST_SLOT; i++)
        push(&d->slots, i);
}

// Clients of an earlier weftd are there but silent (stopped in a debugger, say), and their slots
// are not known. They are most likely low ones, so begin in the middle.
void slots_start_elsewhere(struct weftd *d)
{
    for (uint32_t i = 0; i < LAST_SLOT / 2; i++) {
        uint32_t slot = d->slots.queue[d->slots.first];
        d->slots.first = (d->slots.first + 1) % WF_SLOTS;
        d->slots.count--;
        push(&d->slots, slot);
    }
}

// Unique across restarts of weftd too, as long as it counts up slower than milliseconds. The low
// half, which ring cells carry, must not be 0.
uint64_t slots_generation(struct weftd *d)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    uint64_t g = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
    if (g <= d->slots.last_generation)
        g = d->slots.last_generation + 1;
    if ((uint32_t)g == 0)
        g++;
    return d->slots.last_generation = g;
}

static int take_wanted(struct weftd *d, uint32_t slot, uint64_t generation)
{
    struct slots *s = &d->slots;
    struct wf_roster_entry *e = &s->expected[slot];
    if (slot < FIRST_SLOT || slot > LAST_SLOT || s->taken[slot])
        return -EBUSY;
    if (e->generation && e->generation != generation)
        return -EBUSY;
    if (e->generation) {
        *e = (struct wf_roster_entry){0};
        s->expecting--;
    }
    s->taken[slot] = true;
    return 0;
}

int slots_take(struct weftd *d, uint32_t wanted, uint64_t generation, uint32_t *slot)
{
    struct slots *s = &d->slots;
    if (wanted) {
        *slot = wanted;
        return take_wanted(d, wanted, generation);
    }
    for (unsigned tries = s->count; tries; tries--) {
        uint32_t next = s->queue[s->first];
        s->first = (s->first + 1) % WF_SLOTS;
        s->count--;
        if (s->expected[next].generation) {
            push(s, next);
        } else if (!s->taken[next]) { // taken ones were claimed by number: not free any more
            s->taken[next] = true;
            *slot = next;
            return 0;
        }
    }
    return -ENOSPC;
}

static bool queued(const struct slots *s, uint32_t slot)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->queue[(s->first + i) % WF_SLOTS] == slot)
            return true;
    return false;
}

void slots_give(struct weftd *d, uint32_t slot)
{
    d->slots.taken[slot] = false;
    if (!queued(&d->slots, slot))
        push(&d->slots, slot);
    d->gids.roster[slot] = (struct wf_roster_entry){0};
}

void slots_expect(struct weftd *d, const struct wf_roster_entry *roster)
{
    struct slots *s = &d->slots;
    for (uint32_t i = FIRST_SLOT; i <= LAST_SLOT; i++) {
        if (!roster[i].generation || s->taken[i] || s->expected[i].generation)
            continue;
        s->expected[i] = roster[i];
        s->expecting++;
        s->expecting_since = now_ms();
        if (roster[i].generation > s->last_generation)
            s->last_generation = roster[i].generation;
    }
}

// A process in another pid namespace cannot be looked up; it gets some time.
static bool still_expected(const struct slots *s, const struct wf_roster_entry *e)
{
    if (e->pid <= 0)
        return now_ms() < s->expecting_since + BLIND_MS;
    return kill(e->pid, 0) == 0 || errno != ESRCH;
}

// Who died while there was no weftd is announced late rather than never.
void slots_check_expected(struct weftd *d)
{
    struct slots *s = &d->slots;
    for (uint32_t i = FIRST_SLOT; i <= LAST_SLOT; i++) {
        struct wf_roster_entry *e = &s->expected[i];
        if (!e->generation || still_expected(s, e))
            continue;
        struct wf_fmsg died = {.type = WF_F_PEER_DIED, .slot = i, .generation = e->generation};
        *e = (struct wf_roster_entry){0};
        s->expecting--;
        clients_clear_hazards(d, i);
        client_broadcast(d, &died, NULL);
    }
}
