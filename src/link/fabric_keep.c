// SPDX-License-Identifier: BSD-2-Clause
// What this process has asked of weftd and still wants: told again to a new weftd when the old one
// was killed.
#include "link/fabric_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct kept_key {
    uint64_t a, b;
    uint8_t gid[16];
    uint32_t index;
    uint32_t type;
};

struct kept {
    struct kept_key key;
    unsigned count; // multicast joins count
    struct wf_fmsg m;
    UT_hash_handle hh;
};

static struct kept_key key_of(const struct wf_fmsg *m)
{
    struct kept_key k = {.type = m->type, .a = m->a};
    if (m->type == WF_F_WILL)
        return k;
    k.b = m->b;
    k.index = m->index;
    memcpy(k.gid, m->dgid, 16);
    return k;
}

static struct kept *find(struct wf_fabric *f, const struct wf_fmsg *m)
{
    struct kept_key key = key_of(m);
    struct kept *k;
    HASH_FIND(hh, f->kept, &key, sizeof(key), k);
    return k;
}

int wf_fabric_keep(struct wf_fabric *f, const struct wf_fmsg *m)
{
    struct kept *k = find(f, m);
    if (!k) {
        k = calloc(1, sizeof(*k));
        if (!k)
            return -ENOMEM;
        k->key = key_of(m);
        HASH_ADD(hh, f->kept, key, sizeof(k->key), k);
    }
    k->count++;
    k->m = *m;
    return 0;
}

static void remove_kept(struct wf_fabric *f, struct kept *k)
{
    HASH_DEL(f->kept, k);
    free(k);
}

void wf_fabric_forget(struct wf_fabric *f, const struct wf_fmsg *m, bool all)
{
    struct kept *k = find(f, m);
    if (k && (all || --k->count == 0))
        remove_kept(f, k);
}

// A refusal now (somebody else listens meanwhile) cannot be told to anybody.
void wf_fabric_replay(struct wf_fabric *f)
{
    for (struct kept *k = f->kept; k && f->sock >= 0; k = k->hh.next) {
        unsigned times = k->m.type == WF_F_MCAST_JOIN ? k->count : 1;
        for (unsigned i = 0; i < times; i++) {
            struct wf_fmsg m = k->m;
            if (m.type == WF_F_WILL)
                (void)wf_fabric_tell(f, &m, WF_FABRIC_TIMEOUT_MS);
            else
                (void)wf_fabric_call(f, &m, NULL, 0, NULL);
        }
    }
}

void wf_fabric_forget_all(struct wf_fabric *f)
{
    struct kept *k, *tmp;
    HASH_ITER(hh, f->kept, k, tmp)
    remove_kept(f, k);
}
