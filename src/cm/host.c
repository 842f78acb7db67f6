// SPDX-License-Identifier: BSD-2-Clause
#include "cm/host.h"

#include "base/clock.h"
#include "base/reason.h"
#include "link/fabric.h"
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#define MAX_WAITING 65536 // datagrams; more are dropped, as a port without buffers would
#define ACK_DELAY   15    // what a host that is scheduled like any program can promise

struct waiting {
    STAILQ_ENTRY(waiting) next;
    struct wf_mad mad;
};

struct wf_cm_host {
    struct wf_hca *hca;
    struct wf_cm *cm;
    pthread_mutex_t lock; // cm, armed
    uint64_t armed;       // what `timer` is set to
    struct wf_hca_timer timer;
    struct wf_work receive;
    pthread_mutex_t wait_lock; // waiting, count: taken under the engine's lock
    STAILQ_HEAD(, waiting) waiting;
    unsigned count;
    unsigned refs; // under `one_lock`
};

static pthread_mutex_t one_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_cm_host *one;

// ---- what the machine asks for ------------------------------------------------------------------

static int op_send(void *arg, const union ibv_gid *dgid, uint32_t sgid_index, const uint8_t *mad)
{
    struct wf_cm_host *h = arg;
    return wf_hca_send_mad(h->hca, dgid, sgid_index, mad);
}

static int op_listen(void *arg, uint64_t service_id, uint64_t mask)
{
    struct wf_cm_host *h = arg;
    return wf_hca_cm_listen(h->hca, service_id, mask);
}

static void op_unlisten(void *arg, uint64_t service_id, uint64_t mask)
{
    struct wf_cm_host *h = arg;
    wf_hca_cm_unlisten(h->hca, service_id, mask);
}

static void op_will(void *arg, uint32_t local_id, const union ibv_gid *dgid, uint32_t sgid_index,
                    const uint8_t *mad)
{
    struct wf_cm_host *h = arg;
    (void)wf_hca_set_will(h->hca, local_id, dgid, sgid_index, mad);
}

int wf_cm_host_gid_index(struct wf_cm_host *h, const union ibv_gid *gid)
{
    struct wf_gid_slot slot;
    for (uint32_t i = 0; i < WF_GIDS; i++)
        if (wf_hca_query_gid(h->hca, 1, i, &slot) == 0 && memcmp(&slot.gid, gid, sizeof(*gid)) == 0)
            return (int)i;
    return -ENOENT;
}

static int op_gid_index(void *arg, const union ibv_gid *gid)
{
    static const union ibv_gid none;
    if (memcmp(gid, &none, sizeof(none)) == 0)
        return -ENOENT;
    return wf_cm_host_gid_index(arg, gid);
}

static const struct wf_cm_ops ops = {op_send, op_listen, op_unlisten, op_will, op_gid_index};

// ---- lock ---------------------------------------------------------------------------------------

struct wf_cm *wf_cm_lock(struct wf_cm_host *h)
{
    pthread_mutex_lock(&h->lock);
    wf_cm_run(h->cm, wf_clock_ns());
    return h->cm;
}

static void hand_out(struct wf_cm_host *h)
{
    struct wf_cm_event ev;
    while (wf_cm_next_event(h->cm, &ev)) {
        struct wf_cm_owner *owner = wf_cm_id_user(ev.listen_id ? ev.listen_id : ev.id);
        if (owner)
            owner->event(owner, &ev);
        else if (ev.listen_id)
            wf_cm_id_destroy(ev.id);
    }
}

static void set_timer(struct wf_cm_host *h)
{
    uint64_t deadline = wf_cm_deadline(h->cm);
    // An earlier wake-up than needed does no harm; moving the timer costs a trip to the engine.
    if (deadline >= h->armed)
        return;
    h->armed = deadline;
    wf_hca_set_timer(h->hca, &h->timer, deadline);
}

void wf_cm_unlock(struct wf_cm_host *h)
{
    hand_out(h);
    set_timer(h);
    pthread_mutex_unlock(&h->lock);
}

// ---- the engine's side --------------------------------------------------------------------------

static void on_timer(struct wf_work *work)
{
    struct wf_hca_timer *t =
        (struct wf_hca_timer *)((char *)work - offsetof(struct wf_hca_timer, work));
    struct wf_cm_host *h = (struct wf_cm_host *)((char *)t - offsetof(struct wf_cm_host, timer));
    pthread_mutex_lock(&h->lock);
    h->armed = WF_NEVER;
    wf_cm_run(h->cm, wf_clock_ns());
    wf_cm_unlock(h);
}

// Under the engine's lock.
static void on_mad(void *arg, const struct wf_mad *mad)
{
    struct wf_cm_host *h = arg;
    struct waiting *w = malloc(sizeof(*w));
    if (!w)
        return;
    w->mad = *mad;
    pthread_mutex_lock(&h->wait_lock);
    bool full = h->count >= MAX_WAITING;
    if (!full) {
        STAILQ_INSERT_TAIL(&h->waiting, w, next);
        h->count++;
    }
    pthread_mutex_unlock(&h->wait_lock);
    if (full)
        free(w);
    else
        wf_hca_defer(h->hca, &h->receive);
}

static struct waiting *take(struct wf_cm_host *h)
{
    pthread_mutex_lock(&h->wait_lock);
    struct waiting *w = STAILQ_FIRST(&h->waiting);
    if (w) {
        STAILQ_REMOVE_HEAD(&h->waiting, next);
        h->count--;
    }
    pthread_mutex_unlock(&h->wait_lock);
    return w;
}

static void on_receive(struct wf_work *work)
{
    struct wf_cm_host *h =
        (struct wf_cm_host *)((char *)work - offsetof(struct wf_cm_host, receive));
    struct waiting *w;
    pthread_mutex_lock(&h->lock);
    while ((w = take(h))) {
        wf_cm_receive(h->cm, wf_clock_ns(), &w->mad.sgid, &w->mad.dgid, w->mad.data);
        free(w);
        hand_out(h);
    }
    wf_cm_unlock(h);
}

// ---- life ---------------------------------------------------------------------------------------

static uint64_t random_seed(void)
{
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
        seed = wf_clock_ns();
    return seed;
}

static int make(struct wf_cm_host **out)
{
    struct wf_cm_host *h = calloc(1, sizeof(*h));
    if (!h)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "connection manager");
    int rc = wf_hca_get(&h->hca);
    if (rc)
        goto no_hca;
    struct wf_cm_config config = {
        .ops = &ops,
        .arg = h,
        .slot = (uint8_t)wf_hca_slot(h->hca),
        .ca_guid = wf_hca_node_guid(h->hca),
        .ack_delay = ACK_DELAY,
        .seed = random_seed(),
        .now = wf_clock_ns(),
    };
    rc = wf_cm_create(&config, &h->cm);
    if (rc)
        goto no_cm;
    pthread_mutex_init(&h->lock, NULL);
    pthread_mutex_init(&h->wait_lock, NULL);
    STAILQ_INIT(&h->waiting);
    h->armed = WF_NEVER;
    h->timer.work.fn = on_timer;
    h->timer.deadline = WF_NEVER;
    h->receive.fn = on_receive;
    wf_hca_set_mad_handler(h->hca, on_mad, h);
    *out = h;
    return 0;
no_cm:
    wf_hca_put(h->hca);
no_hca:
    free(h);
    return rc;
}

// In a child of fork() the parent's is nobody's: another thread may have held its locks.
static void forget_in_child(void)
{
    pthread_mutex_init(&one_lock, NULL);
    one = NULL;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_in_child);
}

// It is kept when the last user has gone: disconnects that are under way and TIMEWAIT go on, and a
// program that opens channel after channel does not join the fabric each time.
int wf_cm_host_get(struct wf_cm_host **out)
{
    int rc = 0;
    pthread_mutex_lock(&one_lock);
    if (!one)
        rc = make(&one);
    if (rc == 0) {
        one->refs++;
        *out = one;
    }
    pthread_mutex_unlock(&one_lock);
    return rc;
}

void wf_cm_host_put(struct wf_cm_host *h)
{
    pthread_mutex_lock(&one_lock);
    if (h == one && h->refs)
        h->refs--;
    pthread_mutex_unlock(&one_lock);
}

struct wf_cm *wf_cm_lock_held(struct wf_cm_host *h)
{
    return h->cm;
}

struct wf_hca *wf_cm_host_hca(struct wf_cm_host *h)
{
    return h->hca;
}
