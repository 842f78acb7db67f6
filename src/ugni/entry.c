// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/entry.h"
#include "ugni/device.h"

#include <stdio.h>
#include <string.h>

struct status_text {
    const char *text;
    bool recoverable; // posting again may succeed
};

static const struct status_text statuses[16] = {
    [WF_GNI_ST_OK] = {"no error", true},
    [WF_GNI_ST_UNCORRECTABLE] = {"uncorrectable memory error", false},
    [WF_GNI_ST_INVALID_COMMAND] = {"invalid command", false},
    [WF_GNI_ST_TRANSLATION] = {"address translation: the memory is not mapped", false},
    [WF_GNI_ST_VMDH] = {"the vmdh entry of the memory handle is not set up", false},
    [WF_GNI_ST_MDD] = {"the memory handle names no registered region", false},
    [WF_GNI_ST_PROTECTION] = {"protection: another tag, or a write to read-only memory", false},
    [WF_GNI_ST_BOUNDS] = {"bounds: outside the registered region", false},
    [WF_GNI_ST_TERMINATED] = {"the sequence was terminated", true},
    [WF_GNI_ST_TIMEOUT] = {"request timeout: no answer from the peer", true},
    [WF_GNI_ST_PEER_DIED] = {"the peer process died", false},
    [WF_GNI_ST_DATA] = {"data error", true},
};

static uint64_t bits(uint64_t v, unsigned low, unsigned n)
{
    return v >> low & ((1ull << n) - 1);
}

static void put_bits(uint64_t *v, unsigned low, unsigned n, uint64_t x)
{
    uint64_t mask = ((1ull << n) - 1) << low;
    *v = (*v & ~mask) | (x << low & mask);
}

// inst_id is 32 bits wide on Gemini and 24 on Aries.
static unsigned inst_bits(void)
{
    return wf_gni_device_type() == GNI_DEVICE_GEMINI ? 32 : 24;
}

static bool from(gni_cq_entry_t e, enum wf_gni_source source)
{
    return bits(e, 56, 3) == source;
}

uint64_t gni_cq_get_data(gni_cq_entry_t e)
{
    return bits(e, 0, 56);
}

uint64_t gni_cq_get_source(gni_cq_entry_t e)
{
    return bits(e, 56, 3);
}

uint64_t gni_cq_get_status(gni_cq_entry_t e)
{
    return bits(e, 59, 4);
}

uint64_t gni_cq_get_info(gni_cq_entry_t e)
{
    return bits(e, 32, 24);
}

uint64_t gni_cq_overrun(gni_cq_entry_t e)
{
    return bits(e, 63, 1);
}

uint64_t gni_cq_rem_overrun(gni_cq_entry_t e)
{
    (void)e; // a full remote queue tells its own reader, not the sender
    return 0;
}

uint64_t gni_cq_get_inst_id(gni_cq_entry_t e)
{
    return bits(e, 0, inst_bits());
}

uint64_t gni_cq_get_rem_inst_id(gni_cq_entry_t e)
{
    return bits(e, 0, 32);
}

uint64_t gni_cq_get_tid(gni_cq_entry_t e)
{
    return bits(e, 32, WF_GNI_TID_BITS);
}

uint64_t gni_cq_get_msg_id(gni_cq_entry_t e)
{
    return bits(e, 0, 32);
}

uint64_t gni_cq_get_type(gni_cq_entry_t e)
{
    return bits(e, 54, 2);
}

// DLA, the hardware's ordered queue in front of FMA, has no counterpart: its fields read zero.
uint64_t gni_cq_get_block_id(gni_cq_entry_t e)
{
    (void)e;
    return 0;
}

uint64_t gni_cq_get_unsuccessful_cnt(gni_cq_entry_t e)
{
    (void)e;
    return 0;
}

uint64_t gni_cq_get_marker_id(gni_cq_entry_t e)
{
    (void)e;
    return 0;
}

uint64_t gni_cq_get_failed_enqueue_cnt(gni_cq_entry_t e)
{
    (void)e;
    return 0;
}

unsigned gni_cq_status_dla_overflow(gni_cq_entry_t e)
{
    (void)e;
    return 0;
}

unsigned gni_cq_bte_enq_status(gni_cq_entry_t e)
{
    (void)e; // enqueuing never fails after the post returned
    return 0;
}

uint64_t gni_cq_get_ce_id(gni_cq_entry_t e)
{
    return from(e, WF_GNI_SRC_CE) ? bits(e, 32, 8) : 0;
}

uint64_t gni_cq_get_reductn_id(gni_cq_entry_t e)
{
    return from(e, WF_GNI_SRC_CE) ? bits(e, 0, 32) : 0;
}

uint64_t gni_cq_get_trans_type(gni_cq_entry_t e)
{
    return from(e, WF_GNI_SRC_RDMA);
}

void gni_cq_set_inst_id(gni_cq_entry_t *e, uint64_t v)
{
    put_bits(e, 0, inst_bits(), v);
}

void gni_cq_set_rem_inst_id(gni_cq_entry_t *e, uint64_t v)
{
    put_bits(e, 0, 32, v);
}

void gni_cq_set_tid(gni_cq_entry_t *e, uint64_t v)
{
    put_bits(e, 32, WF_GNI_TID_BITS, v);
}

void gni_cq_set_msg_id(gni_cq_entry_t *e, uint64_t v)
{
    put_bits(e, 0, 32, v);
}

void gni_cq_set_type(gni_cq_entry_t *e, uint64_t v)
{
    put_bits(e, 54, 2, v);
}

void gni_cq_clr_status(gni_cq_entry_t *e)
{
    put_bits(e, 59, 4, 0);
}

const char *wf_gni_status_text(unsigned status)
{
    return status < 16 ? statuses[status].text : NULL;
}

gni_return_t GNI_CqErrorStr(gni_cq_entry_t entry, void *buffer, uint32_t len)
{
    if (!buffer)
        return GNI_RC_INVALID_PARAM;
    unsigned status = (unsigned)gni_cq_get_status(entry);
    const char *text = wf_gni_status_text(status);
    const char *lost = gni_cq_overrun(entry) ? ", completion queue overrun" : "";
    char line[160];
    snprintf(line, sizeof(line), "%s (status %u)%s", text ? text : "undefined status", status,
             lost);
    if (len < strlen(line) + 1)
        return GNI_RC_SIZE_ERROR;
    memcpy(buffer, line, strlen(line) + 1);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_CqErrorRecoverable(gni_cq_entry_t entry, uint32_t *recoverable)
{
    if (!recoverable)
        return GNI_RC_INVALID_PARAM;
    const struct status_text *s = &statuses[gni_cq_get_status(entry)];
    if (!s->text)
        return GNI_RC_INVALID_STATE;
    *recoverable = s->recoverable;
    return GNI_RC_SUCCESS;
}
