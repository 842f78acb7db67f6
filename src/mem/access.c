// SPDX-License-Identifier: BSD-2-Clause
#include "mem/keys.h"
#include "mem/segments.h"

#include "base/record.h"

#include <inttypes.h>
#include <stdio.h>

static bool in_range(const struct wf_key_entry *e, uint64_t addr, uint64_t len)
{
    return addr >= e->iova && len <= e->len && addr - e->iova <= e->len - len;
}

enum wf_access wf_access_check(struct wf_keys *k, const struct wf_access_req *req, void **host)
{
    uint32_t index = WF_KEY_INDEX(req->key);
    if (!index || index >= WF_KEYTAB_SIZE)
        return WF_ACCESS_UNKNOWN;
    const struct wf_key_entry *e = &k->entries[index];
    const struct wf_key_info *info = &k->info[index];
    if (wf_key_of(k, index) != req->key)
        return WF_ACCESS_UNKNOWN;
    // IBA 10.6.7.2: a window's key is not a local key.
    if (!req->qpn && (info->kind == WF_KEY_MW1 || info->kind == WF_KEY_MW2))
        return WF_ACCESS_UNKNOWN;
    if (e->pd != req->pd)
        return WF_ACCESS_PD;
    if (e->qpn && e->qpn != req->qpn)
        return WF_ACCESS_PD;
    if ((e->access & req->need) != req->need)
        return WF_ACCESS_RIGHT;
    if (info->kind == WF_KEY_NULL_MR) {
        *host = NULL;
        return WF_ACCESS_OK;
    }
    if (!in_range(e, req->addr, req->len))
        return WF_ACCESS_RANGE;
    uint64_t at = e->addr + (req->addr - e->iova);
    *host = (void *)(uintptr_t)at;
    if (wf_key_in_pieces(k, req->key) && req->len)
        *host = wf_segments_address(wf_key_segments(k, index), at, 1);
    return WF_ACCESS_OK;
}

static const char *right_name(unsigned missing)
{
    if (missing & IBV_ACCESS_LOCAL_WRITE)
        return "IBV_ACCESS_LOCAL_WRITE";
    if (missing & IBV_ACCESS_REMOTE_WRITE)
        return "IBV_ACCESS_REMOTE_WRITE";
    if (missing & IBV_ACCESS_REMOTE_READ)
        return "IBV_ACCESS_REMOTE_READ";
    if (missing & IBV_ACCESS_REMOTE_ATOMIC)
        return "IBV_ACCESS_REMOTE_ATOMIC";
    return "a right";
}

static void describe_dead(struct wf_keys *k, const struct wf_access_req *req,
                          const struct wf_key_info *info, char *buf, size_t len)
{
    char when[40] = "", where[160] = "", site[120];
    if (k->now && *k->now >= info->last_ns)
        snprintf(when, sizeof(when), " %" PRIu64 " ms ago", (*k->now - info->last_ns) / 1000000);
    if (info->last_site)
        snprintf(where, sizeof(where), " by %s",
                 wf_call_site_name(info->last_site, site, sizeof(site)));
    snprintf(buf, len, "key 0x%08x [0x%" PRIx64 ", +%" PRIu64 ") was deregistered%s%s", req->key,
             info->last_addr, info->last_len, when, where);
}

// A live region around the address: most likely the one that was meant.
static uint32_t region_around(const struct wf_keys *k, const struct wf_access_req *req)
{
    for (uint32_t i = 1; i < k->top; i++)
        if (wf_key_of(k, i) && k->info[i].kind == WF_KEY_MR &&
            in_range(&k->entries[i], req->addr, req->len))
            return i;
    return 0;
}

static void describe_unknown(struct wf_keys *k, const struct wf_access_req *req, char *buf,
                             size_t len)
{
    uint32_t index = WF_KEY_INDEX(req->key);
    const struct wf_key_info *info = wf_key_info(k, index);
    uint32_t now = index && index < k->top ? wf_key_of(k, index) : 0;
    uint32_t near;
    if (info && index && info->last_key == req->key)
        describe_dead(k, req, info, buf, len);
    else if (req->key && (near = region_around(k, req)))
        snprintf(buf, len,
                 "key 0x%08x never existed; the address lies in key 0x%08x [0x%" PRIx64
                 ", +%" PRIu64 ")",
                 req->key, wf_key_of(k, near), k->entries[near].iova, k->entries[near].len);
    else if (now)
        snprintf(buf, len, "key 0x%08x never existed; 0x%08x at the same index is live", req->key,
                 now);
    else
        snprintf(buf, len, "key 0x%08x never existed", req->key);
}

void wf_access_describe(struct wf_keys *k, const struct wf_access_req *req, enum wf_access why,
                        char *buf, size_t len)
{
    uint32_t index = WF_KEY_INDEX(req->key);
    const struct wf_key_entry *e = index < WF_KEYTAB_SIZE ? &k->entries[index] : NULL;
    switch (why) {
    case WF_ACCESS_OK:
        snprintf(buf, len, "key 0x%08x is good", req->key);
        return;
    case WF_ACCESS_UNKNOWN:
        describe_unknown(k, req, buf, len);
        return;
    case WF_ACCESS_PD:
        snprintf(buf, len, "key 0x%08x is of PD %u%s, the QP of PD %u", req->key, e->pd,
                 e->qpn ? " and bound to one QP" : "", req->pd);
        return;
    case WF_ACCESS_RANGE:
        snprintf(buf, len,
                 "[0x%" PRIx64 ", +%" PRIu64 ") is not inside key 0x%08x [0x%" PRIx64 ", +%" PRIu64
                 "): %" PRIu64 " bytes %s",
                 req->addr, req->len, req->key, e->iova, e->len,
                 req->addr < e->iova ? e->iova - req->addr
                                     : req->addr + req->len - (e->iova + e->len),
                 req->addr < e->iova ? "before its start" : "past its end");
        return;
    case WF_ACCESS_RIGHT:
        snprintf(buf, len, "key 0x%08x lacks %s", req->key, right_name(req->need & ~e->access));
        return;
    }
}
