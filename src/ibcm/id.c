// SPDX-License-Identifier: BSD-2-Clause
// Ids and the thread that calls their handlers. A thread of its own, since handlers may take their
// time and the engine's must not wait.
#include "ibcm/ibcm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pthread_mutex_t ibcm_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; // the queue, or an id's busy
static STAILQ_HEAD(, ibcm_queued) queue = STAILQ_HEAD_INITIALIZER(queue);
static pthread_t dispatcher;
static pid_t dispatcher_pid; // a child of fork() starts its own

static void on_event(struct wf_cm_owner *owner, const struct wf_cm_event *ev);

void ibcm_show(struct ibcm_id *id)
{
    id->pub.state = (enum ib_cm_state)wf_cm_id_state(id->cm);
    id->pub.lap_state = (enum ib_cm_lap_state)wf_cm_id_lap_state(id->cm);
    id->pub.local_id = htobe32(wf_cm_id_local(id->cm));
    id->pub.remote_id = htobe32(wf_cm_id_remote(id->cm));
    id->pub.service_id = htobe64(wf_cm_id_service(id->cm));
    id->pub.service_mask = htobe64(wf_cm_id_service_mask(id->cm));
}

static struct ibcm_id *new_id(struct wf_cm_host *host, struct ib_device *device,
                              ib_cm_handler handler, void *context)
{
    struct ibcm_id *id = calloc(1, sizeof(*id));
    if (!id)
        return NULL;
    id->pub.cm_handler = handler;
    id->pub.context = context;
    id->pub.device = device;
    id->pub.remote_cm_qpn = 1;
    id->owner.event = on_event;
    id->host = host;
    return id;
}

// ---- events come in (under the connection manager's lock) ---------------------------------------

static struct ibcm_id *adopt(struct ibcm_id *listener, const struct wf_cm_event *ev)
{
    struct ibcm_id *id = new_id(listener->host, listener->pub.device, listener->pub.cm_handler,
                                listener->pub.context);
    if (!id)
        return NULL;
    struct wf_cm_host *again;
    (void)wf_cm_host_get(&again); // each id holds it, this one too
    id->cm = ev->id;
    wf_cm_id_set_user(ev->id, &id->owner);
    ibcm_show(id);
    return id;
}

static bool enqueue(struct ibcm_queued *q)
{
    struct ibcm_id *watched = q->listener ? q->listener : q->id;
    pthread_mutex_lock(&ibcm_lock);
    bool alive = !watched->dead;
    if (alive) {
        STAILQ_INSERT_TAIL(&queue, q, next);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&ibcm_lock);
    return alive;
}

static struct ibcm_id *owner_of(struct wf_cm_owner *owner)
{
    return (struct ibcm_id *)((char *)owner - offsetof(struct ibcm_id, owner));
}

static void on_event(struct wf_cm_owner *owner, const struct wf_cm_event *ev)
{
    struct ibcm_id *id = owner_of(owner), *listener = NULL;
    struct ibcm_queued *q = calloc(1, sizeof(*q));
    if (ev->listen_id) {
        listener = id;
        id = q ? adopt(listener, ev) : NULL;
        if (!id)
            wf_cm_id_forget(ev->id);
    }
    if (!q || !id) {
        free(q);
        return;
    }
    q->id = id;
    q->listener = listener;
    q->ev = *ev;
    if (enqueue(q))
        return;
    free(q);
    if (listener) {
        wf_cm_id_destroy(ev->id);
        wf_cm_host_put(id->host);
        free(id);
    }
}

// ---- handlers -----------------------------------------------------------------------------------

static void destroy_now(struct ibcm_id *id, bool silently)
{
    wf_cm_lock(id->host);
    wf_cm_id_set_user(id->cm, NULL);
    if (silently && wf_cm_id_state(id->cm) != WF_CM_LISTEN)
        wf_cm_id_forget(id->cm);
    else
        wf_cm_id_destroy(id->cm);
    wf_cm_unlock(id->host);
    wf_cm_host_put(id->host);
    free(id);
}

static bool concerns(const struct ibcm_queued *q, const struct ibcm_id *id)
{
    return q->id == id || q->listener == id;
}

static void retire(struct ibcm_id *id);

static void destroy_unseen(struct ibcm_id *id)
{
    pthread_mutex_lock(&ibcm_lock);
    retire(id);
    pthread_mutex_unlock(&ibcm_lock);
    destroy_now(id, false);
}

// Take the queued events of an id; requests that no handler has seen end with their listener. Lets
// go of ibcm_lock on the way.
static void drop_events(struct ibcm_id *id)
{
    struct ibcm_queued *q, *after;
    STAILQ_HEAD(, ibcm_queued) dropped = STAILQ_HEAD_INITIALIZER(dropped);
    for (q = STAILQ_FIRST(&queue); q; q = after) {
        after = STAILQ_NEXT(q, next);
        if (!concerns(q, id))
            continue;
        STAILQ_REMOVE(&queue, q, ibcm_queued, next);
        STAILQ_INSERT_TAIL(&dropped, q, next);
    }
    pthread_mutex_unlock(&ibcm_lock);
    while ((q = STAILQ_FIRST(&dropped))) {
        STAILQ_REMOVE_HEAD(&dropped, next);
        if (q->listener == id)
            destroy_unseen(q->id);
        free(q);
    }
    pthread_mutex_lock(&ibcm_lock);
}

// Mark it dead and wait until no handler has it. Under ibcm_lock.
static void retire(struct ibcm_id *id)
{
    id->dead = true;
    drop_events(id);
    while (id->busy)
        pthread_cond_wait(&changed, &ibcm_lock);
}

// The handler is back; destroy the id if that was asked for.
static void finish(struct ibcm_id *id, bool destroy, bool silently)
{
    pthread_mutex_lock(&ibcm_lock);
    id->busy--;
    bool doomed = (destroy || id->doomed) && !id->dead && !id->busy;
    if (doomed)
        retire(id);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&ibcm_lock);
    if (doomed)
        destroy_now(id, silently);
}

static void call(struct ibcm_queued *q)
{
    struct ib_sa_path_rec paths[2];
    struct ib_cm_event event;
    struct ibcm_id *id = q->id;
    wf_cm_lock(id->host);
    ibcm_show(id);
    wf_cm_unlock(id->host);
    ibcm_event(q, &event, paths);
    int rc = id->pub.cm_handler(&id->pub, &event);
    finish(id, rc != 0, q->listener && rc == -ENOMEM);
    if (q->listener)
        finish(q->listener, false, false);
    free(q);
}

static void *dispatch(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "weft-ib_cm");
    for (;;) {
        struct ibcm_queued *q;
        pthread_mutex_lock(&ibcm_lock);
        while (!(q = STAILQ_FIRST(&queue)))
            pthread_cond_wait(&changed, &ibcm_lock);
        STAILQ_REMOVE_HEAD(&queue, next);
        q->id->busy++;
        if (q->listener)
            q->listener->busy++;
        pthread_mutex_unlock(&ibcm_lock);
        call(q);
    }
    return NULL;
}

static void forget_in_child(void)
{
    pthread_mutex_init(&ibcm_lock, NULL);
    pthread_cond_init(&changed, NULL);
    STAILQ_INIT(&queue);
    dispatcher_pid = 0;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_in_child);
}

static int start_dispatcher(void)
{
    int rc = 0;
    pthread_mutex_lock(&ibcm_lock);
    if (dispatcher_pid != getpid()) {
        rc = -pthread_create(&dispatcher, NULL, dispatch, NULL);
        if (rc == 0)
            dispatcher_pid = getpid();
    }
    pthread_mutex_unlock(&ibcm_lock);
    return rc;
}

// ---- calls --------------------------------------------------------------------------------------

static int create(struct ibcm_id *id)
{
    struct wf_cm *cm = wf_cm_lock(id->host);
    int rc = wf_cm_id_create(cm, &id->owner, &id->cm);
    if (rc == 0)
        ibcm_show(id);
    wf_cm_unlock(id->host);
    return rc;
}

WEFT_API struct ib_cm_id *ib_create_cm_id(struct ib_device *device, ib_cm_handler cm_handler,
                                          void *context)
{
    struct wf_cm_host *host;
    int rc = device && cm_handler ? start_dispatcher() : -EINVAL;
    if (rc == 0)
        rc = wf_cm_host_get(&host);
    if (rc) {
        errno = -rc;
        return NULL;
    }
    struct ibcm_id *id = new_id(host, device, cm_handler, context);
    rc = id ? create(id) : -ENOMEM;
    if (rc == 0)
        return &id->pub;
    wf_cm_host_put(host);
    free(id);
    errno = -rc;
    return NULL;
}

WEFT_API void ib_destroy_cm_id(struct ib_cm_id *cm_id)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    pthread_mutex_lock(&ibcm_lock);
    if (id->busy && pthread_equal(pthread_self(), dispatcher)) {
        // Waiting for this very handler would be for ever; what was meant is clear enough.
        id->doomed = true;
        pthread_mutex_unlock(&ibcm_lock);
        wf_explain(WF_R_IBCM_IN_HANDLER, "communication id 0x%08x", be32toh(cm_id->local_id));
        return;
    }
    retire(id);
    pthread_mutex_unlock(&ibcm_lock);
    destroy_now(id, false);
}
