// SPDX-License-Identifier: BSD-2-Clause
// Owner's side of the key table: makes, finds, checks and revokes memory keys. One check serves
// local SGEs, remote requests and memory windows alike. The caller holds the engine's lock.
#ifndef WF_MEM_KEYS_H
#define WF_MEM_KEYS_H

#include "mem/keytab.h"
#include <infiniband/verbs.h>
#include <stdbool.h>

enum wf_key_kind { WF_KEY_NONE = 0, WF_KEY_MR, WF_KEY_MW1, WF_KEY_MW2, WF_KEY_NULL_MR };

// What the owner alone knows of an index.
struct wf_key_info {
    enum wf_key_kind kind;
    uint8_t tag;     // of the last key made here
    uint32_t parent; // windows: index of the region it is bound to, 0 when not bound
    uint32_t bound;  // regions: windows bound to it
    uint32_t pd;     // also while the key is not valid (an unbound window)
    uint32_t next_free;
    uint32_t last_key; // for explanations: the key that was here before
    uint64_t last_addr, last_len;
    uint64_t last_ns;             // when it went away
    const void *last_site;        // what deregistered it; NULL: not noted
    struct wf_segments *segments; // regions in pieces: owned; NULL for all others
};

struct wf_segments;

struct wf_keys {
    struct wf_key_entry *entries; // WF_KEYTAB_SIZE of them, seen by peers
    struct wf_key_info *info;
    uint32_t top;                  // indexes below were used at least once
    uint32_t free_head, free_tail; // first in, first out: an index rests before it is used again
    uint32_t live;
    const uint64_t *now; // the clock for last_ns, NULL: none
};

int wf_keys_init(struct wf_keys *k, struct wf_key_entry *entries);
void wf_keys_fini(struct wf_keys *k);

// Reserve an index; nothing is valid yet. -ENOMEM when the table is full.
int wf_key_alloc(struct wf_keys *k, enum wf_key_kind kind, uint32_t pd, uint32_t *index);
// Make the index valid under a fresh tag (or, with `tag` >= 0, under that one) and return the key.
uint32_t wf_key_publish(struct wf_keys *k, uint32_t index, const struct wf_key_entry *fields,
                        int tag);
// No new access succeeds from here on; the caller waits for copies of peers that are under way.
void wf_key_revoke(struct wf_keys *k, uint32_t index);
void wf_key_free(struct wf_keys *k, uint32_t index);

static inline struct wf_key_info *wf_key_info(struct wf_keys *k, uint32_t index)
{
    return index < WF_KEYTAB_SIZE ? &k->info[index] : NULL;
}

static inline uint32_t wf_key_of(const struct wf_keys *k, uint32_t index)
{
    return atomic_load_explicit(&k->entries[index].key, memory_order_relaxed);
}

enum wf_access {
    WF_ACCESS_OK = 0,
    WF_ACCESS_UNKNOWN,
    WF_ACCESS_PD,
    WF_ACCESS_RANGE,
    WF_ACCESS_RIGHT
};

// A request to touch memory under a key.
struct wf_access_req {
    uint32_t key;
    uint32_t pd;
    uint32_t qpn;  // the QP that uses a remote key (type 2 windows); 0 for a local key
    uint64_t addr; // as the request names it
    uint64_t len;
    unsigned need; // IBV_ACCESS_* that must all be granted; 0: local read
};

// Whether a key that wf_access_check() has admitted is of a region in pieces, or of a window on
// one.
static inline bool wf_key_in_pieces(const struct wf_keys *k, uint32_t key)
{
    return k->entries[WF_KEY_INDEX(key)].flags & WF_KEY_SEGMENTED;
}

// Of a region in pieces or a window on one; else NULL.
const struct wf_segments *wf_key_segments(const struct wf_keys *k, uint32_t index);

// On WF_ACCESS_OK, *host is where it lies in this process, NULL for a null region. Of a region in
// pieces it is where the first byte lies; wf_access_map() tells the rest.
enum wf_access wf_access_check(struct wf_keys *k, const struct wf_access_req *req, void **host);

// One clause that says what is wrong, with the nearest region: for reasons.
void wf_access_describe(struct wf_keys *k, const struct wf_access_req *req, enum wf_access why,
                        char *buf, size_t len);

#endif
