// SPDX-License-Identifier: BSD-2-Clause
#include "cm/test_net.h"

#include "base/clock.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t net_random(struct net *n, uint32_t below)
{
    n->random += 0x9e3779b97f4a7c15ull;
    uint64_t x = n->random;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)((x ^ x >> 31) >> 16) % below;
}

static void enqueue(struct net *n, const union ibv_gid *from, const union ibv_gid *to,
                    const uint8_t *mad)
{
    struct net_mad *m = calloc(1, sizeof(*m)), **at = &n->queue;
    if (!m)
        abort();
    m->from = *from;
    m->to = *to;
    memcpy(m->mad, mad, WF_MAD_SIZE);
    m->at = n->now + n->delay;
    if (net_random(n, 1000) < n->reorder)
        m->at += n->delay * (1 + net_random(n, 20));
    while (*at && (*at)->at <= m->at)
        at = &(*at)->next;
    m->next = *at;
    *at = m;
}

static int op_send(void *arg, const union ibv_gid *dgid, uint32_t sgid_index, const uint8_t *mad)
{
    struct net_node *me = arg;
    struct net *n = me->net;
    if (n->fail)
        return n->fail;
    n->sent++;
    memcpy(n->last, mad, WF_MAD_SIZE);
    const union ibv_gid *from = sgid_index ? &me->gid2 : &me->gid;
    if (net_random(n, 1000) >= n->loss)
        enqueue(n, from, dgid, mad);
    if (net_random(n, 1000) < n->twice)
        enqueue(n, from, dgid, mad);
    return 0;
}

static int op_listen(void *arg, uint64_t service_id, uint64_t mask)
{
    struct net_node *me = arg;
    (void)mask;
    me->listens++;
    me->last_listen = service_id;
    return 0;
}

static void op_unlisten(void *arg, uint64_t service_id, uint64_t mask)
{
    (void)service_id;
    (void)mask;
    ((struct net_node *)arg)->listens--;
}

static void op_will(void *arg, uint32_t local_id, const union ibv_gid *dgid, uint32_t sgid_index,
                    const uint8_t *mad)
{
    (void)local_id;
    (void)dgid;
    (void)sgid_index;
    ((struct net_node *)arg)->wills += mad ? 1 : -1;
}

static int op_gid_index(void *arg, const union ibv_gid *gid)
{
    struct net_node *me = arg;
    if (memcmp(gid, &me->gid, sizeof(*gid)) == 0)
        return 0;
    return memcmp(gid, &me->gid2, sizeof(*gid)) == 0 ? 1 : -ENOENT;
}

static const struct wf_cm_ops ops = {op_send, op_listen, op_unlisten, op_will, op_gid_index};

static union ibv_gid gid_of(unsigned host)
{
    union ibv_gid g;
    memset(&g, 0, sizeof(g));
    g.raw[10] = g.raw[11] = 0xff;
    g.raw[12] = 10;
    g.raw[15] = (uint8_t)host;
    return g;
}

void net_start(struct net *n, uint64_t seed)
{
    memset(n, 0, sizeof(*n));
    n->random = seed;
    n->now = 1000 * NET_MS;
    n->delay = NET_MS / 10;
    for (unsigned i = 0; i < NET_NODES; i++) {
        struct net_node *me = &n->node[i];
        struct wf_cm_config c = {
            .ops = &ops,
            .arg = me,
            .slot = (uint8_t)(i + 1),
            .ca_guid = 0x0002c90000000000ull + i,
            .ack_delay = 15,
            .seed = seed + i,
            .now = n->now,
        };
        me->net = n;
        me->gid = gid_of(i + 1);
        me->gid2 = gid_of(i + 101);
        if (wf_cm_create(&c, &me->cm))
            abort();
    }
}

void net_drop(struct net *n)
{
    struct net_mad *m;
    while ((m = n->queue)) {
        n->queue = m->next;
        free(m);
    }
}

void net_stop(struct net *n)
{
    for (int i = 0; i < NET_NODES; i++)
        wf_cm_destroy(n->node[i].cm);
    net_drop(n);
}

static void deliver_first(struct net *n)
{
    struct net_mad *m = n->queue;
    n->queue = m->next;
    for (int i = 0; i < NET_NODES; i++) {
        struct net_node *me = &n->node[i];
        if (memcmp(&m->to, &me->gid, 16) == 0 || memcmp(&m->to, &me->gid2, 16) == 0)
            wf_cm_receive(me->cm, n->now, &m->from, &m->to, m->mad);
    }
    free(m);
}

void net_deliver(struct net *n)
{
    while (n->queue) {
        if (n->queue->at > n->now)
            n->now = n->queue->at;
        deliver_first(n);
    }
}

static uint64_t next_time(struct net *n)
{
    uint64_t t = n->queue && !n->hold ? n->queue->at : WF_NEVER;
    for (int i = 0; i < NET_NODES; i++) {
        uint64_t d = wf_cm_deadline(n->node[i].cm);
        t = d < t ? d : t;
    }
    return t;
}

static bool event_waits(struct net *n)
{
    for (int i = 0; i < NET_NODES; i++)
        if (wf_cm_has_event(n->node[i].cm))
            return true;
    return false;
}

void net_run(struct net *n, uint64_t until)
{
    while (!event_waits(n)) {
        uint64_t t = next_time(n);
        if (t > until) {
            n->now = until > n->now ? until : n->now;
            return;
        }
        n->now = t > n->now ? t : n->now;
        while (n->queue && !n->hold && n->queue->at <= n->now)
            deliver_first(n);
        for (int i = 0; i < NET_NODES; i++)
            wf_cm_run(n->node[i].cm, n->now);
    }
}

bool net_event(struct net *n, int node, struct wf_cm_event *ev, uint64_t ms)
{
    net_run(n, n->now + ms * NET_MS);
    return wf_cm_next_event(n->node[node].cm, ev);
}

uint16_t net_last_attr(const struct net *n)
{
    return (uint16_t)(n->last[16] << 8 | n->last[17]);
}

struct wf_cm_route net_route(const struct net *n, int from, int to)
{
    return (struct wf_cm_route){
        .sgid = n->node[from].gid,
        .dgid = n->node[to].gid,
        .pkey = 0xffff,
        .hop_limit = 64,
        .mtu = IBV_MTU_1024,
        .life = 16,
    };
}

struct wf_cm_route net_route2(const struct net *n, int from, int to)
{
    struct wf_cm_route r = net_route(n, from, to);
    r.sgid = n->node[from].gid2;
    r.dgid = n->node[to].gid2;
    return r;
}

struct wf_cm_req_param net_req(const struct wf_cm_route *r)
{
    return (struct wf_cm_req_param){
        .path = r,
        .service_id = NET_SERVICE,
        .qpn = 0x010011,
        .qp_type = IBV_QPT_RC,
        .psn = 0x123456,
        .data = "hello",
        .data_len = 6,
        .responder_resources = 4,
        .initiator_depth = 2,
        .remote_response_timeout = 20,
        .local_response_timeout = 19,
        .retry_count = 7,
        .rnr_retry = 6,
        .max_cm_retries = 3,
    };
}
