// SPDX-License-Identifier: BSD-2-Clause
// weft/ib.h: between objects of verbs and those of the kernel's interfaces.
#include "ibcm/ibcm.h"
#include "rdmacm/internal.h"
#include <weft/ib.h>

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define PACKET_LIFE 16
#define HOP_LIMIT   64

// What struct device classes are in the kernel: a name.
struct class
{
    const char *name;
};
WEFT_API struct class cm_class = {"infiniband_cm"};

static struct ib_device device = {.name = "weft0", .phys_port_cnt = 1};

WEFT_API struct ib_device *weft_ib_device(struct ibv_context *context)
{
    struct wf_cm_host *host;
    (void)context; // there is one device
    int rc = wf_cm_host_get(&host);
    if (rc) {
        errno = -rc;
        return NULL;
    }
    device.node_guid = htobe64(wf_hca_node_guid(wf_cm_host_hca(host)));
    wf_cm_host_put(host);
    return &device;
}

// The program's own libibverbs does it, whichever that is; this library does not bring one along.
WEFT_API int weft_ib_modify_qp(struct ibv_qp *qp, struct ib_qp_attr *attr, int mask)
{
    static int (*modify)(struct ibv_qp *, struct ibv_qp_attr *, int);
    struct ibv_qp_attr verbs;
    if (!modify)
        modify = (int (*)(struct ibv_qp *, struct ibv_qp_attr *, int))dlvsym(
            RTLD_DEFAULT, "ibv_modify_qp", "IBVERBS_1.1");
    if (!modify)
        return wf_refuse(ENOSYS, WF_R_NOT_SUPPORTED, "the program is not linked with libibverbs");
    ibcm_qp_attr_to_verbs(attr, &verbs);
    return -modify(qp, &verbs, mask);
}

static int find_path(struct wf_cm_host *host, const struct sockaddr *src,
                     const struct sockaddr *dst, struct wf_cm_route *r)
{
    struct sockaddr_storage from;
    struct wf_gid_slot slot;
    int rc = 0;
    memset(&from, 0, sizeof(from));
    if (src)
        memcpy(&from, src, rcm_addr_len(src));
    if (!src || !rcm_addr_loopback(src))
        rc = rcm_addr_route(dst, src, 0, &from);
    if (rc)
        return wf_refuse(-rc, WF_R_RDMACM_ADDR, "no route to the destination");
    int index = rcm_addr_gid_index(host, &from, &slot);
    if (index < 0)
        return wf_refuse(-index, WF_R_RDMACM_ADDR, "no GID stands for the local address");
    memset(r, 0, sizeof(*r));
    r->sgid = slot.gid;
    if (rcm_addr_loopback(dst))
        r->dgid = slot.gid;
    else
        rcm_addr_to_gid(dst, &r->dgid);
    r->pkey = 0xffff;
    r->hop_limit = HOP_LIMIT;
    r->mtu = rcm_mtu_of(slot.ifmtu);
    r->life = PACKET_LIFE;
    return 0;
}

static bool is_ip(const struct sockaddr *sa)
{
    return sa->sa_family == AF_INET || sa->sa_family == AF_INET6;
}

WEFT_API int weft_ib_path(struct ibv_context *context, const struct sockaddr *src,
                          const struct sockaddr *dst, struct ib_sa_path_rec *path)
{
    struct wf_cm_host *host;
    struct wf_cm_route r;
    (void)context;
    if (!is_ip(dst) || (src && src->sa_family != dst->sa_family))
        return wf_refuse(EINVAL, WF_R_ARG, "an address is neither IPv4 nor IPv6, or they differ");
    int rc = wf_cm_host_get(&host);
    if (rc)
        return rc;
    rc = find_path(host, src, dst, &r);
    if (rc == 0)
        ibcm_path_rec(&r, path);
    wf_cm_host_put(host);
    return rc;
}
