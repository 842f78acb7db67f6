// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/pool.h"

#include <string.h>
#include <sys/mman.h>

// So many freed objects wait before the oldest is used again: a stale handle stays stale for long.
#define QUARANTINE 256u

static bool reserve(struct wf_gni_pool *p)
{
    if (p->base)
        return true;
    void *m = mmap(NULL, p->size * p->max, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED)
        return false;
    p->base = m;
    p->used = 1;
    return true;
}

static struct wf_gni_obj *object(const struct wf_gni_pool *p, uint32_t index)
{
    return (struct wf_gni_obj *)(p->base + (size_t)index * p->size);
}

static uint32_t take_free(struct wf_gni_pool *p)
{
    uint32_t index = p->free_head;
    p->free_head = object(p, index)->next;
    if (!p->free_head)
        p->free_tail = 0;
    p->free_count--;
    return index;
}

void *wf_gni_pool_get(struct wf_gni_pool *p)
{
    uint32_t index;
    if (!reserve(p))
        return NULL;
    if (p->free_count > QUARANTINE || (p->used == p->max && p->free_count))
        index = take_free(p);
    else if (p->used < p->max)
        index = p->used++;
    else
        return NULL;
    struct wf_gni_obj *o = object(p, index);
    memset(o, 0, p->size);
    o->live = 1;
    return o;
}

void wf_gni_pool_put(struct wf_gni_pool *p, void *obj)
{
    struct wf_gni_obj *o = obj;
    uint32_t index = wf_gni_pool_index(p, obj);
    o->live = 0;
    o->next = 0;
    if (p->free_tail)
        object(p, p->free_tail)->next = index;
    else
        p->free_head = index;
    p->free_tail = index;
    p->free_count++;
}

void *wf_gni_pool_check(const struct wf_gni_pool *p, const void *obj)
{
    uintptr_t a = (uintptr_t)obj, base = (uintptr_t)p->base;
    if (!base || a <= base || a >= base + (uintptr_t)p->used * p->size || (a - base) % p->size)
        return NULL;
    return ((const struct wf_gni_obj *)obj)->live ? (void *)a : NULL;
}

uint32_t wf_gni_pool_index(const struct wf_gni_pool *p, const void *obj)
{
    return (uint32_t)(((uintptr_t)obj - (uintptr_t)p->base) / p->size);
}

void *wf_gni_pool_at(const struct wf_gni_pool *p, uint32_t index)
{
    if (!index || index >= p->used || !object(p, index)->live)
        return NULL;
    return object(p, index);
}
