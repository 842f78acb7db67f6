// SPDX-License-Identifier: BSD-2-Clause
// What is done to this process's memory and queues on behalf of a post, its own or a peer's. `at`
// is an offset in the region. Those that return int give an enum wf_gni_status.
#ifndef WF_UGNI_TARGET_H
#define WF_UGNI_TARGET_H

#include <stdbool.h>
#include <stdint.h>

int wf_gni_target_check(uint8_t ptag, uint32_t region, uint64_t at, uint64_t len, bool write);
// Between `buf` and the region; memory that is gone yields a status, not a fault.
int wf_gni_target_copy(uint8_t ptag, uint32_t region, uint64_t at, void *buf, uint64_t len,
                       bool write);
// `old`, when not NULL, gets the words' previous values.
int wf_gni_target_amo(uint8_t ptag, uint32_t region, uint64_t at, uint32_t cmd, uint64_t words,
                      const uint64_t operand[2], void *old);
int wf_gni_target_cq_write(uint8_t ptag, uint32_t region, uint64_t value);
void wf_gni_target_event(uint32_t region, uint32_t event);
// The address of [at, at + len) of a region when it is one piece in memory, else NULL.
void *wf_gni_target_pointer(uint32_t region, uint64_t at, uint64_t len);

// The first piece of [*at, *at + *len) that is contiguous in memory: address, and length in *n.
// Advances both over it.
void *wf_gni_target_piece(uint32_t region, uint64_t *at, uint64_t *len, uint64_t *n);

#endif
