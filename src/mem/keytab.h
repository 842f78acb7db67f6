// SPDX-License-Identifier: BSD-2-Clause
// The table of memory keys of one process. It lies in the process's shared region so that peers on
// the same host can check an R_Key and execute one-sided operations themselves. Everything here is
// read by other processes: the owner writes an entry's fields first and `key` last (release), and
// clears `key` first when the entry dies.
#ifndef WF_MEM_KEYTAB_H
#define WF_MEM_KEYTAB_H

#include <stdatomic.h>
#include <stdint.h>

// A key is index << 8 | tag. The tag changes whenever an index is used again, so a stale key is
// told from a live one. Index 0 is never used: key 0 is no key.
#define WF_KEY_INDEX(key) ((key) >> 8)
#define WF_KEYTAB_BITS    17
#define WF_KEYTAB_SIZE    (1u << WF_KEYTAB_BITS)

// The region is not one piece of memory: only its owner can reach it (mem/segments.h).
#define WF_KEY_SEGMENTED 1u

struct wf_key_entry {
    _Atomic uint32_t key; // 0: free. Released after the fields below
    uint32_t access;      // IBV_ACCESS_*
    uint32_t pd;          // number of the protection domain
    uint32_t qpn;         // window type 2: the only QP that may use it; else 0
    uint64_t iova;        // address that requests name
    uint64_t addr;        // where it is in the owner's address space
    uint64_t len;
    uint32_t flags; // WF_KEY_SEGMENTED
    uint32_t reserved0;
    uint64_t reserved[2];
};
_Static_assert(sizeof(struct wf_key_entry) == 64, "one entry a cache line");

#endif
