// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/ce.h"
#include "ugni/peer.h"
#include "ugni/state.h"
#include "ugni/target.h"

#include <stdlib.h>

#define CHANNELS 4u // of one process
#define DONE     (1ull << 63)
#define RED_MASK 0xffffffffffffull

struct child {
    bool used;
    gni_ce_child_t type;
    uint32_t pe;
    uint32_t ce_id; // of a child VCE
};

// One reduction under way in a channel.
struct reduction {
    uint64_t id;
    uint32_t cmd, mode;
    uint32_t have; // children heard from, one bit each
    uint8_t status;
    bool up; // sent to the parent
    struct wf_gni_ce_value value;
    uint64_t token[GNI_CE_MAX_CHILDREN]; // the children's own names of it
    struct reduction *prev, *next;
};

struct gni_ce {
    struct wf_gni_obj obj;
    struct gni_nic *nic;
    uint32_t id;
    bool configured;
    struct child child[GNI_CE_MAX_CHILDREN];
    uint32_t want; // bits of the children there are
    bool has_parent;
    uint32_t parent_pe, parent_ce, parent_child;
    struct gni_cq *cq;
    uint32_t modes;
    struct reduction *reductions;
    struct gni_ce *prev, *next;
};

// A leaf's operation until its result comes.
struct leaf {
    uint64_t token;
    uint32_t region;
    uint64_t addr;
    uint8_t ptag;
    struct leaf *prev, *next;
};

static struct wf_gni_pool pool = {.size = (sizeof(struct gni_ce) + 63) & ~63ull, .max = 1u << 12};
static struct leaf *leaves;
static uint64_t tokens;
static struct gni_ce *channels[CHANNELS + 1]; // ids count from 1

static bool aries(void)
{
    return wf_gni_device_type() == GNI_DEVICE_ARIES;
}

static struct gni_ce *channel(gni_ce_handle_t h)
{
    return wf_gni_pool_check(&pool, h);
}

// ---- handles ------------------------------------------------------------------------------------

static gni_return_t create(struct gni_nic *nic, gni_ce_handle_t *out)
{
    uint32_t id = 1;
    while (id <= CHANNELS && channels[id])
        id++;
    if (id > CHANNELS)
        return wf_gni_fail(nic, GNI_RC_ERROR_RESOURCE, "CeCreate", "all %u channels are in use",
                           CHANNELS);
    struct gni_ce *ce = wf_gni_pool_get(&pool);
    if (!ce)
        return GNI_RC_ERROR_NOMEM;
    ce->nic = nic;
    ce->id = id;
    channels[id] = ce;
    DL_APPEND(nic->ces, ce);
    *out = ce;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_CeCreate(gni_nic_handle_t nic_hndl, gni_ce_handle_t *ce_hndl)
{
    gni_return_t rc = GNI_RC_ILLEGAL_OP;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    if (!nic || !ce_hndl)
        rc = GNI_RC_INVALID_PARAM;
    else if (aries())
        rc = create(nic, ce_hndl);
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_CeGetId(gni_ce_handle_t ce_hndl, uint32_t *ce_id)
{
    wf_gni_lock();
    struct gni_ce *ce = channel(ce_hndl);
    if (ce && ce_id)
        *ce_id = ce->id;
    wf_gni_unlock();
    if (!aries())
        return GNI_RC_ILLEGAL_OP;
    return ce && ce_id ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}

void wf_gni_ce_release(struct gni_ce *ce)
{
    struct reduction *r, *tmp;
    DL_FOREACH_SAFE(ce->reductions, r, tmp)
    free(r);
    if (ce->cq)
        ce->cq->users--;
    channels[ce->id] = NULL;
    DL_DELETE(ce->nic->ces, ce);
    wf_gni_pool_put(&pool, ce);
}

gni_return_t GNI_CeDestroy(gni_ce_handle_t ce_hndl)
{
    if (!aries())
        return GNI_RC_ILLEGAL_OP;
    wf_gni_lock();
    struct gni_ce *ce = channel(ce_hndl);
    if (ce)
        wf_gni_ce_release(ce);
    wf_gni_unlock();
    return ce ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_EpSetCeAttr(gni_ep_handle_t ep_hndl, uint32_t ce_id, uint32_t child_id,
                             gni_ce_child_t child_type)
{
    gni_return_t rc = aries() ? GNI_RC_SUCCESS : GNI_RC_ILLEGAL_OP;
    wf_gni_lock();
    struct gni_ep *ep = wf_gni_ep(ep_hndl);
    if (!ep || child_id >= GNI_CE_MAX_CHILDREN ||
        (child_type != GNI_CE_CHILD_VCE && child_type != GNI_CE_CHILD_PE)) {
        rc = wf_gni_refuse(GNI_RC_INVALID_PARAM, "EpSetCeAttr: child %u of type %d", child_id,
                           (int)child_type);
    } else if (rc == GNI_RC_SUCCESS) {
        ep->ce_set = true;
        ep->ce_id = ce_id;
        ep->ce_child = child_id;
        ep->ce_type = child_type;
    }
    wf_gni_unlock();
    return rc;
}

// ---- reducing -----------------------------------------------------------------------------------

static void send_to(struct gni_nic *nic, uint32_t pe, struct wf_gni_am *am)
{
    struct wf_gni_peer *p = wf_gni_peer_get(pe);
    am->ptag = nic->cdm->ptag;
    if (p)
        wf_gni_peer_send(p, am, NULL);
}

static void send_down(struct gni_ce *ce, const struct reduction *r)
{
    for (uint32_t i = 0; i < GNI_CE_MAX_CHILDREN; i++) {
        struct child *c = &ce->child[i];
        struct wf_gni_am am = {.type = WF_GNI_AM_CE_DOWN,
                               .status = r->status,
                               .flags = r->value.fpe,
                               .region = c->type == GNI_CE_CHILD_VCE ? c->ce_id : 0,
                               .id = r->token[i],
                               .arg = r->id,
                               .first = r->value.op[0],
                               .second = r->value.op[1]};
        if (c->used)
            send_to(ce->nic, c->pe, &am);
    }
}

static void send_up(struct gni_ce *ce, struct reduction *r)
{
    struct wf_gni_am am = {.type = WF_GNI_AM_CE_UP,
                           .status = r->status,
                           .flags = r->value.fpe,
                           .region = ce->parent_ce,
                           .event = ce->parent_child,
                           .addr = r->cmd | (uint64_t)r->mode << 32,
                           .arg = r->id,
                           .first = r->value.op[0],
                           .second = r->value.op[1]};
    r->up = true;
    send_to(ce->nic, ce->parent_pe, &am);
}

static void finish(struct gni_ce *ce, struct reduction *r)
{
    bool failed = r->status || r->value.fpe;
    send_down(ce, r);
    if (ce->cq &&
        (ce->modes & GNI_CE_MODE_CQE_ONCOMP || (failed && ce->modes & GNI_CE_MODE_CQE_ONERR)))
        wf_gni_cq_push(ce->cq, wf_gni_entry_ce(ce->id, r->id, r->status));
    DL_DELETE(ce->reductions, r);
    free(r);
}

static void advance(struct gni_ce *ce, struct reduction *r)
{
    if (!ce->configured || r->up || (r->have & ce->want) != ce->want)
        return;
    if (ce->has_parent)
        send_up(ce, r);
    else
        finish(ce, r);
}

// The reduction that a child's part belongs to: the oldest of that id it has no part in yet.
static struct reduction *reduction_for(struct gni_ce *ce, uint64_t id, uint32_t child)
{
    struct reduction *r;
    DL_FOREACH(ce->reductions, r)
    if (r->id == id && !(r->have >> child & 1))
        return r;
    r = calloc(1, sizeof(*r));
    if (r) {
        r->id = id;
        DL_APPEND(ce->reductions, r);
    }
    return r;
}

static void up_arrived(const struct wf_gni_am *am)
{
    struct gni_ce *ce = am->region && am->region <= CHANNELS ? channels[am->region] : NULL;
    if (!ce || am->event >= GNI_CE_MAX_CHILDREN || ce->nic->cdm->ptag != am->ptag)
        return;
    struct reduction *r = reduction_for(ce, am->arg, am->event);
    uint32_t cmd = (uint32_t)am->addr, mode = (uint32_t)(am->addr >> 32);
    struct wf_gni_ce_value part = {{am->first, am->second}, am->flags & 0xf};
    bool two = mode & GNI_CEMODE_TWO_OP;
    if (!r)
        return;
    if (!r->have) {
        r->cmd = cmd;
        r->mode = mode;
        r->status = wf_gni_ce_command(cmd) ? 0 : WF_GNI_ST_INVALID_COMMAND;
        r->value = wf_gni_ce_first(cmd, two, &part);
    } else if (r->cmd != cmd || (r->mode & GNI_CEMODE_TWO_OP) != (mode & GNI_CEMODE_TWO_OP)) {
        r->status = WF_GNI_ST_INVALID_COMMAND; // the children do not agree
    } else {
        wf_gni_ce_reduce(cmd, two, ce->modes, &r->value, &part);
    }
    if (am->status)
        r->status = am->status & 0xf;
    r->have |= 1u << am->event;
    r->token[am->event] = am->id;
    advance(ce, r);
}

static void result_to_leaf(const struct wf_gni_am *am)
{
    struct leaf *l;
    DL_FOREACH(leaves, l)
    if (l->token == am->id)
        break;
    if (!l)
        return;
    // The data first, then the word that says it is there.
    uint64_t data[2] = {am->first, am->second};
    uint64_t control = DONE | (uint64_t)(am->status & 0xf) << 56 |
                       (uint64_t)(am->flags & 0xf) << 48 | (am->arg & RED_MASK);
    wf_gni_target_copy(l->ptag, l->region, l->addr + 8, data, sizeof(data), true);
    wf_gni_target_copy(l->ptag, l->region, l->addr, &control, sizeof(control), true);
    DL_DELETE(leaves, l);
    free(l);
}

static void down_arrived(const struct wf_gni_am *am)
{
    struct gni_ce *ce = am->region <= CHANNELS ? channels[am->region] : NULL;
    struct reduction *r;
    if (!am->region) {
        result_to_leaf(am);
        return;
    }
    if (!ce || ce->nic->cdm->ptag != am->ptag)
        return;
    DL_FOREACH(ce->reductions, r)
    if (r->up && r->id == am->arg)
        break;
    if (!r)
        return;
    r->status = am->status & 0xf;
    r->value = (struct wf_gni_ce_value){{am->first, am->second}, am->flags & 0xf};
    finish(ce, r);
}

void wf_gni_ce_arrived(struct wf_gni_peer *from, const struct wf_gni_am *am)
{
    (void)from;
    if (am->type == WF_GNI_AM_CE_UP)
        up_arrived(am);
    else
        down_arrived(am);
}

// ---- configuring --------------------------------------------------------------------------------

static bool one_at_most(uint32_t bits)
{
    return !(bits & (bits - 1));
}

static bool modes_ok(uint32_t m)
{
    return !(m & ~0x7dfu) && one_at_most(m & 0x00f) && one_at_most(m & 0x050) &&
           one_at_most(m & 0x780);
}

static bool child_ok(const struct gni_ce *ce, gni_ep_handle_t h, uint32_t *seen)
{
    struct gni_ep *ep = wf_gni_ep(h);
    if (!ep || ep->nic != ce->nic || !ep->bound || !ep->ce_set || *seen >> ep->ce_child & 1)
        return false;
    *seen |= 1u << ep->ce_child;
    return true;
}

static gni_return_t configure(struct gni_ce *ce, gni_ep_handle_t *eps, uint32_t n,
                              struct gni_ep *parent, struct gni_cq *cq, uint32_t modes)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!child_ok(ce, eps[i], &seen))
            return wf_gni_refuse(GNI_RC_INVALID_PARAM,
                                 "CeConfigure: child %u is not bound, without attributes or twice",
                                 i);
    for (uint32_t i = 0; i < n; i++) {
        struct gni_ep *ep = wf_gni_ep(eps[i]);
        ce->child[ep->ce_child] = (struct child){true, ep->ce_type, ep->pe, ep->ce_id};
    }
    ce->want = seen;
    ce->has_parent = parent != NULL;
    if (parent) {
        ce->parent_pe = parent->pe;
        ce->parent_ce = parent->ce_id;
        ce->parent_child = parent->ce_child;
    }
    ce->cq = cq;
    if (cq) {
        cq->users++;
        cq->use = WF_GNI_CQ_DESTINATION;
    }
    ce->modes = modes;
    ce->configured = true;
    struct reduction *r, *tmp;
    DL_FOREACH_SAFE(ce->reductions, r, tmp)
    advance(ce, r); // parts that came first
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_CeConfigure(gni_ce_handle_t ce_hndl, gni_ep_handle_t *child_eps,
                             uint32_t num_child_eps, gni_ep_handle_t parent_ep,
                             gni_cq_handle_t cq_hndl, uint32_t modes)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    if (!aries())
        return GNI_RC_ILLEGAL_OP;
    wf_gni_lock();
    struct gni_ce *ce = channel(ce_hndl);
    struct gni_ep *parent = wf_gni_ep(parent_ep);
    struct gni_cq *cq = wf_gni_cq(cq_hndl);
    bool ok = ce && !ce->configured && child_eps && num_child_eps &&
              num_child_eps <= GNI_CE_MAX_CHILDREN && modes_ok(modes) &&
              (!parent_ep || (parent && parent->nic == ce->nic && parent->bound && parent->ce_set &&
                              parent->ce_type == GNI_CE_CHILD_VCE)) &&
              (!cq_hndl || (cq && cq->nic == ce->nic && cq->use == WF_GNI_CQ_UNUSED));
    if (ok)
        rc = configure(ce, child_eps, num_child_eps, parent, cq, modes);
    else
        wf_gni_refuse(rc, "CeConfigure: channel, children, parent, queue or modes 0x%x", modes);
    wf_gni_unlock();
    return rc;
}

// ---- leaves -------------------------------------------------------------------------------------

gni_return_t wf_gni_ce_check(const struct gni_ep *ep, const gni_post_descriptor_t *d)
{
    if (!aries())
        return wf_gni_refuse(GNI_RC_ILLEGAL_OP, "CE post on Gemini");
    if (!ep->ce_set || ep->ce_type != GNI_CE_CHILD_PE || !wf_gni_ce_command(d->ce_cmd) ||
        d->ce_mode & ~0x1fu)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "CE post: endpoint, command or mode");
    if (d->local_addr % 32)
        return wf_gni_refuse(GNI_RC_ALIGNMENT_ERROR, "CE post: result at 0x%llx, not 32-aligned",
                             (unsigned long long)d->local_addr);
    if (wf_gni_target_check(ep->nic->cdm->ptag, wf_gni_mh_region(&d->local_mem_hndl),
                            wf_gni_mh_offset(&d->local_mem_hndl, d->local_addr),
                            sizeof(gni_ce_result_t), true))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "CE post: the result is not in the memory");
    return GNI_RC_SUCCESS;
}

void wf_gni_ce_run(struct gni_ep *ep, gni_post_descriptor_t *d, struct wf_gni_req *req)
{
    struct wf_gni_peer *p = wf_gni_ep_peer(ep);
    struct leaf *l = malloc(sizeof(*l));
    struct wf_gni_am am = {.type = WF_GNI_AM_CE_UP,
                           .flags = (uint8_t)(d->ce_mode >> 1), // GNI_CEMODE_FPE_* as GNI_CE_FPE_*
                           .ptag = ep->nic->cdm->ptag,
                           .region = ep->ce_id,
                           .event = ep->ce_child,
                           .id = ++tokens,
                           .addr = d->ce_cmd | (uint64_t)(d->ce_mode & GNI_CEMODE_TWO_OP) << 32,
                           .arg = d->ce_red_id & RED_MASK,
                           .first = d->first_operand,
                           .second = d->second_operand};
    req->parts++;
    if (l) {
        *l = (struct leaf){.token = am.id,
                           .region = wf_gni_mh_region(&d->local_mem_hndl),
                           .addr = wf_gni_mh_offset(&d->local_mem_hndl, d->local_addr),
                           .ptag = am.ptag};
        DL_APPEND(leaves, l);
    }
    bool sent = l && p && wf_gni_peer_send(p, &am, NULL);
    wf_gni_req_part_done(req, sent ? WF_GNI_ST_OK : WF_GNI_ST_PEER_DIED);
}

gni_return_t GNI_CeCheckResult(gni_ce_result_t *result, uint32_t length)
{
    (void)length;
    if (!result)
        return GNI_RC_INVALID_PARAM;
    if (!aries())
        return GNI_RC_ILLEGAL_OP;
    wf_gni_lock();
    wf_gni_progress();
    wf_gni_unlock();
    uint64_t control = __atomic_load_n(&result->control, __ATOMIC_ACQUIRE);
    wf_gni_idle(!(control & DONE));
    if (!(control & DONE))
        return GNI_RC_NOT_DONE;
    return gni_ce_res_status_ok(result) && !gni_ce_res_get_fpe(result) ? GNI_RC_SUCCESS
                                                                       : GNI_RC_TRANSACTION_ERROR;
}
