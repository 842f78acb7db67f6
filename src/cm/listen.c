// SPDX-License-Identifier: BSD-2-Clause
// Service ids: who listens to what, and peers that wait for each other's REQ.
#include "cm/internal.h"

#include <errno.h>
#include <stdlib.h>

#define EXACT UINT64_MAX

static bool data_overlap(const struct wf_cm_compare *a, const struct wf_cm_compare *b)
{
    for (size_t i = 0; i < WF_CM_COMPARE_SIZE; i++) {
        uint8_t both = a->mask[i] & b->mask[i];
        if ((a->data[i] & both) != (b->data[i] & both))
            return false;
    }
    return true;
}

// Could one request be for both? Without compare data on both sides nothing tells them apart.
static bool overlap(const struct wf_cm_id *l, const struct wf_cm_listen_arg *a)
{
    uint64_t both = l->service_mask & a->mask;
    if ((l->service_id & both) != (a->service_id & both))
        return false;
    return !l->compare || !a->compare || data_overlap(l->compare, a->compare);
}

static struct wf_cm_id *find_overlap(struct wf_cm *cm, const struct wf_cm_listen_arg *a)
{
    struct wf_cm_id *l;
    LIST_FOREACH(l, &cm->listeners, listed)
    if (overlap(l, a))
        return l;
    return NULL;
}

// Listeners that differ in compare data only are one to the outside.
static bool registered(struct wf_cm *cm, uint64_t service_id, uint64_t mask)
{
    struct wf_cm_id *l;
    LIST_FOREACH(l, &cm->listeners, listed)
    if (l->service_id == service_id && l->service_mask == mask)
        return true;
    return false;
}

static int keep_compare(struct wf_cm_id *id, const struct wf_cm_compare *from)
{
    if (!from)
        return 0;
    id->compare = malloc(sizeof(*id->compare));
    if (!id->compare)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "compare data");
    *id->compare = *from;
    for (size_t i = 0; i < WF_CM_COMPARE_SIZE; i++)
        id->compare->data[i] &= from->mask[i];
    return 0;
}

int wf_cm_do_listen(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_listen_arg *a = arg;
    struct wf_cm *cm = id->cm;
    const struct wf_cm_id *other = find_overlap(cm, a);
    if (other)
        return wf_refuse(EBUSY, WF_R_CM_LISTEN_BUSY, "service id 0x%016llx mask 0x%016llx",
                         (unsigned long long)other->service_id,
                         (unsigned long long)other->service_mask);
    int rc = keep_compare(id, a->compare);
    if (rc)
        return rc;
    if (!registered(cm, a->service_id, a->mask))
        rc = cm->config.ops->listen(cm->config.arg, a->service_id, a->mask);
    if (rc) {
        free(id->compare);
        id->compare = NULL;
        return rc;
    }
    id->service_id = a->service_id;
    id->service_mask = a->mask;
    LIST_INSERT_HEAD(&cm->listeners, id, listed);
    return 0;
}

int wf_cm_end_listen(struct wf_cm_id *id, const void *arg)
{
    struct wf_cm *cm = id->cm;
    (void)arg;
    LIST_REMOVE(id, listed);
    free(id->compare);
    id->compare = NULL;
    if (!registered(cm, id->service_id, id->service_mask))
        cm->config.ops->unlisten(cm->config.arg, id->service_id, id->service_mask);
    return 0;
}

static uint64_t assign(struct wf_cm *cm)
{
    return WF_CM_SERVICE_ASSIGN | (uint64_t)cm->config.slot << 32 | cm->next_service++;
}

int wf_cm_listen(struct wf_cm_id *id, uint64_t service_id, uint64_t mask,
                 const struct wf_cm_compare *compare)
{
    struct wf_cm_listen_arg a = {service_id, mask ? mask : EXACT, compare};
    if (service_id == WF_CM_SERVICE_ASSIGN) {
        a.service_id = assign(id->cm);
        a.mask = EXACT;
    } else if ((service_id & WF_CM_SERVICE_AGN_MASK) == WF_CM_SERVICE_ASSIGN) {
        return wf_refuse(EINVAL, WF_R_CM_SERVICE_ID, "service id 0x%016llx",
                         (unsigned long long)service_id);
    }
    a.service_id &= a.mask;
    return wf_cm_step(id, IN_LISTEN, &a);
}

static bool data_matches(const struct wf_cm_compare *c, const uint8_t *data)
{
    for (size_t i = 0; c && i < WF_CM_COMPARE_SIZE; i++)
        if ((data[i] & c->mask[i]) != c->data[i])
            return false;
    return true;
}

// `data`: at least WF_CM_COMPARE_SIZE bytes.
struct wf_cm_id *wf_cm_find_listener(struct wf_cm *cm, uint64_t service_id, const uint8_t *data)
{
    struct wf_cm_id *l;
    LIST_FOREACH(l, &cm->listeners, listed)
    if ((service_id & l->service_mask) == l->service_id && data_matches(l->compare, data))
        return l;
    return NULL;
}

// A peer is as good as a listener to the outside until the exchange has taken its course.
void wf_cm_peer_start(struct wf_cm_id *id)
{
    struct wf_cm *cm = id->cm;
    LIST_INSERT_HEAD(&cm->peers, id, listed);
    id->peering = true;
    // Two peers in one process, or a listener, share the registration.
    (void)cm->config.ops->listen(cm->config.arg, id->service_id, EXACT);
}

void wf_cm_peer_stop(struct wf_cm_id *id)
{
    struct wf_cm *cm = id->cm;
    struct wf_cm_id *p;
    LIST_REMOVE(id, listed);
    id->peering = false;
    LIST_FOREACH(p, &cm->peers, listed)
    if (p->service_id == id->service_id)
        return;
    if (!registered(cm, id->service_id, EXACT))
        cm->config.ops->unlisten(cm->config.arg, id->service_id, EXACT);
}
