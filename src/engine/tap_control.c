// SPDX-License-Identifier: BSD-2-Clause
// Who wants faults and captures: the environment when the engine starts, weftd's control page
// later.
#include "engine/tap.h"

#include "link/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void faults_of_file(struct wf_hca *h, const char *path)
{
    struct wf_tap *t = wf_tap_get(h);
    char *text = malloc(WF_FAULT_TEXT + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = text && fd >= 0 ? read(fd, text, WF_FAULT_TEXT + 1) : -1;
    if (n < 0)
        wf_explain(WF_R_FAULTS, "%s: %s", path, strerror(errno));
    else if (t)
        wf_faults_set(t, text, (size_t)n, path);
    if (fd >= 0)
        close(fd);
    free(text);
}

void wf_tap_start(struct wf_hca *h)
{
    const char *faults = getenv("WEFT_FAULTS"), *capture = getenv("WEFT_CAPTURE");
    const char *ring = getenv("WEFT_CAPTURE_RING"), *snap = getenv("WEFT_CAPTURE_SNAPLEN");
    if (faults && *faults)
        faults_of_file(h, faults);
    if (capture && *capture && wf_tap_get(h))
        wf_capture_set(h->tap, capture, ring ? strtoul(ring, NULL, 10) : 0,
                       snap ? (uint32_t)strtoul(snap, NULL, 10) : 0);
    if (h->fabric)
        wf_tap_control(h);
}

void wf_tap_control(struct wf_hca *h)
{
    struct wf_control *c = malloc(sizeof(*c));
    if (!c || wf_fabric_control(h->fabric, c)) {
        free(c);
        return;
    }
    if (c->faults_seq != h->control_faults && wf_tap_get(h)) {
        h->control_faults = c->faults_seq;
        wf_faults_set(h->tap, c->faults, c->faults_len, "weft faults set");
    }
    if (c->capture_seq != h->control_capture && wf_tap_get(h)) {
        h->control_capture = c->capture_seq;
        wf_capture_set(h->tap, c->capture_path[0] ? c->capture_path : NULL, c->capture_ring,
                       c->capture_snaplen);
    }
    free(c);
    wf_thread_kick(h);
}
