// SPDX-License-Identifier: BSD-2-Clause
// The 16 bytes of a memory handle, in the form of the older hardware, which libfabric takes apart
// and puts together again:
//   qword1  51..0 address >> 12, 63..52 region number; vmdh: 0, index in the block
//   qword2  27..0 pages, 33..28 page shift, 41..34 flags, 55..42 zero, 63..56 CRC-8
// A handle put together by a client has all ones for pages and no valid CRC: the region number
// decides, so neither is insisted on.
#ifndef WF_UGNI_MEMHNDL_H
#define WF_UGNI_MEMHNDL_H

#include <gni_pub.h>
#include <stdbool.h>

#define WF_GNI_REGIONS 4096u

enum wf_gni_mh_flags {
    WF_GNI_MH_READ_ONLY = 0x01,
    WF_GNI_MH_VMDH = 0x02,
    WF_GNI_MH_MRT = 0x04,
    WF_GNI_MH_GART = 0x08,
    WF_GNI_MH_IOMMU = 0x10,
    WF_GNI_MH_PCI_IOMMU = 0x20,
    WF_GNI_MH_CLONE = 0x40,
    WF_GNI_MH_NEWER = 0x80, // the other format: never made here
};

struct wf_gni_mh {
    uint64_t address; // page aligned
    uint32_t region;  // below WF_GNI_REGIONS; 0 is none
    uint32_t pages;
    uint8_t shift;
    uint8_t flags;
};

gni_mem_handle_t wf_gni_mh_pack(const struct wf_gni_mh *m);
struct wf_gni_mh wf_gni_mh_unpack(const gni_mem_handle_t *h);
bool wf_gni_mh_crc_ok(const gni_mem_handle_t *h);

// What an address means with a handle: so many bytes from the start of its region. Whole handles
// carry the owner's address; those of segments, and those that a client made from a region number
// alone, have address 0 and are used with offsets.
static inline uint64_t wf_gni_mh_offset(const gni_mem_handle_t *h, uint64_t address)
{
    return address - (h->qword1 << 12);
}

// A vmdh handle holds its index in the block and no address.
static inline uint32_t wf_gni_mh_region(const gni_mem_handle_t *h)
{
    uint32_t number = (uint32_t)(h->qword1 >> 52);
    return h->qword2 >> 34 & WF_GNI_MH_VMDH ? (number + 1) % WF_GNI_REGIONS : number;
}

#endif
