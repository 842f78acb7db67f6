// SPDX-License-Identifier: BSD-2-Clause
// What the tests of uGNI share: one domain that talks to itself.
#ifndef WF_UGNI_FIXTURE_H
#define WF_UGNI_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <gni_kernel.h>

#define FIXTURE_BYTES 65536u

struct fixture {
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    uint32_t pe;
    gni_cq_handle_t source, remote; // of endpoints, of the memory
    gni_ep_handle_t ep;             // bound to this very domain
    char *memory;
    gni_mem_handle_t handle;
};

// Fails the test unless the call gave this code; `line` is the caller's.
void fixture_expect(gni_return_t want, gni_return_t got, const char *what, int line);

void fixture_open(struct fixture *f, uint32_t inst_id, uint32_t modes, gni_cq_mode_t cq_mode);
void fixture_close(struct fixture *f);
int fixture_setup(void **state);
int fixture_teardown(void **state);

// Fetch the next event of a queue; fails after two seconds without one.
gni_cq_entry_t fixture_event(gni_cq_handle_t cq, gni_return_t want);
// A post descriptor for `len` bytes from `local` to `remote`, offsets into the memory.
gni_post_descriptor_t fixture_post(const struct fixture *f, gni_post_type_t type, uint64_t local,
                                   uint64_t remote, uint64_t len);

#endif
