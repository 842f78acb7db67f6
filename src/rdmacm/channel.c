// SPDX-License-Identifier: BSD-2-Clause
// An open of the device: its descriptor and the events that wait on it.
#include "rdmacm/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

static LIST_HEAD(, rcm_channel) channels = LIST_HEAD_INITIALIZER(channels);
static struct wf_cm_host *channels_host; // a child of fork() has another one
static pid_t channels_pid;

// ---- the descriptor -----------------------------------------------------------------------------

// Not write(): the preload library would take that for a command.
static void make_readable(struct rcm_channel *c)
{
    (void)eventfd_write(c->fd, 1);
}

// A reader that waits may take the count first: so never block here, and never care.
static void make_unreadable(struct rcm_channel *c)
{
    uint64_t count;
    struct iovec iov = {&count, sizeof(count)};
    if (preadv2(c->fd, &iov, 1, -1, RWF_NOWAIT) >= 0 || errno == EAGAIN)
        return;
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    if (poll(&p, 1, 0) == 1)
        (void)!read(c->fd, &count, sizeof(count));
}

static void show_state(struct rcm_channel *c)
{
    if (STAILQ_EMPTY(&c->events))
        make_unreadable(c);
    else
        make_readable(c);
}

// ---- life ---------------------------------------------------------------------------------------

struct rcm_channel *rcm_channel_of(int fd)
{
    struct rcm_channel *c;
    LIST_FOREACH(c, &channels, next)
    if (c->fd == fd)
        return c;
    return NULL;
}

// Everything that is known belongs to the parent of a fork().
static void begin_anew(struct wf_cm_host *host)
{
    LIST_INIT(&channels);
    rcm_ids_reset();
    rcm_groups_reset();
    rcm_services_reset();
    rcm_ports_reset();
    channels_host = host;
    channels_pid = getpid();
}

static int open_channel(int flags)
{
    struct rcm_channel *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    int rc = wf_cm_host_get(&c->host);
    if (rc)
        goto no_host;
    c->fd =
        eventfd(0, (flags & O_CLOEXEC ? EFD_CLOEXEC : 0) | (flags & O_NONBLOCK ? EFD_NONBLOCK : 0));
    rc = c->fd < 0 ? -errno : 0;
    if (rc)
        goto no_fd;
    LIST_INIT(&c->ids);
    STAILQ_INIT(&c->events);
    wf_cm_lock(c->host);
    if (channels_host != c->host || channels_pid != getpid())
        begin_anew(c->host);
    LIST_INSERT_HEAD(&channels, c, next);
    wf_cm_unlock(c->host);
    return c->fd;
no_fd:
    wf_cm_host_put(c->host);
no_host:
    free(c);
    return rc;
}

static void close_channel(int fd)
{
    struct wf_cm_host *host;
    if (wf_cm_host_get(&host))
        return;
    wf_cm_lock(host);
    struct rcm_channel *c = channels_host == host ? rcm_channel_of(fd) : NULL;
    if (c) {
        while (!LIST_EMPTY(&c->ids))
            rcm_id_destroy(LIST_FIRST(&c->ids));
        LIST_REMOVE(c, next);
    }
    wf_cm_unlock(host);
    if (c)
        wf_cm_host_put(host);
    wf_cm_host_put(host);
    free(c);
}

// ---- events -------------------------------------------------------------------------------------

struct rcm_queued *rcm_prepare(struct rcm_id *id, enum rcm_event event, int status)
{
    // A request that was not accepted yet has no name on the program's side: what happens to it
    // shows when the program accepts.
    if (!id->uid)
        return NULL;
    struct rcm_queued *q = calloc(1, sizeof(*q));
    if (!q)
        return NULL;
    q->id = id;
    q->resp.uid = id->uid;
    q->resp.id = id->handle;
    q->resp.event = event;
    q->resp.status = (uint32_t)status;
    return q;
}

void rcm_queue(struct rcm_queued *q)
{
    struct rcm_channel *c = q->id->channel;
    STAILQ_INSERT_TAIL(&c->events, q, next);
    show_state(c);
}

int rcm_emit(struct rcm_id *id, enum rcm_event event, int status)
{
    struct rcm_queued *q = rcm_prepare(id, event, status);
    if (!q)
        return -ENOMEM;
    rcm_queue(q);
    return 0;
}

static struct rcm_queued *find_event(struct rcm_channel *c, const struct rcm_id *id,
                                     const struct rcm_mc *mc)
{
    struct rcm_queued *q;
    STAILQ_FOREACH(q, &c->events, next)
    if (mc ? q->mc == mc : q->id == id)
        return q;
    return NULL;
}

// mc NULL: all of the id. Requests that the program never saw end with their listener.
void rcm_drop_events(struct rcm_id *id, const struct rcm_mc *mc)
{
    struct rcm_channel *c = id->channel;
    struct rcm_queued *q;
    while ((q = find_event(c, id, mc))) {
        STAILQ_REMOVE(&c->events, q, rcm_queued, next);
        if (q->request)
            rcm_id_destroy(q->request);
        free(q);
    }
    show_state(c);
}

void rcm_move_events(struct rcm_id *id, struct rcm_channel *from, struct rcm_channel *to)
{
    struct rcm_queued *q;
    while ((q = find_event(from, id, NULL))) {
        STAILQ_REMOVE(&from->events, q, rcm_queued, next);
        STAILQ_INSERT_TAIL(&to->events, q, next);
    }
    show_state(from);
    show_state(to);
}

// Hand out the oldest event; -EAGAIN when there is none.
static int take_event(struct rcm_channel *c, uint64_t response, size_t out_len)
{
    struct rcm_queued *q = STAILQ_FIRST(&c->events);
    if (!q) {
        show_state(c);
        return -EAGAIN;
    }
    if (!response)
        return -EFAULT;
    STAILQ_REMOVE_HEAD(&c->events, next);
    memcpy((void *)(uintptr_t)response, &q->resp,
           out_len < sizeof(q->resp) ? out_len : sizeof(q->resp));
    q->id->reported++;
    if (q->mc)
        q->mc->reported++;
    if (q->request)
        q->id->backlog++;
    free(q);
    show_state(c);
    return 0;
}

// Reading the eventfd waits as the kernel would: signals restart it or not, as they were asked to.
static int wait_event(int fd)
{
    uint64_t count;
    if (fcntl(fd, F_GETFL) & O_NONBLOCK)
        return -EAGAIN;
    return read(fd, &count, sizeof(count)) < 0 ? -errno : 0;
}

int rcm_get_event(struct rcm_channel *c, const struct rdma_ucm_get_event *cmd, size_t out_len)
{
    struct wf_cm_host *host = c->host;
    int fd = c->fd, rc;
    if (out_len < offsetof(struct rdma_ucm_event_resp, reserved))
        return -ENOSPC;
    for (;;) {
        wf_cm_lock(host);
        // The channel may be gone after a wait.
        rc = rcm_channel_of(fd) == c ? take_event(c, cmd->response, out_len) : -EBADF;
        wf_cm_unlock(host);
        if (rc != -EAGAIN)
            return rc;
        rc = wait_event(fd);
        if (rc)
            return rc;
    }
}

// ---- the device ---------------------------------------------------------------------------------

ssize_t rcm_write(struct wf_cm_host *host, int fd, const void *buf, size_t len);

static ssize_t write_channel(int fd, const void *buf, size_t len)
{
    struct wf_cm_host *host;
    int rc = wf_cm_host_get(&host);
    if (rc)
        return rc;
    ssize_t n = channels_host == host ? rcm_write(host, fd, buf, len) : -EBADF;
    wf_cm_host_put(host);
    return n;
}

__attribute__((visibility("default"))) const struct wf_rdmacm_server *weft_rdmacm_server(void)
{
    static const struct wf_rdmacm_server server = {
        .version = WF_RDMACM_SERVER_VERSION,
        .open = open_channel,
        .write = write_channel,
        .close = close_channel,
    };
    return &server;
}
