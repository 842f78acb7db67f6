// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/fixture.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PTAG   10
#define COOKIE 0x1234

void fixture_expect(gni_return_t want, gni_return_t got, const char *what, int line)
{
    if (want != got)
        fail_msg("line %d: %s gave %s, not %s", line, what,
                 got <= GNI_RC_ERROR_NOMEM ? gni_err_str[got] : "?", gni_err_str[want]);
}

static void ok(gni_return_t rc, const char *what)
{
    fixture_expect(GNI_RC_SUCCESS, rc, what, __LINE__);
}

void fixture_open(struct fixture *f, uint32_t inst_id, uint32_t modes, gni_cq_mode_t cq_mode)
{
    memset(f, 0, sizeof(*f));
    ok(GNI_CdmCreate(inst_id, PTAG, COOKIE, modes, &f->cdm), "CdmCreate");
    ok(GNI_CdmAttach(f->cdm, 0, &f->pe, &f->nic), "CdmAttach");
    ok(GNI_CqCreate(f->nic, 64, 0, cq_mode, NULL, NULL, &f->source), "CqCreate");
    ok(GNI_CqCreate(f->nic, 64, 0, cq_mode, NULL, NULL, &f->remote), "CqCreate");
    ok(GNI_EpCreate(f->nic, f->source, &f->ep), "EpCreate");
    ok(GNI_EpBind(f->ep, f->pe, inst_id), "EpBind");
    f->memory = aligned_alloc(4096, FIXTURE_BYTES);
    assert_non_null(f->memory);
    memset(f->memory, 0, FIXTURE_BYTES);
    ok(GNI_MemRegister(f->nic, (uintptr_t)f->memory, FIXTURE_BYTES, f->remote, GNI_MEM_READWRITE,
                       UINT32_MAX, &f->handle),
       "MemRegister");
}

void fixture_close(struct fixture *f)
{
    ok(GNI_CdmDestroy(f->cdm), "CdmDestroy");
    free(f->memory);
}

int fixture_setup(void **state)
{
    struct fixture *f = malloc(sizeof(*f));
    fixture_open(f, 7, GNI_CDM_MODE_CACHED_AMO_ENABLED, GNI_CQ_BLOCKING);
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    fixture_close(*state);
    free(*state);
    return 0;
}

gni_cq_entry_t fixture_event(gni_cq_handle_t cq, gni_return_t want)
{
    gni_cq_entry_t e = 0;
    gni_return_t rc = GNI_RC_NOT_DONE;
    uint64_t end = wf_clock_ns() + 2 * WF_NSEC_PER_SEC;
    while (rc == GNI_RC_NOT_DONE && wf_clock_ns() < end)
        rc = GNI_CqGetEvent(cq, &e);
    fixture_expect(want, rc, "CqGetEvent", __LINE__);
    return e;
}

gni_post_descriptor_t fixture_post(const struct fixture *f, gni_post_type_t type, uint64_t local,
                                   uint64_t remote, uint64_t len)
{
    return (gni_post_descriptor_t){.type = type,
                                   .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                   .local_addr = (uintptr_t)f->memory + local,
                                   .local_mem_hndl = f->handle,
                                   .remote_addr = (uintptr_t)f->memory + remote,
                                   .remote_mem_hndl = f->handle,
                                   .length = len};
}
