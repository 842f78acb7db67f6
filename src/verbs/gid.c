// SPDX-License-Identifier: BSD-2-Clause
// The GID table.
#include "verbs/face.h"
#include <string.h>

_Static_assert(sizeof(struct ibv_gid_entry) == 32, "struct ibv_gid_entry");

WF_EXPORT int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned index, int *type);

// 1 and the slot, 0 for a free one, or -errno.
static int slot_at(struct ibv_context *ctx, uint32_t port, uint32_t index, struct wf_gid_slot *slot)
{
    static const union ibv_gid none;
    int rc;

    if (port < 1 || port > WF_FACE_PORTS || index >= WF_GIDS)
        return wf_refuse(EINVAL, WF_R_ARG, "GID index %u of port %u", index, port);
    rc = wf_hca_query_gid(wf_vhca(ctx), (uint8_t)port, index, slot);
    if (rc == -ENODATA || rc == -ENOENT)
        return 0;
    if (rc < 0)
        return rc;
    return memcmp(&slot->gid, &none, sizeof(none)) != 0;
}

int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
    struct wf_gid_slot slot;
    int rc = slot_at(ctx, port, (uint32_t)index, &slot);

    if (rc < 0) {
        errno = -rc;
        return -1;
    }
    if (rc)
        *gid = slot.gid;
    else
        memset(gid, 0, sizeof(*gid));
    return 0;
}

static void entry_of(struct ibv_gid_entry *entry, uint32_t port, uint32_t index,
                     const struct wf_gid_slot *slot)
{
    *entry = (struct ibv_gid_entry){
        .gid = slot->gid,
        .gid_index = index,
        .port_num = port,
        .gid_type = IBV_GID_TYPE_ROCE_V2,
        .ndev_ifindex = slot->ifindex,
    };
}

static int check(uint32_t flags, size_t entry_size)
{
    if (flags || entry_size < sizeof(struct ibv_gid_entry))
        return wf_refuse(EINVAL, WF_R_ARG, "GID query: flags 0x%x, entries of %zu bytes", flags,
                         entry_size);
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
    struct wf_gid_slot slot;
    int rc = check(flags, entry_size);

    if (rc == 0)
        rc = slot_at(ctx, port, index, &slot);
    if (rc == 0) {
        // A free slot is an answer, not a refusal.
        errno = ENODATA;
        return ENODATA;
    }
    if (rc < 0)
        return wf_verb(rc);
    memset(entry, 0, entry_size);
    entry_of(entry, port, index, &slot);
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max,
                             uint32_t flags, size_t entry_size)
{
    struct wf_gid_slot slot;
    size_t n = 0;
    int rc = check(flags, entry_size);

    if (rc < 0)
        return rc;
    for (uint32_t port = 1; port <= WF_FACE_PORTS; port++) {
        for (uint32_t i = 0; i < WF_GIDS; i++) {
            rc = slot_at(ctx, port, i, &slot);
            if (rc < 0)
                return rc;
            if (rc == 0)
                continue;
            if (n == max)
                return wf_refuse(EINVAL, WF_R_ARG, "GID table: more than %zu entries", max);
            void *at = (char *)entries + n++ * entry_size;
            memset(at, 0, entry_size);
            entry_of(at, port, i, &slot);
        }
    }
    return (ssize_t)n;
}

// Its own numbering: 0 is InfiniBand or RoCE v1, 1 is RoCE v2.
int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned index, int *type)
{
    struct wf_gid_slot slot;
    int rc = slot_at(ctx, port, index, &slot);

    if (rc < 0) {
        errno = -rc;
        return -1;
    }
    *type = rc;
    return 0;
}
