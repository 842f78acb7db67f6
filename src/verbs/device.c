// SPDX-License-Identifier: BSD-2-Clause
// The device list: one device, there as long as the engine can join the fabric.
#include "base/record.h"
#include "verbs/face.h"
#include <endian.h>
#include <stdlib.h>
#include <string.h>

// Programs linked with vendor libraries look at fields that those keep behind struct ibv_device;
// all zero there says "not a device of mine".
static struct {
    struct ibv_device ibv;
    uint8_t behind[1024];
} weft0 = {
    .ibv =
        {
            .node_type = IBV_NODE_CA,
            .transport_type = IBV_TRANSPORT_IB,
            .name = WF_FACE_DEVICE,
            .dev_name = "uverbs0",
            .dev_path = "/sys/class/infiniband_verbs/uverbs0",
            .ibdev_path = "/sys/class/infiniband/" WF_FACE_DEVICE,
        },
};
static _Atomic uint64_t weft0_guid;

// A list keeps the engine, so that a program which lists and then opens joins the fabric once.
struct device_list {
    struct ibv_device *entry[2];
    struct wf_hca *hca;
    unsigned epoch;
};

struct ibv_device *wf_face_device(void)
{
    return &weft0.ibv;
}

void wf_face_device_guid(uint64_t guid)
{
    atomic_store(&weft0_guid, guid);
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
    struct device_list *list = calloc(1, sizeof(*list));

    if (num_devices)
        *num_devices = 0;
    if (!list)
        return wf_verb_null(-ENOMEM);
    // No fabric: the engine said why, and the list is empty as on a host without a device.
    if (wf_hca_get(&list->hca) == 0) {
        wf_face_device_guid(wf_hca_node_guid(list->hca));
        list->entry[0] = &weft0.ibv;
        if (num_devices)
            *num_devices = 1;
    } else {
        list->hca = NULL;
        wf_record_no_device();
    }
    list->epoch = wf_face_epoch();
    return list->entry;
}

void ibv_free_device_list(struct ibv_device **entries)
{
    if (!entries)
        return;
    struct device_list *list = wf_container(entries, struct device_list, entry);

    if (list->hca && list->epoch == wf_face_epoch())
        wf_hca_put(list->hca);
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

// The kernel's index of the device: it has none.
int ibv_get_device_index(struct ibv_device *device)
{
    return -1;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    return htobe64(atomic_load(&weft0_guid));
}
