// SPDX-License-Identifier: BSD-2-Clause
// Requests that come before their listener. Programs reconnect while their server is between two
// listens (perftest -R does), and here that takes less time than on any wire: such a request waits
// a moment for a listener before it is refused.
#include "daemon/daemon.h"
#include "daemon/mad.h"

#include <stdlib.h>

#define EARLY_MS  150u
#define EARLY_MAX 256u // more are refused at once

struct early {
    struct early *next;
    struct wf_fmsg m;
    uint64_t until;
};

bool early_hold(struct weftd *d, const struct wf_fmsg *m)
{
    struct early *e = d->early_count < EARLY_MAX ? calloc(1, sizeof(*e)) : NULL;
    if (!e)
        return false;
    e->m = *m;
    e->until = now_ms() + EARLY_MS;
    struct early **end = &d->early;
    while (*end)
        end = &(*end)->next;
    *end = e;
    d->early_count++;
    return true;
}

static void take_out(struct weftd *d, struct early **p)
{
    struct early *e = *p;
    *p = e->next;
    d->early_count--;
    free(e);
}

void early_retry(struct weftd *d)
{
    for (struct early **p = &d->early; *p;) {
        if (mads_deliver(d, &(*p)->m))
            take_out(d, p);
        else
            p = &(*p)->next;
    }
}

void early_tick(struct weftd *d)
{
    uint64_t now = now_ms();
    while (d->early && d->early->until <= now) {
        struct wf_fmsg m = d->early->m;
        take_out(d, &d->early);
        mads_refuse(d, &m);
    }
}
