// SPDX-License-Identifier: BSD-2-Clause
// Management datagrams and timers for connection management.
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tap.h"

#include <errno.h>

void wf_hca_set_mad_handler(struct wf_hca *h, void (*fn)(void *arg, const struct wf_mad *mad),
                            void *arg)
{
    wf_enter(h);
    h->mad_handler = fn;
    h->mad_arg = arg;
    wf_exit(h);
}

int wf_hca_send_mad(struct wf_hca *h, const union ibv_gid *dgid, uint32_t sgid_index,
                    const uint8_t mad[256])
{
    wf_enter(h);
    if (h->tap && sgid_index < WF_GIDS &&
        wf_tap_mad(h, false, &h->gids.gids[sgid_index].gid, dgid, sgid_index, mad)) {
        wf_exit(h);
        return 0;
    }
    int err = h->fabric ? wf_fabric_send_mad(h->fabric, dgid, sgid_index, mad) : -ENETUNREACH;
    wf_exit(h);
    return err;
}

int wf_hca_cm_listen(struct wf_hca *h, uint64_t service_id, uint64_t mask)
{
    wf_enter(h);
    int err = h->fabric ? wf_fabric_listen(h->fabric, service_id, mask) : -ENETUNREACH;
    wf_exit(h);
    return err;
}

void wf_hca_cm_unlisten(struct wf_hca *h, uint64_t service_id, uint64_t mask)
{
    wf_enter(h);
    if (h->fabric)
        wf_fabric_unlisten(h->fabric, service_id, mask);
    wf_exit(h);
}

int wf_hca_set_will(struct wf_hca *h, uint32_t id, const union ibv_gid *dgid, uint32_t sgid_index,
                    const uint8_t *mad)
{
    wf_enter(h);
    int err = h->fabric ? wf_fabric_set_will(h->fabric, id, dgid, sgid_index, mad) : 0;
    wf_exit(h);
    return err;
}

uint32_t wf_hca_slot(struct wf_hca *h)
{
    return h->slot;
}

static void unlink_timer(struct wf_hca *h, struct wf_hca_timer *t)
{
    for (struct wf_hca_timer **p = &h->timers; *p; p = &(*p)->next) {
        if (*p == t) {
            *p = t->next;
            return;
        }
    }
}

void wf_hca_set_timer(struct wf_hca *h, struct wf_hca_timer *t, uint64_t deadline)
{
    wf_enter(h);
    unlink_timer(h, t);
    t->deadline = deadline;
    if (deadline != WF_NEVER) {
        t->next = h->timers;
        h->timers = t;
    }
    wf_exit(h);
    if (h->threaded)
        wf_thread_kick(h);
}

bool wf_timers_due(struct wf_hca *h, uint64_t now, uint64_t *next)
{
    bool due = false;
    for (struct wf_hca_timer **p = &h->timers; *p;) {
        struct wf_hca_timer *t = *p;
        if (t->deadline > now) {
            if (t->deadline < *next)
                *next = t->deadline;
            p = &t->next;
            continue;
        }
        *p = t->next;
        t->deadline = WF_NEVER;
        due = true;
        wf_hca_defer(h, &t->work);
    }
    return due;
}
