// SPDX-License-Identifier: BSD-2-Clause
// Puts an engine together and takes it apart.
#include "engine/engine.h"
#include "engine/tap.h"

#include "base/clock.h"
#include "base/guard.h"
#include "base/notes.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void wf_now(struct wf_hca *h)
{
    h->env.now = h->clock ? h->clock(h->clock_arg) : wf_tsc_ns(&h->tsc);
    h->fresh = true;
}

void wf_enter(struct wf_hca *h)
{
    pthread_mutex_lock(&h->lock);
    wf_now(h);
}

void wf_enter_poll(struct wf_hca *h)
{
    pthread_mutex_lock(&h->lock);
    h->fresh = false;
}

bool wf_has_news(const struct wf_hca *h)
{
    return h->fabric && wf_fabric_has_events(h->fabric);
}

void wf_exit(struct wf_hca *h)
{
    wf_run_urgent(h);
    // What is left over (a long copy, a full link) must not wait for the next call when nobody
    // polls.
    h->env.posting = false;
    bool left = h->ready.head || h->blocked.head;
    bool kick = (left && h->mode == WF_THREAD_DOZE) || wf_has_news(h);
    kick = kick && h->threaded;
    pthread_mutex_unlock(&h->lock);
    if (kick)
        wf_thread_kick(h);
}

static void connect_link(struct wf_hca *h, struct wf_link *l)
{
    if (!l)
        return;
    l->deliver = wf_deliver;
    l->damaged = wf_damaged;
    l->arg = h;
}

// Without a fabric the engine needs a directory of its own.
static struct wf_region *private_region(void)
{
    void *p = mmap(NULL, sizeof(struct wf_region), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static int init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    // Held for short: spinning a little beats sleeping.
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
    int err = pthread_mutex_init(lock, &attr);
    pthread_mutexattr_destroy(&attr);
    return -err;
}

int wf_hca_create(const struct wf_hca_parts *parts, struct wf_hca **out)
{
    struct wf_hca *h = calloc(1, sizeof(*h));
    if (!h)
        return -ENOMEM;
    wf_guard_install();
    h->slot = parts->slot;
    h->clock = parts->clock;
    h->clock_arg = parts->clock_arg;
    h->kick_fd = -1;
    h->next_qp = h->next_srq = 2; // 0 and 1 are special in IB; ours are weftd's
    h->region = parts->region ? parts->region : private_region();
    h->qps = calloc(WF_QP_PER_PROCESS, sizeof(*h->qps));
    h->srqs = calloc(WF_QP_PER_PROCESS, sizeof(*h->srqs));
    if (!h->region || !h->qps || !h->srqs || wf_keys_init(&h->keys, h->region->keys) ||
        init_lock(&h->lock) || pthread_mutex_init(&h->work_lock, NULL)) {
        if (parts->region)
            h->region = NULL;
        wf_hca_destroy(h);
        return -ENOMEM;
    }
    h->fabric = parts->fabric;
    h->loop = parts->loop;
    h->shm = parts->shm;
    h->udp = parts->udp;
    if (parts->gids)
        h->gids = *parts->gids;
    else
        wf_fabric_gids(h->fabric, &h->gids);
    h->node_guid = h->gids.node_guid;
    h->env = (struct wf_qp_env){.ops = &wf_engine_qp_ops, .arg = h, .keys = &h->keys};
    h->region->view.engine = (uintptr_t)h;
    h->region->view.notes = (uintptr_t)&wf_notes;
    h->region->view.layout = WF_VIEW_LAYOUT;
    h->keys.now = &h->env.now;
    connect_link(h, h->loop);
    connect_link(h, h->shm);
    connect_link(h, h->udp);
    if (wf_pkeys_parse(getenv("WEFT_PKEYS"), h->pkeys))
        wf_pkeys_parse(NULL, h->pkeys);
    const char *path = getenv("WEFT_PATH");
    h->force_udp = path && path[0] == 'u';
    *out = h;
    return 0;
}

void wf_hca_abandon(struct wf_hca *h)
{
    // What the child does to inherited objects must not show in the parent's keys and QPs.
    mmap(h->region, sizeof(struct wf_region), PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    h->fabric = NULL;
    h->shm = h->udp = NULL;
    h->threaded = false;
    h->kick_fd = -1;
    h->udp_qps = 0;
}

static void destroy_link(struct wf_link *l)
{
    if (l)
        l->ops->destroy(l);
}

void wf_hca_destroy(struct wf_hca *h)
{
    wf_tap_destroy(h);
    destroy_link(h->loop);
    destroy_link(h->shm);
    destroy_link(h->udp);
    if (h->keys.info)
        wf_keys_fini(&h->keys);
    if (h->region && !h->fabric)
        munmap(h->region, sizeof(struct wf_region));
    if (h->fabric)
        wf_fabric_leave(h->fabric);
    free(h->qps);
    free(h->srqs);
    free(h->heap);
    free(h);
}
