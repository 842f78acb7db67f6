// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/target.h"
#include "ugni/amo.h"
#include "ugni/state.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

// With vmdh handles, which hold no address, clients use offsets and addresses alike.
static uint64_t offset_in(const struct wf_gni_region *r, uint64_t at)
{
    return r->flags & WF_GNI_MH_VMDH && at >= r->addr ? at - r->addr : at;
}

int wf_gni_target_check(uint8_t ptag, uint32_t region, uint64_t at, uint64_t len, bool write)
{
    const struct wf_gni_region *r = region < WF_GNI_REGIONS ? &wf_gni.region[region] : NULL;
    if (!r || !r->live || r->reserved)
        return WF_GNI_ST_MDD;
    if (r->ptag != ptag || (write && r->flags & WF_GNI_MH_READ_ONLY))
        return WF_GNI_ST_PROTECTION;
    at = offset_in(r, at);
    if (len > r->len || at > r->len - len)
        return WF_GNI_ST_BOUNDS;
    return WF_GNI_ST_OK;
}

// The next piece of [*offset, *offset + *len) that is contiguous in memory; advances both.
static void *next_piece(const struct wf_gni_region *r, uint64_t *offset, uint64_t *len, uint64_t *n)
{
    uint64_t at = offset_in(r, *offset), left = *len;
    void *p = (void *)(uintptr_t)(r->addr + at);
    *n = left;
    if (r->n_segs) {
        uint32_t i = 0;
        while (i + 1 < r->n_segs && at >= r->segs[i].length)
            at -= r->segs[i++].length;
        p = (void *)(uintptr_t)(r->segs[i].address + at);
        if (left > r->segs[i].length - at)
            *n = r->segs[i].length - at;
    }
    *offset += *n;
    *len -= *n;
    return p;
}

void *wf_gni_target_piece(uint32_t region, uint64_t *at, uint64_t *len, uint64_t *n)
{
    return next_piece(&wf_gni.region[region], at, len, n);
}

void *wf_gni_target_pointer(uint32_t region, uint64_t at, uint64_t len)
{
    uint64_t n;
    void *p = next_piece(&wf_gni.region[region], &at, &len, &n);
    return len ? NULL : p;
}

// Through the kernel, which answers EFAULT where a plain copy would kill the process.
static bool copy_piece(void *mem, void *buf, uint64_t n, bool write)
{
    while (n) {
        size_t part = n < (1u << 30) ? (size_t)n : 1u << 30;
        struct iovec m = {mem, part}, b = {buf, part};
        ssize_t done = write ? process_vm_writev(getpid(), &b, 1, &m, 1, 0)
                             : process_vm_readv(getpid(), &b, 1, &m, 1, 0);
        if (done < 0 && errno != EFAULT) { // not allowed here: trust the program
            memcpy(write ? mem : buf, write ? buf : mem, part);
            done = (ssize_t)part;
        }
        if (done <= 0)
            return false;
        mem = (char *)mem + done;
        buf = (char *)buf + done;
        n -= (uint64_t)done;
    }
    return true;
}

int wf_gni_target_copy(uint8_t ptag, uint32_t region, uint64_t at, void *buf, uint64_t len,
                       bool write)
{
    int st = wf_gni_target_check(ptag, region, at, len, write);
    while (!st && len) {
        uint64_t n;
        void *p = next_piece(&wf_gni.region[region], &at, &len, &n);
        if (!copy_piece(p, buf, n, write))
            st = WF_GNI_ST_TRANSLATION;
        buf = (char *)buf + n;
    }
    return st;
}

// A word that is not mapped yields a status, not a fault. Asking the kernel costs more than the AMO
// itself, so the page that passed last is not asked about again.
static bool mapped(struct wf_gni_region *r, void *word, size_t width)
{
    uint64_t probe, page = (uintptr_t)word & ~4095ull;
    if (page == r->amo_page)
        return true;
    if (!copy_piece(word, &probe, width, false))
        return false;
    r->amo_page = page;
    return true;
}

int wf_gni_target_amo(uint8_t ptag, uint32_t region, uint64_t at, uint32_t cmd, uint64_t words,
                      const uint64_t operand[2], void *old)
{
    struct wf_gni_amo amo;
    if (!wf_gni_amo_decode(cmd, &amo) || at % amo.width || words > UINT32_MAX)
        return WF_GNI_ST_INVALID_COMMAND;
    uint64_t len = words * amo.width;
    int st = wf_gni_target_check(ptag, region, at, len, true);
    while (!st && len) {
        uint64_t n;
        char *p = next_piece(&wf_gni.region[region], &at, &len, &n);
        for (uint64_t i = 0; i < n; i += wf_gni_amo_stride(&amo)) {
            if (!mapped(&wf_gni.region[region], p + i, amo.width))
                return WF_GNI_ST_TRANSLATION;
            uint64_t was = wf_gni_amo_apply(&amo, p + i, operand[0], operand[1]);
            if (old) {
                memcpy(old, &was, amo.width);
                old = (char *)old + amo.width;
            }
        }
    }
    return st;
}

static struct gni_cq *region_cq(uint32_t region)
{
    return region < WF_GNI_REGIONS && wf_gni.region[region].live ? wf_gni.region[region].cq : NULL;
}

int wf_gni_target_cq_write(uint8_t ptag, uint32_t region, uint64_t value)
{
    if (region >= WF_GNI_REGIONS || !wf_gni.region[region].live)
        return WF_GNI_ST_MDD;
    if (wf_gni.region[region].ptag != ptag)
        return WF_GNI_ST_PROTECTION;
    struct gni_cq *cq = region_cq(region);
    if (!cq)
        return WF_GNI_ST_INVALID_COMMAND;
    wf_gni_cq_push(cq, wf_gni_entry_cq_write(value));
    return WF_GNI_ST_OK;
}

void wf_gni_target_event(uint32_t region, uint32_t event)
{
    struct gni_cq *cq = region_cq(region);
    if (cq)
        wf_gni_cq_push(cq, wf_gni_entry_remote(event));
}
