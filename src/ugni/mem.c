// SPDX-License-Identifier: BSD-2-Clause
// Memory registration.
#include "ugni/job.h"
#include "ugni/peer.h"
#include "ugni/service.h"
#include "ugni/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE      4096ull
#define KNOWN_MEM (0x1fffu | GNI_MEM_PRIV_MASK)
#define MAX_SHIFT 30u

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

struct request {
    struct gni_nic *nic;
    gni_mem_segment_t *segs;
    uint32_t n_segs; // 0: one piece, named by its addresses
    uint64_t addr, len;
    struct gni_cq *cq;
    uint32_t flags, vmdh;
};

static uint64_t page_down(uint64_t a)
{
    return a & ~(PAGE - 1);
}

static uint64_t page_up(uint64_t a)
{
    return page_down(a + PAGE - 1);
}

// Its first and last page decide: reading and, unless read-only, writing must be possible. Kernels
// before 5.14 cannot say and everything passes.
static gni_return_t probe(uint64_t addr, uint64_t len, bool read_only)
{
    uint64_t ends[2] = {page_down(addr), page_down(addr + len - 1)};
    for (int i = 0; i < 2; i++) {
        void *p = (void *)(uintptr_t)ends[i];
        int unread = madvise(p, PAGE, MADV_POPULATE_READ) ? errno : 0;
        if (unread == ENOMEM || unread == EFAULT)
            return wf_gni_refuse(GNI_RC_INVALID_PARAM, "MemRegister: 0x%llx is not mapped",
                                 (unsigned long long)ends[i]);
        // The kernel says EINVAL to a missing permission, and also to advice it does not know.
        if (!read_only && !unread && madvise(p, PAGE, MADV_POPULATE_WRITE))
            return wf_gni_refuse(GNI_RC_PERMISSION_ERROR, "MemRegister: 0x%llx cannot be written",
                                 (unsigned long long)ends[i]);
    }
    return GNI_RC_SUCCESS;
}

static gni_return_t probe_all(const struct request *q)
{
    bool read_only = q->flags & GNI_MEM_READ_ONLY;
    if (q->flags & GNI_MEM_RESERVE_REGION)
        return GNI_RC_SUCCESS;
    if (!q->n_segs)
        return probe(q->addr, q->len, read_only);
    for (uint32_t i = 0; i < q->n_segs; i++) {
        gni_return_t rc = probe(q->segs[i].address, q->segs[i].length, read_only);
        if (rc != GNI_RC_SUCCESS)
            return rc;
    }
    return GNI_RC_SUCCESS;
}

static gni_return_t check(struct request *q)
{
    uint32_t both = GNI_MEM_MDD_SHARED | GNI_MEM_MDD_DEDICATED;
    bool ok = !(q->flags & ~KNOWN_MEM) && (q->flags & both) != both;
    if (GNI_MEM_IS_EXTERNAL(q->flags)) // no GPU memory here
        ok = false;
    for (uint32_t i = 0; i < q->n_segs; i++) {
        const gni_mem_segment_t *s = &q->segs[i];
        bool last = i + 1 == q->n_segs;
        ok = ok && s->length && s->address + s->length > s->address && s->address % PAGE == 0 &&
             (last || s->length % PAGE == 0);
        q->len += s->length;
    }
    if (!ok || !q->len || q->addr + q->len < q->addr || (q->addr + q->len) >> 57)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM,
                             "MemRegister: address 0x%llx, length %llu, flags 0x%x",
                             (unsigned long long)q->addr, (unsigned long long)q->len, q->flags);
    if (q->flags & GNI_MEM_USE_VMDH &&
        (!q->nic->mdd_entries || (q->vmdh != UINT32_MAX && q->vmdh >= q->nic->mdd_entries)))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "MemRegister: vmdh index %d of %u", (int)q->vmdh,
                             q->nic->mdd_entries);
    return probe_all(q);
}

static bool is_free(uint32_t n)
{
    return !wf_gni.region[n].live && !wf_gni.region[n].held;
}

// vmdh blocks lie at the low end, so that the numbers of one layout agree between processes.
static uint32_t find_vmdh(const struct request *q)
{
    uint32_t first = q->vmdh == UINT32_MAX ? 0 : q->vmdh;
    uint32_t end = q->vmdh == UINT32_MAX ? q->nic->mdd_entries : q->vmdh + 1;
    for (uint32_t i = first; i < end; i++)
        if (is_free(1 + i))
            return 1 + i;
    return 0;
}

// Numbers go round, so that one is not used again soon.
static uint32_t find_plain(void)
{
    uint32_t low = 1 + wf_gni_job_vmdh_entries();
    for (uint32_t i = 0; i < WF_GNI_REGIONS; i++) {
        uint32_t n = (wf_gni.next_region + i) % WF_GNI_REGIONS;
        if (n >= low && is_free(n)) {
            wf_gni.next_region = n + 1;
            return n;
        }
    }
    return 0;
}

static uint8_t handle_flags(uint32_t flags)
{
    return (uint8_t)((flags & GNI_MEM_READ_ONLY ? WF_GNI_MH_READ_ONLY : 0) |
                     (flags & GNI_MEM_USE_VMDH ? WF_GNI_MH_VMDH : 0) |
                     (flags & GNI_MEM_USE_GART ? WF_GNI_MH_GART : 0) |
                     (flags & GNI_MEM_MDD_CLONE ? WF_GNI_MH_CLONE : 0));
}

static gni_mem_handle_t make_handle(uint32_t number, const struct wf_gni_region *r)
{
    unsigned shift = 12;
    uint64_t pages = r->len >> shift;
    while (pages >> 28 && shift < MAX_SHIFT) {
        shift++;
        pages = (r->len + (1ull << shift) - 1) >> shift;
    }
    struct wf_gni_mh m = {.address = r->addr,
                          .region = number,
                          .pages = r->reserved ? 0 : (uint32_t)pages,
                          .shift = (uint8_t)shift,
                          .flags = r->flags};
    return wf_gni_mh_pack(&m);
}

static gni_return_t fill(uint32_t number, const struct request *q, gni_mem_handle_t *out)
{
    struct wf_gni_region *r = &wf_gni.region[number];
    gni_mem_segment_t *segs = NULL;
    if (q->n_segs) {
        segs = malloc(q->n_segs * sizeof(*segs));
        if (!segs)
            return GNI_RC_ERROR_NOMEM;
        memcpy(segs, q->segs, q->n_segs * sizeof(*segs));
    }
    *r = (struct wf_gni_region){
        .live = true,
        .nic = q->nic,
        .cq = q->cq,
        .ptag = q->nic->cdm->ptag,
        .flags = handle_flags(q->flags),
        .addr = q->n_segs ? 0 : page_down(q->addr),
        .len = q->n_segs ? q->len : page_up(q->addr + q->len) - page_down(q->addr),
        .segs = segs,
        .n_segs = q->n_segs,
        .reserved = q->flags & GNI_MEM_RESERVE_REGION && !(q->flags & GNI_MEM_UPDATE_REGION),
    };
    r->handle = make_handle(number, r);
    if (r->cq) {
        r->cq->users++;
        r->cq->use = WF_GNI_CQ_DESTINATION;
    }
    q->nic->regions++;
    wf_gni.live_regions++;
    wf_gni_shm_region(number);
    *out = r->handle;
    return GNI_RC_SUCCESS;
}

static struct wf_gni_region *find_handle(const gni_mem_handle_t *h, uint32_t *number)
{
    *number = wf_gni_mh_region(h);
    struct wf_gni_region *r = &wf_gni.region[*number];
    bool same = r->live && !memcmp(&r->handle, h, sizeof(*h));
    return same ? r : NULL;
}

// GNI_MEM_UPDATE_REGION on an existing handle: the region goes live, or grows.
static gni_return_t update(const struct request *q, gni_mem_handle_t *h)
{
    uint32_t number;
    struct wf_gni_region *r = find_handle(h, &number);
    if (!r || r->nic != q->nic || r->n_segs || q->n_segs)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "MemRegister: update of no reserved region");
    uint64_t low = page_down(q->addr), high = page_up(q->addr + q->len);
    if (r->reserved && (low < r->addr || high > r->addr + r->len))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "MemRegister: update outside what is reserved");
    if (high > r->addr + r->len)
        r->len = high - r->addr;
    if (low < r->addr) {
        r->len += r->addr - low;
        r->addr = low;
    }
    r->reserved = false;
    r->handle = make_handle(number, r);
    wf_gni_shm_region(number);
    *h = r->handle;
    return GNI_RC_SUCCESS;
}

static gni_return_t register_it(struct request *q, gni_mem_handle_t *out)
{
    gni_return_t rc = check(q);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    bool fresh = !(q->flags & GNI_MEM_UPDATE_REGION) || q->flags & GNI_MEM_RESERVE_REGION;
    if (!fresh)
        return update(q, out);
    uint32_t number = q->flags & GNI_MEM_USE_VMDH ? find_vmdh(q) : find_plain();
    if (!number || !wf_gni_job_may_register(q->nic->cdm->ptag))
        return wf_gni_fail(q->nic, GNI_RC_ERROR_RESOURCE, "MemRegister",
                           q->flags & GNI_MEM_USE_VMDH ? "the vmdh entry is in use"
                                                       : "%u regions are registered",
                           wf_gni.live_regions);
    return fill(number, q, out);
}

static gni_return_t start(gni_nic_handle_t nic_hndl, gni_cq_handle_t dst_cq_hndl, struct request *q,
                          gni_mem_handle_t *mem_hndl)
{
    q->nic = wf_gni_nic(nic_hndl);
    q->cq = wf_gni_cq(dst_cq_hndl);
    if (!q->nic || !mem_hndl || (dst_cq_hndl && (!q->cq || q->cq->nic != q->nic)) ||
        (q->cq && q->cq->use == WF_GNI_CQ_SOURCE))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "MemRegister: nic %p, queue %p%s",
                             (void *)nic_hndl, (void *)dst_cq_hndl,
                             q->cq ? " of endpoints or of another NIC" : "");
    return register_it(q, mem_hndl);
}

gni_return_t GNI_MemRegister(gni_nic_handle_t nic_hndl, uint64_t address, uint64_t length,
                             gni_cq_handle_t dst_cq_hndl, uint32_t flags, uint32_t vmdh_index,
                             gni_mem_handle_t *mem_hndl)
{
    struct request q = {.addr = address, .len = length, .flags = flags, .vmdh = vmdh_index};
    wf_gni_lock();
    gni_return_t rc = start(nic_hndl, dst_cq_hndl, &q, mem_hndl);
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_MemRegisterSegments(gni_nic_handle_t nic_hndl, gni_mem_segment_t *mem_segments,
                                     uint32_t segments_cnt, gni_cq_handle_t dst_cq_hndl,
                                     uint32_t flags, uint32_t vmdh_index,
                                     gni_mem_handle_t *mem_hndl)
{
    struct request q = {
        .segs = mem_segments, .n_segs = segments_cnt, .flags = flags, .vmdh = vmdh_index};
    if (!mem_segments || !segments_cnt)
        return GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    gni_return_t rc = start(nic_hndl, dst_cq_hndl, &q, mem_hndl);
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_SetMddResources(gni_nic_handle_t nic_hndl, uint32_t num_entries)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    if (!nic || !num_entries || num_entries >= WF_GNI_REGIONS)
        rc = wf_gni_refuse(GNI_RC_INVALID_PARAM, "SetMddResources: %u entries", num_entries);
    else if (nic->mdd_entries)
        rc = wf_gni_fail(nic, GNI_RC_INVALID_STATE, "SetMddResources", "the block has %u entries",
                         nic->mdd_entries);
    else
        nic->mdd_entries = num_entries;
    wf_gni_unlock();
    return rc;
}

static void retire(uint32_t number, uint64_t hold_ms)
{
    struct wf_gni_region *r = &wf_gni.region[number];
    r->live = false;
    wf_gni_shm_region(number);
    if (r->cq && --r->cq->users == 0)
        r->cq->use = WF_GNI_CQ_UNUSED;
    r->cq = NULL;
    free(r->segs);
    r->segs = NULL;
    r->n_segs = 0;
    r->nic->regions--;
    wf_gni.live_regions--;
    r->held = hold_ms != 0;
    r->held_until = wf_gni_deadline(hold_ms, WF_GNI_INFINITE);
    if (r->held)
        wf_gni_service_at(WF_GNI_TIMER_HOLD, r->held_until);
}

void wf_gni_region_release(uint32_t number)
{
    if (wf_gni.region[number].live)
        retire(number, 0);
    wf_gni.region[number].held = false;
}

void wf_gni_hold_timer(uint64_t now)
{
    for (uint32_t i = 1; i < WF_GNI_REGIONS; i++) {
        struct wf_gni_region *r = &wf_gni.region[i];
        if (r->held && r->held_until <= now)
            r->held = false;
        else if (r->held)
            wf_gni_service_at(WF_GNI_TIMER_HOLD, r->held_until);
    }
}

static gni_return_t deregister(gni_nic_handle_t nic_hndl, const gni_mem_handle_t *h, uint64_t hold)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    uint32_t number = 0;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    struct wf_gni_region *r = nic && h ? find_handle(h, &number) : NULL;
    if (r && r->nic == nic) {
        wf_gni_progress(); // what arrived for it is done first
        retire(number, hold);
        rc = GNI_RC_SUCCESS;
    } else {
        wf_gni_refuse(rc, "MemDeregister: %s",
                      !nic ? "no NIC"
                      : !r ? "no such region"
                           : "another NIC's region");
    }
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_MemDeregister(gni_nic_handle_t nic_hndl, gni_mem_handle_t *mem_hndl)
{
    return deregister(nic_hndl, mem_hndl, 0);
}

gni_return_t gni_mem_deregister(gni_nic_handle_t nic_hndl, gni_mem_handle_t *mem_hndl,
                                int hold_timeout)
{
    return deregister(nic_hndl, mem_hndl, hold_timeout > 0 ? (uint64_t)hold_timeout : 0);
}

gni_return_t gni_mem_mdd_release(gni_nic_handle_t nic_hndl, gni_mem_handle_t *mem_hndl)
{
    gni_return_t rc = GNI_RC_NO_MATCH;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    struct wf_gni_region *r = nic && mem_hndl ? &wf_gni.region[wf_gni_mh_region(mem_hndl)] : NULL;
    if (r && r->held && r->nic == nic && !memcmp(&r->handle, mem_hndl, sizeof(*mem_hndl))) {
        r->held = false;
        rc = GNI_RC_SUCCESS;
    }
    wf_gni_unlock();
    return rc;
}

static gni_return_t query_next(struct gni_nic *nic, gni_mem_handle_t *h, uint64_t *address,
                               uint64_t *length)
{
    uint32_t number = 0;
    if ((h->qword1 || h->qword2) && (!find_handle(h, &number) || wf_gni.region[number].nic != nic))
        return wf_gni_refuse(GNI_RC_INVALID_STATE, "MemQueryHndls: the handle is none of the NIC");
    for (uint32_t i = number + 1; i < WF_GNI_REGIONS; i++) {
        const struct wf_gni_region *r = &wf_gni.region[i];
        if (!r->live || r->nic != nic)
            continue;
        *h = r->handle;
        *address = r->n_segs ? r->segs[0].address : r->addr;
        *length = r->len;
        return GNI_RC_SUCCESS;
    }
    return GNI_RC_NO_MATCH;
}

gni_return_t GNI_MemQueryHndls(gni_nic_handle_t nic_hndl, int fd, gni_mem_handle_t *mem_hndl,
                               uint64_t *address, uint64_t *length)
{
    if (!mem_hndl || !address || !length)
        return GNI_RC_INVALID_PARAM;
    *address = *length = 0;
    // NICs have no descriptors here, so a valid `fd` cannot be named.
    if (!nic_hndl || fd != -1)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "MemQueryHndls: name a NIC, and -1 for fd");
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    gni_return_t rc = nic ? query_next(nic, mem_hndl, address, length) : GNI_RC_INVALID_PARAM;
    wf_gni_unlock();
    return rc;
}
