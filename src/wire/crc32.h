// SPDX-License-Identifier: BSD-2-Clause
// CRC-32 of Ethernet and zlib: start with 0, feed pieces, the result of one call is the next one's
// `crc`.
#ifndef WF_WIRE_CRC32_H
#define WF_WIRE_CRC32_H

#include <stddef.h>
#include <stdint.h>
#ifdef WF_HAVE_ISAL
#include <isa-l/crc.h>
#endif

#define WF_CRC32_POLY 0xedb88320u

// Plain C, for builds without ISA-L; some thirty times slower.
uint32_t wf_crc32_portable(uint32_t crc, const void *buf, size_t len);

static inline uint32_t wf_crc32(uint32_t crc, const void *buf, size_t len)
{
#ifdef WF_HAVE_ISAL
    return crc32_gzip_refl(crc, buf, len);
#else
    return wf_crc32_portable(crc, buf, len);
#endif
}

#endif
