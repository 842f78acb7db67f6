// SPDX-License-Identifier: BSD-2-Clause
// Blocks of a pcapng file (draft-ietf-opsawg-pcapng), as far as a capture needs them: one section,
// one Ethernet interface with nanoseconds, packets with comments. Several processes add packets to
// one file, so a packet is one block that is written at once.
#ifndef WF_BASE_PCAPNG_H
#define WF_BASE_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

#define WF_PCAPNG_EXTRA 512u // bytes of a packet block beside the frame and its comment

// Section header and interface. Returns the length, at most 256.
size_t wf_pcapng_header(uint8_t *buf, size_t room);

// One packet block of `cap` of `len` bytes. 0 when there is no room. comment may be NULL.
size_t wf_pcapng_packet(uint8_t *buf, size_t room, uint64_t ns, const uint8_t *frame, uint32_t cap,
                        uint32_t len, const char *comment);

#endif
