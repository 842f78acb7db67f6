// SPDX-License-Identifier: BSD-2-Clause
#include "mem/keys.h"

#include "base/record.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define INFO_BYTES (sizeof(struct wf_key_info) * WF_KEYTAB_SIZE)

int wf_keys_init(struct wf_keys *k, struct wf_key_entry *entries)
{
    // Mapped, not allocated: pages of indexes that are never used cost nothing.
    void *info = mmap(NULL, INFO_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (info == MAP_FAILED)
        return -ENOMEM;
    *k = (struct wf_keys){.entries = entries, .info = info, .top = 1};
    return 0;
}

void wf_keys_fini(struct wf_keys *k)
{
    if (k->info)
        munmap(k->info, INFO_BYTES);
    k->info = NULL;
}

// Indexes that were never used go first: a dead key is found by its index for as long as possible,
// and can be explained.
static uint32_t take_index(struct wf_keys *k)
{
    if (k->top < WF_KEYTAB_SIZE)
        return k->top++;
    uint32_t index = k->free_head;
    if (index) {
        k->free_head = k->info[index].next_free;
        if (!k->free_head)
            k->free_tail = 0;
    }
    return index;
}

// Short tables are friendlier to caches and to peers: start to reuse once this many were used.
#define REUSE_AFTER 4096u

int wf_key_alloc(struct wf_keys *k, enum wf_key_kind kind, uint32_t pd, uint32_t *index)
{
    uint32_t i = 0;
    if (k->free_head && k->top - k->live > REUSE_AFTER) {
        i = k->free_head;
        k->free_head = k->info[i].next_free;
        if (!k->free_head)
            k->free_tail = 0;
    } else {
        i = take_index(k);
    }
    if (!i)
        return -ENOMEM;
    struct wf_key_info *info = &k->info[i];
    info->kind = kind;
    info->pd = pd;
    info->parent = info->bound = info->next_free = 0;
    k->live++;
    *index = i;
    return 0;
}

const struct wf_segments *wf_key_segments(const struct wf_keys *k, uint32_t index)
{
    const struct wf_key_info *info = &k->info[index];
    return info->parent ? k->info[info->parent].segments : info->segments;
}

uint32_t wf_key_publish(struct wf_keys *k, uint32_t index, const struct wf_key_entry *fields,
                        int tag)
{
    struct wf_key_info *info = &k->info[index];
    struct wf_key_entry *e = &k->entries[index];
    info->tag = tag >= 0 ? (uint8_t)tag : (uint8_t)(info->tag + 1);
    uint32_t key = index << 8 | info->tag;
    e->access = fields->access;
    e->pd = fields->pd;
    e->qpn = fields->qpn;
    e->iova = fields->iova;
    e->addr = fields->addr;
    e->len = fields->len;
    e->flags = fields->flags;
    atomic_store_explicit(&e->key, key, memory_order_release);
    return key;
}

void wf_key_revoke(struct wf_keys *k, uint32_t index)
{
    struct wf_key_entry *e = &k->entries[index];
    struct wf_key_info *info = &k->info[index];
    uint32_t key = atomic_load_explicit(&e->key, memory_order_relaxed);
    if (!key)
        return;
    info->last_key = key;
    info->last_addr = e->iova;
    info->last_len = e->len;
    info->last_ns = k->now ? *k->now : 0;
    info->last_site = wf_explaining() ? wf_call_site() : NULL;
    atomic_store_explicit(&e->key, 0, memory_order_seq_cst);
}

void wf_key_free(struct wf_keys *k, uint32_t index)
{
    wf_key_revoke(k, index);
    struct wf_key_info *info = &k->info[index];
    info->kind = WF_KEY_NONE;
    free(info->segments);
    info->segments = NULL;
    info->next_free = 0;
    if (k->free_tail)
        k->info[k->free_tail].next_free = index;
    else
        k->free_head = index;
    k->free_tail = index;
    k->live--;
}
