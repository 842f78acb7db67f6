// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/memhndl.h"

#define PAGES_MASK   0xfffffffull
#define ADDRESS_MASK 0xfffffffffffffull

// Reflected polynomial 0x8c over the first 15 bytes, low byte first, starting from 0.
static uint8_t crc8(const gni_mem_handle_t *h)
{
    uint8_t crc = 0;
    for (unsigned i = 0; i < 15; i++) {
        crc ^= (uint8_t)((i < 8 ? h->qword1 : h->qword2) >> (i % 8 * 8));
        for (unsigned b = 0; b < 8; b++)
            crc = crc & 1 ? (uint8_t)(crc >> 1 ^ 0x8c) : (uint8_t)(crc >> 1);
    }
    return crc;
}

gni_mem_handle_t wf_gni_mh_pack(const struct wf_gni_mh *m)
{
    bool vmdh = m->flags & WF_GNI_MH_VMDH;
    uint64_t address = vmdh ? 0 : m->address, number = vmdh ? m->region - 1 : m->region;
    gni_mem_handle_t h = {
        .qword1 = (address >> 12 & ADDRESS_MASK) | number << 52,
        .qword2 =
            (m->pages & PAGES_MASK) | (uint64_t)(m->shift & 0x3f) << 28 | (uint64_t)m->flags << 34,
    };
    h.qword2 |= (uint64_t)crc8(&h) << 56;
    return h;
}

struct wf_gni_mh wf_gni_mh_unpack(const gni_mem_handle_t *h)
{
    return (struct wf_gni_mh){
        .address = (h->qword1 & ADDRESS_MASK) << 12,
        .region = wf_gni_mh_region(h),
        .pages = (uint32_t)(h->qword2 & PAGES_MASK),
        .shift = (uint8_t)(h->qword2 >> 28 & 0x3f),
        .flags = (uint8_t)(h->qword2 >> 34),
    };
}

bool wf_gni_mh_crc_ok(const gni_mem_handle_t *h)
{
    return h->qword2 >> 56 == crc8(h);
}

gni_return_t GNI_MemHndlQueryAttr(gni_mem_handle_t *mem_hndl, gni_mem_handle_attr_t attr,
                                  int *yesno)
{
    // Flag bit of each attribute, in the order of the enumeration.
    if (!mem_hndl || !yesno || attr < GNI_MEMHNDL_ATTR_READONLY || attr > GNI_MEMHNDL_ATTR_CLONE)
        return GNI_RC_INVALID_PARAM;
    struct wf_gni_mh m = wf_gni_mh_unpack(mem_hndl);
    if (!m.region || !wf_gni_mh_crc_ok(mem_hndl))
        return GNI_RC_INVALID_PARAM;
    *yesno = m.flags >> (attr - GNI_MEMHNDL_ATTR_READONLY) & 1;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_RebuildMemHndl(gni_mem_handle_t *src_mem_hndl, uint32_t vmdh_index,
                                gni_mem_handle_t *dst_mem_hndl)
{
    if (!src_mem_hndl || !dst_mem_hndl || vmdh_index >= WF_GNI_REGIONS - 1)
        return GNI_RC_INVALID_PARAM;
    struct wf_gni_mh m = wf_gni_mh_unpack(src_mem_hndl);
    if (!m.region || !(m.flags & WF_GNI_MH_VMDH) || !wf_gni_mh_crc_ok(src_mem_hndl))
        return GNI_RC_INVALID_PARAM;
    if (!m.pages) // reserved, never updated
        return GNI_RC_INVALID_STATE;
    m.region = vmdh_index + 1; // vmdh blocks start at region 1
    *dst_mem_hndl = wf_gni_mh_pack(&m);
    return GNI_RC_SUCCESS;
}
