// SPDX-License-Identifier: BSD-2-Clause
// Loss, duplication, reordering and corruption on the way out, for tests: the same seed and the
// same packets give the same faults.
#include "link/udp_internal.h"

#include "base/reason.h"

#include <errno.h>
#include <stdlib.h>

#define HELD     8
#define MAX_LATE 7 // packets that may overtake a held one

struct held {
    struct wf_path path;
    struct wf_pkt pkt;
    struct iovec iov;
    int late; // packets still to overtake it; 0: free
    bool seen_flush;
};

struct wf_udp_faults {
    double drop, dup, reorder, corrupt;
    uint64_t seed;
    struct held held[HELD];
};

static uint64_t next_random(struct wf_udp_faults *f) // splitmix64
{
    uint64_t z = f->seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static bool happens(struct wf_udp_faults *f, double rate)
{
    return (double)(next_random(f) >> 11) * 0x1p-53 < rate;
}

static int set_one(struct wf_udp_faults *f, const char *name, const char *value)
{
    char *end;
    double v = strtod(value, &end);
    if (end == value || *end || !(v >= 0))
        return -EINVAL;
    if (strcmp(name, "seed") == 0) {
        f->seed = strtoull(value, NULL, 10);
        return 0;
    }
    struct {
        const char *name;
        double *rate;
    } rates[] = {
        {"drop", &f->drop}, {"dup", &f->dup}, {"reorder", &f->reorder}, {"corrupt", &f->corrupt}};
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
        if (strcmp(name, rates[i].name) == 0 && v <= 1) {
            *rates[i].rate = v;
            return 0;
        }
    return -EINVAL;
}

static int parse(struct wf_udp_faults *f, char *text)
{
    char *save = NULL;
    for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(word, '=');
        if (!eq)
            return -EINVAL;
        *eq = 0;
        if (set_one(f, word, eq + 1))
            return -EINVAL;
    }
    return 0;
}

struct wf_udp_faults *wf_udp_faults_create(const char *text)
{
    if (!text || !*text)
        return NULL;
    struct wf_udp_faults *f = calloc(1, sizeof(*f));
    char *copy = strdup(text);
    if (!f || !copy || parse(f, copy)) {
        wf_explain(WF_R_ARG,
                   "WEFT_UDP_FAULTS=%s is ignored: want drop, dup, reorder, corrupt = "
                   "0..1 and seed = number, with commas between",
                   text);
        wf_udp_faults_destroy(f);
        f = NULL;
    }
    free(copy);
    return f;
}

static void release(struct held *h)
{
    free(h->iov.iov_base);
    h->iov.iov_base = NULL;
    h->late = 0;
}

void wf_udp_faults_destroy(struct wf_udp_faults *f)
{
    if (!f)
        return;
    for (int i = 0; i < HELD; i++)
        release(&f->held[i]);
    free(f);
}

static bool hold(struct wf_udp_faults *f, const struct wf_path *path, const struct wf_pkt *pkt)
{
    struct held *h = NULL;
    for (int i = 0; i < HELD; i++)
        if (!f->held[i].late)
            h = &f->held[i];
    uint8_t *copy = h ? malloc(pkt->len + 1) : NULL;
    if (!copy)
        return false;
    struct wf_writer w = wf_writer_of(copy, pkt->len);
    for (int i = 0; i < pkt->niov; i++)
        wf_put_bytes(&w, pkt->iov[i].iov_base, pkt->iov[i].iov_len);
    *h = (struct held){.path = *path, .pkt = *pkt, .iov = {copy, pkt->len}};
    h->pkt.iov = &h->iov;
    h->pkt.niov = pkt->len != 0;
    h->late = 1 + (int)(next_random(f) % MAX_LATE);
    return true;
}

// A held packet that finds no room is lost, which is what faults are for.
static void send_held(struct wf_udp_link *u, struct held *h)
{
    (void)wf_udp_tx_queue(u, &h->path, &h->pkt, true, 0);
    release(h);
}

static void overtake(struct wf_udp_link *u)
{
    for (int i = 0; i < HELD; i++) {
        struct held *h = &u->faults->held[i];
        if (h->late && --h->late == 0)
            send_held(u, h);
    }
}

int wf_udp_faults_send(struct wf_udp_link *u, const struct wf_path *path, const struct wf_pkt *pkt)
{
    struct wf_udp_faults *f = u->faults;
    // Every packet draws as often, so that one rate does not shift the others' choices.
    bool drop = happens(f, f->drop), dup = happens(f, f->dup), late = happens(f, f->reorder);
    uint32_t bit = (uint32_t)(next_random(f) >> 33) + 1;
    uint32_t flip = happens(f, f->corrupt) ? bit : 0;
    if (drop)
        return 0;
    if (late && hold(f, path, pkt))
        return 0;
    int rc = wf_udp_tx_queue(u, path, pkt, flip != 0, flip);
    if (rc)
        return rc;
    if (dup)
        (void)wf_udp_tx_queue(u, path, pkt, false, 0);
    overtake(u);
    return 0;
}

// A packet that nothing overtook by the second flush would be a lost one; let it go.
void wf_udp_faults_flush(struct wf_udp_link *u)
{
    for (int i = 0; i < HELD; i++) {
        struct held *h = &u->faults->held[i];
        if (h->late && h->seen_flush)
            send_held(u, h);
        else
            h->seen_flush = true;
    }
}
