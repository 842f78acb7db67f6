// SPDX-License-Identifier: BSD-2-Clause
// Last wills: MADs (DREQs, as a rule) to send when a process dies.
#include "daemon/daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct will {
    uint32_t id;
    struct wf_fmsg m;
    UT_hash_handle hh;
};

int wills_set(struct client *c, const struct wf_fmsg *m)
{
    uint32_t id = (uint32_t)m->a;
    struct will *w;
    HASH_FIND(hh, c->wills, &id, sizeof(id), w);
    if (m->flags & WF_FM_DROP) {
        if (w) {
            HASH_DEL(c->wills, w);
            free(w);
        }
        return 0;
    }
    if (!w) {
        w = calloc(1, sizeof(*w));
        if (!w)
            return -ENOMEM;
        w->id = id;
        HASH_ADD(hh, c->wills, id, sizeof(w->id), w);
    }
    w->m = *m;
    w->m.type = WF_F_MAD;
    w->m.pkey = 0xffff;
    return 0;
}

// The client is no longer in the tables, so wills to itself go nowhere.
void wills_run(struct weftd *d, struct client *c)
{
    for (struct will *w = c->wills; w; w = w->hh.next)
        mads_send(d, &w->m);
}

void wills_forget(struct client *c)
{
    struct will *w, *tmp;
    HASH_ITER(hh, c->wills, w, tmp)
    {
        HASH_DEL(c->wills, w);
        free(w);
    }
}
