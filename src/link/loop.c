// SPDX-License-Identifier: BSD-2-Clause
// Packets from this engine to itself: a queue of copied headers. Payload stays where it is; the
// engine drains the queue before anybody can touch it.
#include "base/reason.h"
#include "link/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK      64u   // packets allocated at a time
#define MAX_BLOCKS 1024u // then send() answers -EAGAIN
#define IOV_HERE   4     // more payload pieces than these are allocated

struct node {
    struct wf_pkt pkt;
    struct iovec iov[IOV_HERE];
    struct iovec *more;
    union ibv_gid sgid, dgid;
    struct node *next;
};

struct block {
    struct block *next;
    struct node nodes[BLOCK];
};

struct loop_link {
    struct wf_link link;
    struct node *head, **tail;
    struct node *free;
    struct block *blocks;
    unsigned nblocks;
};

static bool grow(struct loop_link *l)
{
    if (l->nblocks == MAX_BLOCKS)
        return false;
    struct block *b = malloc(sizeof(*b));
    if (!b)
        return false;
    for (unsigned i = 0; i < BLOCK; i++) {
        b->nodes[i].more = NULL;
        b->nodes[i].next = l->free;
        l->free = &b->nodes[i];
    }
    b->next = l->blocks;
    l->blocks = b;
    l->nblocks++;
    return true;
}

static bool copy_iov(struct node *n, const struct wf_pkt *pkt)
{
    struct iovec *to = n->iov;
    if (pkt->niov > IOV_HERE)
        to = n->more = malloc(sizeof(*to) * (size_t)pkt->niov);
    if (!to)
        return false;
    if (pkt->niov > 0)
        memcpy(to, pkt->iov, sizeof(*to) * (size_t)pkt->niov);
    n->pkt.iov = to;
    return true;
}

static void fill_net(struct node *n, const struct wf_path *path)
{
    n->sgid = path->sgid;
    n->dgid = path->dgid;
    n->pkt.sgid = &n->sgid;
    n->pkt.dgid = &n->dgid;
    n->pkt.tclass = path->tclass;
    n->pkt.hop_limit = path->hop_limit;
    n->pkt.flow_label = path->flow_label;
    n->pkt.ifindex = 0;
}

static int loop_send(struct wf_link *link, const struct wf_path *path, const struct wf_pkt *pkt)
{
    struct loop_link *l = (struct loop_link *)link;
    if (!l->free && !grow(l))
        return -EAGAIN;
    struct node *n = l->free;
    n->pkt = *pkt;
    if (!copy_iov(n, pkt))
        return -EAGAIN;
    l->free = n->next;
    fill_net(n, path);
    n->next = NULL;
    *l->tail = n;
    l->tail = &n->next;
    return 0;
}

static void loop_flush(struct wf_link *link)
{
}

// A delivery may send: what it adds is delivered too, within the budget.
static int loop_poll(struct wf_link *link, int budget)
{
    struct loop_link *l = (struct loop_link *)link;
    int n = 0;
    for (; n < budget && l->head; n++) {
        struct node *node = l->head;
        l->head = node->next;
        if (!l->head)
            l->tail = &l->head;
        link->deliver(link->arg, &node->pkt);
        free(node->more);
        node->more = NULL;
        node->next = l->free;
        l->free = node;
    }
    return n;
}

static int loop_fds(struct wf_link *link, int *fds, int max)
{
    return 0;
}

static void loop_destroy(struct wf_link *link)
{
    struct loop_link *l = (struct loop_link *)link;
    for (struct node *n = l->head; n; n = n->next)
        free(n->more);
    while (l->blocks) {
        struct block *b = l->blocks;
        l->blocks = b->next;
        free(b);
    }
    free(l);
}

int wf_loop_link_create(struct wf_link **out)
{
    static const struct wf_link_ops ops = {
        .name = "loop",
        .send = loop_send,
        .flush = loop_flush,
        .poll = loop_poll,
        .fds = loop_fds,
        .destroy = loop_destroy,
    };
    struct loop_link *l = calloc(1, sizeof(*l));
    if (!l)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "the link within this process");
    l->link.ops = &ops;
    l->link.max_payload = 1u << 31;
    l->tail = &l->head;
    *out = &l->link;
    return 0;
}
