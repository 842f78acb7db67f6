// SPDX-License-Identifier: BSD-2-Clause
// What completion and asynchronous events share: a descriptor that is readable exactly while a
// queue holds events, and the count of acknowledgements that destroying an object waits for.
#include "base/notes.h"
#include "verbs/face.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

int wf_event_fd(void)
{
    return eventfd(0, EFD_CLOEXEC);
}

// Once per event, so that edge-triggered pollers see each one.
void wf_event_signal(int fd)
{
    uint64_t one = 1;

    (void)!write(fd, &one, sizeof(one));
}

// Under the queue's lock, when the last event leaves it: the counter is not 0, so this never
// blocks.
void wf_event_drain(int fd)
{
    uint64_t n;

    (void)!read(fd, &n, sizeof(n));
}

// Sleep until the queue may hold something: 0, or -EAGAIN for a descriptor that must not block,
// or -EINTR.
int wf_event_wait(int fd, struct wf_hca *hca)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -errno;
    wf_hca_doze(hca);
    if (flags & O_NONBLOCK)
        return poll(&pfd, 1, 0) > 0 ? 0 : -EAGAIN;
    return poll(&pfd, 1, -1) < 0 ? -errno : 0;
}

// More acknowledgements than events would let a later destroy return too early: count no more than
// were handed out.
void wf_vacks_done(const struct wf_vacks *acks, uint32_t n)
{
    uint32_t left;

    pthread_mutex_lock(acks->mutex);
    left = atomic_load(acks->delivered) - *acks->completed;
    *acks->completed += n < left ? n : left;
    pthread_cond_broadcast(acks->cond);
    pthread_mutex_unlock(acks->mutex);
    if (n > left)
        wf_explain(WF_R_EVENT_ACK, "%s %u: %u events acknowledged, %u were outstanding", acks->what,
                   acks->id, n, left);
}

void wf_vacks_wait(const struct wf_vacks *acks)
{
    bool told = false;
    uint32_t missing;
    int wait = -1;

    pthread_mutex_lock(acks->mutex);
    while ((missing = atomic_load(acks->delivered) - *acks->completed) != 0) {
        struct timespec until;

        if (told) {
            pthread_cond_wait(acks->cond, acks->mutex);
            continue;
        }
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        if (pthread_cond_timedwait(acks->cond, acks->mutex, &until) == ETIMEDOUT) {
            wf_explain(WF_R_EVENT_ACK, "destroying %s %u waits for %u events to be acknowledged",
                       acks->what, acks->id, missing);
            wait = wf_wait_begin("destroying %s %u waits for %u events to be acknowledged",
                                 acks->what, acks->id, missing);
            told = true;
        }
    }
    wf_wait_end(wait);
    pthread_mutex_unlock(acks->mutex);
}
