// SPDX-License-Identifier: BSD-2-Clause
// Counters objects. They count what passes flow rules, and this device has no flow rules: they can
// be made and read, and stay at zero.
#include "verbs/face.h"
#include <stdlib.h>
#include <string.h>

struct ibv_counters *wf_op_create_counters(struct ibv_context *ctx,
                                           struct ibv_counters_init_attr *attr)
{
    struct ibv_counters *counters;

    if (attr->comp_mask)
        return wf_verb_null(
            wf_refuse(EINVAL, WF_R_ARG, "ibv_create_counters: comp_mask 0x%x", attr->comp_mask));
    counters = calloc(1, sizeof(*counters));
    if (!counters)
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_create_counters"));
    counters->context = ctx;
    return counters;
}

int wf_op_destroy_counters(struct ibv_counters *counters)
{
    free(counters);
    return 0;
}

int wf_op_attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
                          struct ibv_flow *flow)
{
    if (attr->comp_mask || attr->counter_desc > IBV_COUNTER_BYTES)
        return wf_verb(wf_refuse(EINVAL, WF_R_ARG, "counter %d, comp_mask 0x%x", attr->counter_desc,
                                 attr->comp_mask));
    return wf_verb(wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "counters of flow rules"));
}

int wf_op_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t n, uint32_t flags)
{
    if (flags & ~(uint32_t)IBV_READ_COUNTERS_ATTR_PREFER_CACHED)
        return wf_verb(wf_refuse(EINVAL, WF_R_ARG, "ibv_read_counters: flags 0x%x", flags));
    memset(values, 0, n * sizeof(*values));
    return 0;
}
