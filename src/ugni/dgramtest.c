// SPDX-License-Identifier: BSD-2-Clause
// The state of datagrams: test, wait, probe, cancel.
#include "ugni/session.h"

#include <stdlib.h>
#include <string.h>

// The session that a call names: by id those with an id, else those without.
struct name {
    gni_ep_handle_t ep;
    bool by_id;
    uint64_t id;
};

static struct wf_gni_session *named(const struct gni_ep *ep, const struct name *n)
{
    struct wf_gni_session *s = ep->session;
    if (!s || s->has_id != n->by_id || (n->by_id && s->dgram_id != n->id))
        return NULL;
    return s;
}

static struct gni_ep *endpoint(const struct name *n)
{
    struct gni_ep *ep = wf_gni_ep(n->ep);
    if (!ep || (n->by_id && n->id == UINT64_MAX) || (!n->by_id && !ep->bound)) {
        wf_gni_refuse(GNI_RC_INVALID_PARAM,
                      "datagram: no endpoint, id -1, or an unbound endpoint without id");
        return NULL;
    }
    return ep;
}

// Give a final session's data out and end it.
static gni_return_t consume(struct gni_ep *ep, struct wf_gni_session *s)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    if (s->state == GNI_POST_COMPLETED && s->got_len > s->out_size)
        rc = wf_gni_refuse(GNI_RC_SIZE_ERROR, "datagram: %u bytes came, the buffer has %u",
                           s->got_len, s->out_size);
    else if (s->got_len)
        memcpy(s->out, s->got, s->got_len);
    wf_gni_session_end(ep->nic, s);
    return rc;
}

static gni_return_t test(const struct name *n, gni_post_state_t *state, uint32_t *pe, uint32_t *id)
{
    struct gni_ep *ep = endpoint(n);
    if (!ep)
        return GNI_RC_INVALID_PARAM;
    struct wf_gni_session *s = named(ep, n);
    if (!s) {
        if (ep->session || !ep->bound || !wf_gni_parked_from(ep->nic, ep->pe, ep->remote_id))
            return GNI_RC_NO_MATCH;
        *state = GNI_POST_REMOTE_DATA;
        *pe = ep->pe;
        *id = ep->remote_id;
        return GNI_RC_SUCCESS;
    }
    *state = s->state;
    *pe = s->pe;
    *id = s->id;
    return wf_gni_session_final(s) ? consume(ep, s) : GNI_RC_SUCCESS;
}

static gni_return_t test_call(struct name n, gni_post_state_t *state, uint32_t *pe, uint32_t *id)
{
    if (!state || !pe || !id)
        return GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    wf_gni_progress();
    gni_return_t rc = test(&n, state, pe, id);
    wf_gni_unlock();
    wf_gni_idle(rc == GNI_RC_NO_MATCH || (rc == GNI_RC_SUCCESS && *state == GNI_POST_PENDING));
    return rc;
}

gni_return_t GNI_EpPostDataTest(gni_ep_handle_t ep_hndl, gni_post_state_t *post_state,
                                uint32_t *remote_addr, uint32_t *remote_id)
{
    return test_call((struct name){ep_hndl, false, 0}, post_state, remote_addr, remote_id);
}

gni_return_t GNI_EpPostDataTestById(gni_ep_handle_t ep_hndl, uint64_t datagram_id,
                                    gni_post_state_t *post_state, uint32_t *remote_addr,
                                    uint32_t *remote_id)
{
    return test_call((struct name){ep_hndl, true, datagram_id}, post_state, remote_addr, remote_id);
}

// ---- waiting ------------------------------------------------------------------------------------

// A place to sleep of one's own: several threads may wait on one NIC, each for its own session.
static struct wf_gni_sleeper *sleeper(struct gni_nic *nic)
{
    struct wf_gni_sleeper *s;
    for (s = nic->sleepers; s; s = s->next)
        if (!s->waiters)
            return s;
    s = malloc(sizeof(*s));
    if (s) {
        *s = (struct wf_gni_sleeper){.fd = -1, .next = nic->sleepers};
        nic->sleepers = s;
    }
    return s;
}

static void sleep_on(struct gni_nic *nic, uint64_t deadline)
{
    struct wf_gni_sleeper *s = sleeper(nic);
    if (s)
        wf_gni_sleep(&s->fd, &s->waiters, deadline);
}

static gni_return_t wait_locked(const struct name *n, uint64_t deadline, gni_post_state_t *state,
                                uint32_t *pe, uint32_t *id)
{
    for (;;) {
        wf_gni_progress();
        gni_return_t rc = test(n, state, pe, id);
        if (rc != GNI_RC_SUCCESS || *state != GNI_POST_PENDING)
            return rc;
        if (wf_gni_deadline(0, UINT64_MAX) >= deadline)
            return GNI_RC_TIMEOUT;
        sleep_on(wf_gni_ep(n->ep)->nic, deadline);
    }
}

static gni_return_t wait_call(struct name n, uint32_t timeout, gni_post_state_t *state,
                              uint32_t *pe, uint32_t *id)
{
    if (!timeout || !state || !pe || !id)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM,
                             "EpPostDataWait: timeout %u, or no place to "
                             "answer",
                             timeout);
    uint64_t deadline = wf_gni_deadline(timeout, UINT32_MAX);
    wf_gni_lock();
    gni_return_t rc = wait_locked(&n, deadline, state, pe, id);
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_EpPostDataWait(gni_ep_handle_t ep_hndl, uint32_t timeout,
                                gni_post_state_t *post_state, uint32_t *remote_addr,
                                uint32_t *remote_id)
{
    return wait_call((struct name){ep_hndl, false, 0}, timeout, post_state, remote_addr, remote_id);
}

gni_return_t GNI_EpPostDataWaitById(gni_ep_handle_t ep_hndl, uint64_t datagram_id, uint32_t timeout,
                                    gni_post_state_t *post_state, uint32_t *remote_addr,
                                    uint32_t *remote_id)
{
    return wait_call((struct name){ep_hndl, true, datagram_id}, timeout, post_state, remote_addr,
                     remote_id);
}

// ---- probing ------------------------------------------------------------------------------------

static struct wf_gni_session *first_final(struct gni_nic *nic, bool with_id)
{
    struct wf_gni_session *s;
    DL_FOREACH(nic->sessions, s)
    if (wf_gni_session_final(s) && s->has_id == with_id)
        return s;
    return NULL;
}

gni_return_t GNI_PostDataProbe(gni_nic_handle_t nic_hndl, uint32_t *remote_addr,
                               uint32_t *remote_id)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    if (nic && remote_addr && remote_id) {
        wf_gni_progress();
        struct wf_gni_session *s = first_final(nic, false);
        rc = s ? GNI_RC_SUCCESS : GNI_RC_NO_MATCH;
        if (s) {
            *remote_addr = s->pe;
            *remote_id = s->id;
        }
    }
    wf_gni_unlock();
    wf_gni_idle(rc == GNI_RC_NO_MATCH);
    return rc;
}

static gni_return_t probe_by_id(struct gni_nic *nic, uint64_t *datagram_id)
{
    wf_gni_progress();
    struct wf_gni_session *s = first_final(nic, true);
    if (!s)
        return GNI_RC_NO_MATCH;
    *datagram_id = s->dgram_id;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_PostDataProbeById(gni_nic_handle_t nic_hndl, uint64_t *datagram_id)
{
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    gni_return_t rc = nic && datagram_id ? probe_by_id(nic, datagram_id) : GNI_RC_INVALID_PARAM;
    wf_gni_unlock();
    wf_gni_idle(rc == GNI_RC_NO_MATCH);
    return rc;
}

gni_return_t GNI_PostdataProbeWaitById(gni_nic_handle_t nic_hndl, uint32_t timeout,
                                       uint64_t *datagram_id)
{
    uint64_t deadline = wf_gni_deadline(timeout, UINT32_MAX);
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    if (!datagram_id)
        return rc;
    wf_gni_lock();
    for (;;) {
        struct gni_nic *nic = wf_gni_nic(nic_hndl);
        rc = nic ? probe_by_id(nic, datagram_id) : GNI_RC_INVALID_PARAM;
        if (rc != GNI_RC_NO_MATCH)
            break;
        rc = GNI_RC_TIMEOUT;
        if (wf_gni_deadline(0, UINT64_MAX) >= deadline)
            break;
        sleep_on(nic, deadline);
    }
    wf_gni_unlock();
    return rc;
}

// ---- cancelling ---------------------------------------------------------------------------------

static gni_return_t cancel(struct name n)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    wf_gni_progress();
    struct gni_ep *ep = endpoint(&n);
    if (ep) {
        struct wf_gni_session *s = named(ep, &n);
        bool active = s && !wf_gni_session_final(s);
        if (active)
            wf_gni_session_cancel(ep->nic, s);
        rc = active ? GNI_RC_SUCCESS : GNI_RC_NO_MATCH;
    }
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_EpPostDataCancel(gni_ep_handle_t ep_hndl)
{
    return cancel((struct name){ep_hndl, false, 0});
}

gni_return_t GNI_EpPostDataCancelById(gni_ep_handle_t ep_hndl, uint64_t datagram_id)
{
    return cancel((struct name){ep_hndl, true, datagram_id});
}
