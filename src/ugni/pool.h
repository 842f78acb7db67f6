// SPDX-License-Identifier: BSD-2-Clause
// Objects behind handles. They lie in an arena that is reserved once and never given back, so any
// pointer a caller hands in (freed, or made up) can be told from a live object without touching
// foreign memory; freed objects are used again last.
#ifndef WF_UGNI_POOL_H
#define WF_UGNI_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// First member of every pooled object.
struct wf_gni_obj {
    uint32_t live;
    uint32_t next; // in the queue of free objects
};

struct wf_gni_pool {
    size_t size;  // of an object
    uint32_t max; // objects
    char *base;
    uint32_t used; // objects ever made; index 0 is never used
    uint32_t free_head, free_tail, free_count;
};

// A zeroed object, live, or NULL.
void *wf_gni_pool_get(struct wf_gni_pool *p);
void wf_gni_pool_put(struct wf_gni_pool *p, void *obj);
// The object if it is a live one of this pool, else NULL.
void *wf_gni_pool_check(const struct wf_gni_pool *p, const void *obj);
uint32_t wf_gni_pool_index(const struct wf_gni_pool *p, const void *obj);
// The live object of an index, or NULL.
void *wf_gni_pool_at(const struct wf_gni_pool *p, uint32_t index);

#endif
