// SPDX-License-Identifier: BSD-2-Clause
// Fault rules and captures for all processes: kept in the shared file, where those that come later
// find them too.
#include "daemon/daemon.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void begin(struct wf_control *c)
{
    atomic_fetch_add_explicit(&c->seq, 1, memory_order_acq_rel);
    atomic_thread_fence(memory_order_release);
}

static void end(struct weftd *d)
{
    atomic_fetch_add_explicit(&d->gids.control->seq, 1, memory_order_release);
    client_broadcast(d, &(struct wf_fmsg){.type = WF_F_CONTROL}, NULL);
}

void control_adopt(struct weftd *d, const struct wf_control *old)
{
    struct wf_control *c = d->gids.control;
    if (old->faults_len > sizeof(old->faults))
        return;
    begin(c);
    c->faults_seq = old->faults_seq;
    c->faults_len = old->faults_len;
    memcpy(c->faults, old->faults, sizeof(c->faults));
    c->capture_seq = old->capture_seq;
    c->capture_ring = old->capture_ring;
    c->capture_snaplen = old->capture_snaplen;
    memcpy(c->capture_path, old->capture_path, sizeof(c->capture_path));
    c->capture_path[sizeof(c->capture_path) - 1] = 0;
    end(d);
}

int control_faults(struct weftd *d, int fd, uint64_t len)
{
    static struct wf_fault_rules rules;
    static char text[WF_FAULT_TEXT];
    struct wf_control *c = d->gids.control;
    char err[256];
    if (len > sizeof(text) || (len && (fd < 0 || pread(fd, text, len, 0) != (ssize_t)len)))
        return -EINVAL;
    if (wf_fault_parse(text, len, &rules, err, sizeof(err)))
        return -EINVAL;
    begin(c);
    memcpy(c->faults, text, len);
    c->faults_len = (uint32_t)len;
    c->faults_seq++;
    end(d);
    return 0;
}

int control_capture(struct weftd *d, const struct wf_fmsg *m)
{
    struct wf_control *c = d->gids.control;
    if (!memchr(m->mad, 0, sizeof(m->mad)) || (m->mad[0] && m->mad[0] != '/'))
        return -EINVAL;
    if (m->mad[0] && c->capture_path[0])
        return -EBUSY;
    begin(c);
    memcpy(c->capture_path, m->mad, sizeof(m->mad));
    c->capture_ring = m->a;
    c->capture_snaplen = m->index;
    c->capture_seq++;
    end(d);
    return 0;
}
