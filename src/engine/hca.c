// SPDX-License-Identifier: BSD-2-Clause
// The engine of this process: made on first use, one for all faces, made anew in a child.
#include "base/reason.h"
#include "engine/engine.h"
#include "engine/tap.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_hca *process_hca;

// A child shares memory and sockets with its parent's engine but has none of its threads. It
// forgets that engine (whose objects can be destroyed there, and reach nobody) and makes its own on
// next use. The engine's locks are held across the fork, so the child finds it whole.
static void before_fork(void)
{
    pthread_mutex_lock(&process_lock);
    if (process_hca) {
        pthread_mutex_lock(&process_hca->lock);
        pthread_mutex_lock(&process_hca->work_lock);
    }
}

static void after_fork_parent(void)
{
    if (process_hca) {
        pthread_mutex_unlock(&process_hca->work_lock);
        pthread_mutex_unlock(&process_hca->lock);
    }
    pthread_mutex_unlock(&process_lock);
}

static void after_fork_child(void)
{
    struct wf_hca *h = process_hca;
    after_fork_parent();
    process_hca = NULL;
    if (h)
        wf_hca_abandon(h);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

// exit() may be called by a signal handler that interrupted us with a lock held: do not wait for
// ever.
static bool lock_soon(pthread_mutex_t *lock)
{
    for (int i = 0; i < 1000; i++) {
        if (pthread_mutex_trylock(lock) == 0)
            return true;
        sched_yield();
    }
    return false;
}

// At exit: what is due goes out, so that peers learn that their requests are done.
static void __attribute__((destructor)) send_what_is_due(void)
{
    if (!lock_soon(&process_lock))
        return;
    struct wf_hca *h = process_hca;
    if (h && lock_soon(&h->lock)) {
        wf_now(h);
        wf_run_ready(h);
        wf_exit(h);
    }
    pthread_mutex_unlock(&process_lock);
}

static void destroy_links(const struct wf_hca_parts *parts)
{
    struct wf_link *links[] = {parts->loop, parts->shm, parts->udp};
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
        if (links[i])
            links[i]->ops->destroy(links[i]);
}

static int make(struct wf_hca **out)
{
    struct wf_fabric *f;
    int err = wf_fabric_join(&f);
    if (err)
        return err;
    struct wf_hca_parts parts = {
        .fabric = f, .region = wf_fabric_region(f), .slot = wf_fabric_slot(f)};
    err = wf_loop_link_create(&parts.loop);
    if (!err)
        err = wf_shm_link_create(f, &parts.shm);
    int fd4 = wf_fabric_udp_fd(f, AF_INET), fd6 = wf_fabric_udp_fd(f, AF_INET6);
    if (!err && (fd4 >= 0 || fd6 >= 0))
        err = wf_udp_link_create(fd4, fd6, &parts.udp);
    if (!err)
        err = wf_hca_create(&parts, out);
    if (err) {
        destroy_links(&parts);
        wf_fabric_leave(f);
        return wf_refuse(-err, WF_R_LIMIT, "the engine of this process: %s", strerror(-err));
    }
    wf_tap_start(*out);
    wf_leaks_watch(*out);
    err = wf_thread_start(*out);
    if (err) {
        wf_leaks_watch(NULL);
        wf_hca_destroy(*out);
        return wf_refuse(-err, WF_R_LIMIT, "the engine's thread: %s", strerror(-err));
    }
    return 0;
}

int wf_hca_get(struct wf_hca **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&process_lock);
    int err = process_hca ? 0 : make(&process_hca);
    if (err) {
        process_hca = NULL;
    } else {
        process_hca->refs++;
        *out = process_hca;
    }
    pthread_mutex_unlock(&process_lock);
    return err;
}

void wf_hca_put(struct wf_hca *hca)
{
    pthread_mutex_lock(&process_lock);
    // An engine from before a fork() is not ours to stop.
    if (hca == process_hca && --hca->refs == 0) {
        process_hca = NULL;
        wf_leaks_watch(NULL);
        wf_thread_stop(hca);
        wf_hca_destroy(hca);
    }
    pthread_mutex_unlock(&process_lock);
}
