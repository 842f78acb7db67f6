// SPDX-License-Identifier: BSD-2-Clause
// Address handles.
#include "verbs/face.h"
#include <dlfcn.h>
#include <string.h>

_Static_assert(sizeof(struct ibv_ah) == 24, "struct ibv_ah");
_Static_assert(sizeof(struct ibv_ah_attr) == 32, "struct ibv_ah_attr");

// rsockets name their own port by its LID, as InfiniBand allows, on RoCE too.
// From anybody else that is the mistake that RoCE users make most, and is refused.
static bool rsocket_own_port(const struct ibv_ah_attr *attr, const void *caller)
{
    static const struct ibv_ah_attr none;
    struct ibv_ah_attr rest = *attr;
    Dl_info info;

    rest.port_num = 0;
    return memcmp(&rest, &none, sizeof(none)) == 0 && dladdr(caller, &info) && info.dli_fname &&
           strstr(info.dli_fname, "librdmacm.so");
}

// The first address of the port that others can use.
static void name_own_port(struct ibv_context *ctx, struct ibv_ah_attr *attr)
{
    static const uint8_t v4[12] = {[10] = 0xff, 0xff};
    struct wf_hca *hca = wf_vcontext(ctx)->file->hca;
    struct wf_gid_slot slot;

    attr->is_global = 1;
    for (uint32_t i = 0; i < WF_GIDS; i++) {
        if (wf_hca_query_gid(hca, attr->port_num, i, &slot))
            continue;
        bool better = memcmp(slot.gid.raw, v4, sizeof(v4)) == 0;
        if (i && !better)
            continue;
        attr->grh.dgid = slot.gid;
        attr->grh.sgid_index = (uint8_t)i;
        if (better)
            return;
    }
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *given)
{
    struct ibv_ah_attr own = *given, *attr = &own;
    struct wf_ah *ah;
    int rc;

    if (rsocket_own_port(attr, __builtin_return_address(0)))
        name_own_port(pd->context, attr);
    // RoCE: addresses are GIDs, LIDs mean nothing.
    if (!attr->is_global)
        return wf_verb_null(wf_refuse(EINVAL, WF_R_ARG,
                                      "an address on RoCE needs a GRH: set "
                                      "is_global and grh"));
    if (attr->port_num < 1 || attr->port_num > WF_FACE_PORTS)
        return wf_verb_null(wf_refuse(EINVAL, WF_R_ARG, "ibv_create_ah: port %u", attr->port_num));
    rc = wf_ah_create(wf_vpd(pd)->pd, attr, &ah);
    if (rc < 0)
        return wf_verb_null(rc);
    ah->ibv.context = pd->context;
    ah->ibv.pd = pd;
    wf_vpd_use(pd);
    return &ah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
    struct ibv_pd *pd = ibv->pd;
    int rc = wf_vforeign(ibv->context) ? 0 : wf_ah_destroy((struct wf_ah *)ibv);

    if (rc == 0)
        wf_vpd_unuse(pd);
    return wf_verb(rc);
}
