// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/dgram.h"
#include "ugni/peer.h"
#include "ugni/service.h"
#include "ugni/session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RETRY_NS 20000000ull // posts to a process that does not exist yet

static uint64_t tokens;

static void wake_all(struct gni_nic *nic)
{
    for (struct wf_gni_sleeper *s = nic->sleepers; s; s = s->next)
        wf_gni_wake(s->fd, s->waiters);
}

static void finish(struct gni_nic *nic, struct wf_gni_session *s, gni_post_state_t state,
                   const void *data, uint32_t len)
{
    s->state = state;
    s->got_len = (uint16_t)len;
    if (len)
        memcpy(s->got, data, len);
    wake_all(nic);
}

static bool send_to(struct gni_nic *nic, uint32_t pe, struct wf_gni_am *am, const void *data)
{
    struct wf_gni_peer *p = wf_gni_peer_get(pe);
    am->type = WF_GNI_AM_DGRAM;
    am->ptag = nic->cdm->ptag;
    am->first = nic->cdm->cookie;
    am->event = nic->cdm->inst_id;
    return p && wf_gni_peer_send(p, am, data);
}

static bool send_post(struct gni_nic *nic, struct wf_gni_session *s)
{
    struct wf_gni_am am = {
        .status = WF_GNI_DGRAM_POST, .region = s->id, .id = s->token, .len = s->in_len};
    s->sent = true; // a post to this very domain is matched before the call below returns
    if (!send_to(nic, s->pe, &am, s->in))
        s->sent = false;
    return s->sent;
}

static void send_match(struct gni_nic *nic, const struct wf_gni_session *s, uint64_t token)
{
    struct wf_gni_am am = {
        .status = WF_GNI_DGRAM_MATCH, .region = s->id, .addr = token, .len = s->in_len};
    send_to(nic, s->pe, &am, s->in);
}

// ---- finding ------------------------------------------------------------------------------------

static struct wf_gni_session *session_with(struct gni_nic *nic, uint32_t pe, uint32_t id)
{
    struct wf_gni_session *s;
    DL_FOREACH(nic->sessions, s)
    {
        bool matched = s->bound || wf_gni_session_final(s);
        if (matched && s->pe == pe && s->id == id)
            return s;
    }
    return NULL;
}

static struct wf_gni_session *first_wildcard(struct gni_nic *nic)
{
    struct wf_gni_session *s;
    DL_FOREACH(nic->sessions, s)
    if (!s->bound && !wf_gni_session_final(s))
        return s;
    return NULL;
}

struct wf_gni_parked *wf_gni_parked_from(struct gni_nic *nic, uint32_t pe, uint32_t id)
{
    struct wf_gni_parked *p;
    DL_FOREACH(nic->parked, p)
    if (p->pe == pe && p->id == id)
        return p;
    return NULL;
}

static struct gni_nic *nic_of(uint8_t ptag, uint32_t cookie, uint32_t inst_id)
{
    struct gni_cdm *c;
    DL_FOREACH(wf_gni.cdms, c)
    if (c->nic && c->ptag == ptag && c->cookie == cookie && c->inst_id == inst_id)
        return c->nic;
    return NULL;
}

// ---- matching -----------------------------------------------------------------------------------

static void match_wildcard(struct gni_nic *nic, struct wf_gni_session *s,
                           const struct wf_gni_parked *p)
{
    s->pe = p->pe;
    s->id = p->id;
    finish(nic, s, GNI_POST_COMPLETED, p->data, p->len);
    send_match(nic, s, p->token);
}

// A post came for this NIC. False: nobody waits for it, park it.
static bool deliver(struct gni_nic *nic, const struct wf_gni_parked *p)
{
    struct wf_gni_session *s = session_with(nic, p->pe, p->id);
    if (s && s->bound && !wf_gni_session_final(s)) {
        finish(nic, s, GNI_POST_COMPLETED, p->data, p->len);
        if (!s->sent) // the peer came up just now: it waits for our side
            send_post(nic, s);
        return true;
    }
    if (s) // one session a pair: this one waits until that was consumed
        return false;
    s = first_wildcard(nic);
    if (!s)
        return false;
    match_wildcard(nic, s, p);
    return true;
}

static void post_arrived(const struct wf_gni_parked *in)
{
    struct gni_nic *nic = nic_of(in->ptag, in->cookie, in->dst_id);
    if (nic && deliver(nic, in))
        return;
    struct wf_gni_parked *p = malloc(sizeof(*p));
    if (!p)
        return;
    *p = *in;
    if (nic)
        DL_APPEND(nic->parked, p);
    else
        DL_APPEND(wf_gni.orphans, p);
}

static struct wf_gni_session *by_token(struct gni_nic *nic, uint64_t token)
{
    struct wf_gni_session *s;
    DL_FOREACH(nic->sessions, s)
    if (s->token == token)
        return s;
    return NULL;
}

static void unpark(struct wf_gni_parked **list, uint32_t pe, uint64_t token)
{
    struct wf_gni_parked *p, *tmp;
    DL_FOREACH_SAFE(*list, p, tmp)
    if (p->pe == pe && p->token == token) {
        DL_DELETE(*list, p);
        free(p);
    }
}

static void cancel_arrived(struct gni_nic *nic, uint32_t pe, const struct wf_gni_am *am)
{
    unpark(&wf_gni.orphans, pe, am->id);
    if (!nic)
        return;
    unpark(&nic->parked, pe, am->id);
    struct wf_gni_session *s = session_with(nic, pe, am->event);
    if (s && s->bound && !wf_gni_session_final(s))
        finish(nic, s, GNI_POST_TERMINATED, NULL, 0);
}

void wf_gni_dgram_arrived(struct wf_gni_peer *from, const struct wf_gni_am *am, const void *payload)
{
    struct gni_nic *nic = nic_of(am->ptag, (uint32_t)am->first, am->region);
    struct wf_gni_session *s;
    if (am->len > GNI_DATAGRAM_MAXSIZE)
        return;
    switch ((enum wf_gni_dgram_kind)am->status) {
    case WF_GNI_DGRAM_POST: {
        struct wf_gni_parked p = {.pe = from->pe,
                                  .id = am->event,
                                  .dst_id = am->region,
                                  .cookie = (uint32_t)am->first,
                                  .ptag = am->ptag,
                                  .token = am->id,
                                  .len = (uint16_t)am->len};
        memcpy(p.data, payload, am->len);
        post_arrived(&p);
        return;
    }
    case WF_GNI_DGRAM_MATCH:
        s = nic ? by_token(nic, am->addr) : NULL;
        if (s && !wf_gni_session_final(s) && s->pe == from->pe && s->id == am->event)
            finish(nic, s, GNI_POST_COMPLETED, payload, am->len);
        return;
    case WF_GNI_DGRAM_CANCEL:
        cancel_arrived(nic, from->pe, am);
        return;
    }
}

void wf_gni_dgram_nic_attached(struct gni_nic *nic)
{
    struct wf_gni_parked *p, *tmp;
    DL_FOREACH_SAFE(wf_gni.orphans, p, tmp)
    {
        if (p->ptag != nic->cdm->ptag || p->cookie != nic->cdm->cookie ||
            p->dst_id != nic->cdm->inst_id)
            continue;
        DL_DELETE(wf_gni.orphans, p);
        DL_APPEND(nic->parked, p);
    }
}

// ---- posting ------------------------------------------------------------------------------------

static void take_parked(struct gni_nic *nic, struct wf_gni_session *s)
{
    struct wf_gni_parked *p, *tmp;
    if (s->bound && (p = wf_gni_parked_from(nic, s->pe, s->id))) {
        finish(nic, s, GNI_POST_COMPLETED, p->data, p->len);
        DL_DELETE(nic->parked, p);
        free(p);
        return;
    }
    DL_FOREACH_SAFE(nic->parked, p, tmp)
    {
        if (s->bound || session_with(nic, p->pe, p->id))
            continue;
        match_wildcard(nic, s, p);
        DL_DELETE(nic->parked, p);
        free(p);
        return;
    }
}

static gni_return_t check_post(const struct gni_ep *ep, const struct wf_gni_session *init)
{
    if (!ep || (init->has_id && init->dgram_id == UINT64_MAX) || (!ep->bound && !init->has_id))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM,
                             "EpPostData: no endpoint, id -1, or an unbound endpoint without id");
    if (ep->session || (ep->bound && session_with(ep->nic, ep->pe, ep->remote_id)))
        return GNI_RC_ERROR_RESOURCE; // clients count on it: "the other side is connecting"
    return GNI_RC_SUCCESS;
}

static gni_return_t post(struct gni_ep *ep, const struct wf_gni_session *init)
{
    wf_gni_progress();
    gni_return_t rc = check_post(ep, init);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    struct wf_gni_session *s = malloc(sizeof(*s));
    if (!s)
        return GNI_RC_ERROR_NOMEM;
    *s = *init;
    s->ep = ep;
    s->bound = ep->bound;
    s->pe = ep->pe;
    s->id = ep->remote_id;
    s->token = ++tokens;
    s->state = GNI_POST_PENDING;
    ep->session = s;
    DL_APPEND(ep->nic->sessions, s);
    take_parked(ep->nic, s);
    if (s->bound && !send_post(ep->nic, s))
        wf_gni_service_at(WF_GNI_TIMER_DGRAM, wf_gni_now() + RETRY_NS);
    return GNI_RC_SUCCESS;
}

static gni_return_t post_data(gni_ep_handle_t ep_hndl, const void *in, uint16_t in_len, void *out,
                              uint16_t out_size, bool has_id, uint64_t id)
{
    struct wf_gni_session init = {
        .has_id = has_id, .dgram_id = id, .in_len = in_len, .out = out, .out_size = out_size};
    if (in_len > GNI_DATAGRAM_MAXSIZE || out_size > GNI_DATAGRAM_MAXSIZE)
        return wf_gni_refuse(GNI_RC_SIZE_ERROR, "EpPostData: %u and %u bytes, at most %u", in_len,
                             out_size, GNI_DATAGRAM_MAXSIZE);
    if ((in_len && !in) || (out_size && !out))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "EpPostData: a length without a buffer");
    if (in_len)
        memcpy(init.in, in, in_len);
    wf_gni_lock();
    gni_return_t rc = post(wf_gni_ep(ep_hndl), &init);
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_EpPostData(gni_ep_handle_t ep_hndl, void *in_data, uint16_t data_len,
                            void *out_buf, uint16_t buf_size)
{
    return post_data(ep_hndl, in_data, data_len, out_buf, buf_size, false, 0);
}

gni_return_t GNI_EpPostDataWId(gni_ep_handle_t ep_hndl, void *in_data, uint16_t data_len,
                               void *out_buf, uint16_t buf_size, uint64_t datagram_id)
{
    return post_data(ep_hndl, in_data, data_len, out_buf, buf_size, true, datagram_id);
}

void wf_gni_dgram_timer(uint64_t now)
{
    struct gni_cdm *c;
    bool again = false;
    DL_FOREACH(wf_gni.cdms, c)
    {
        struct wf_gni_session *s;
        if (!c->nic)
            continue;
        DL_FOREACH(c->nic->sessions, s)
        if (s->bound && !s->sent && s->state == GNI_POST_PENDING && !send_post(c->nic, s))
            again = true;
    }
    if (again)
        wf_gni_service_at(WF_GNI_TIMER_DGRAM, now + RETRY_NS);
}

void wf_gni_dgram_peer_died(uint32_t pe)
{
    struct gni_cdm *c;
    DL_FOREACH(wf_gni.cdms, c)
    {
        struct wf_gni_session *s;
        if (!c->nic)
            continue;
        DL_FOREACH(c->nic->sessions, s)
        if (s->bound && s->pe == pe && s->state == GNI_POST_PENDING) {
            s->sent = false;
            wf_gni_service_at(WF_GNI_TIMER_DGRAM, wf_gni_now() + RETRY_NS);
        }
    }
}

// ---- ending -------------------------------------------------------------------------------------

void wf_gni_session_end(struct gni_nic *nic, struct wf_gni_session *s)
{
    struct wf_gni_parked *p = wf_gni_parked_from(nic, s->pe, s->id);
    if (s->ep)
        s->ep->session = NULL;
    DL_DELETE(nic->sessions, s);
    free(s);
    if (!p)
        return;
    // The pair is free again: a wildcard may have what waited behind it.
    DL_DELETE(nic->parked, p);
    if (deliver(nic, p))
        free(p);
    else
        DL_PREPEND(nic->parked, p);
}

void wf_gni_session_cancel(struct gni_nic *nic, struct wf_gni_session *s)
{
    if (!s->bound) {
        wf_gni_session_end(nic, s);
        return;
    }
    struct wf_gni_am am = {.status = WF_GNI_DGRAM_CANCEL, .region = s->id, .id = s->token};
    finish(nic, s, GNI_POST_TERMINATED, NULL, 0);
    if (s->sent)
        send_to(nic, s->pe, &am, NULL);
}

void wf_gni_dgram_ep_release(struct gni_ep *ep)
{
    struct wf_gni_session *s = ep->session;
    if (!s)
        return;
    bool unmatched = !s->bound && !wf_gni_session_final(s);
    if (!wf_gni_session_final(s))
        wf_gni_session_cancel(ep->nic, s);
    if (!unmatched)
        wf_gni_session_end(ep->nic, s);
    wake_all(ep->nic); // who waits for it finds the endpoint gone
}

void wf_gni_dgram_evict(struct gni_nic *nic)
{
    for (struct wf_gni_sleeper *s = nic->sleepers; s; s = s->next)
        wf_gni_evict(&nic->obj, s->fd, &s->waiters);
}

void wf_gni_dgram_nic_release(struct gni_nic *nic)
{
    struct wf_gni_parked *p, *tmp;
    DL_FOREACH_SAFE(nic->parked, p, tmp)
    free(p);
    while (nic->sleepers) {
        struct wf_gni_sleeper *s = nic->sleepers;
        nic->sleepers = s->next;
        if (s->fd >= 0)
            close(s->fd);
        free(s);
    }
}
