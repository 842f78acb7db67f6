// SPDX-License-Identifier: BSD-2-Clause
// The other processes of this host, mapped when first needed.
#include "base/reason.h"
#include "link/fabric_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Without these seals the owner could shrink the file under our feet.
static int map_region(int fd, struct wf_region **out)
{
    int seals = fcntl(fd, F_GET_SEALS);
    off_t size = lseek(fd, 0, SEEK_END);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || size != (off_t)sizeof(struct wf_region))
        return -EPROTO;
    void *p = mmap(NULL, sizeof(struct wf_region), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    madvise(p, sizeof(struct wf_region), MADV_DONTDUMP);
    *out = p;
    return 0;
}

static int make_peer(struct wf_fabric *f, const struct wf_fmsg *m, int fds[WF_FABRIC_FDS],
                     struct peer_entry **out)
{
    struct wf_region *r = NULL;
    int ret = map_region(fds[0], &r);
    if (ret)
        return ret;
    struct peer_entry *e = calloc(1, sizeof(*e));
    if (!e || r->magic != WF_REGION_MAGIC || fds[1] < 0) {
        free(e);
        wf_region_unmap(r);
        return e ? -EPROTO : -ENOMEM;
    }
    struct wf_peer *p = &e->peer;
    p->slot = m->slot;
    p->self = f->slot;
    p->generation = m->generation;
    p->pid = r->pid;
    p->doorbell = fds[1];
    fds[1] = -1;
    p->alive = true;
    p->region = r;
    p->cma = wf_region_probe(p->pid, r->probe_addr, r->probe_value);
    if (!p->cma)
        wf_explain(WF_R_CMA_DENIED, "process %d in slot %u", p->pid, p->slot);
    *out = e;
    return 0;
}

int wf_fabric_peer(struct wf_fabric *f, uint32_t slot, struct wf_peer **out)
{
    if (slot == 0 || slot >= WF_SLOTS)
        return -ENOENT;
    struct peer_entry *e = f->peers[slot];
    if (e && e->peer.alive) {
        *out = &e->peer;
        return 0;
    }
    struct wf_fmsg m = {.type = WF_F_PEER, .slot = slot};
    int fds[WF_FABRIC_FDS];
    int ret = wf_fabric_request(f, &m, fds);
    if (ret == 0) {
        m.slot = slot;
        ret = make_peer(f, &m, fds, &e);
    }
    for (int i = 0; i < WF_FABRIC_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (ret == -EMFILE)
        return wf_refuse(EMFILE, WF_R_LIMIT, "meeting the process in slot %u: no descriptor left",
                         slot);
    if (ret)
        return ret;
    e->older = f->peers[slot];
    f->peers[slot] = e;
    *out = &e->peer;
    return 0;
}

void wf_fabric_peer_died(struct wf_fabric *f, uint32_t slot, uint64_t generation)
{
    for (struct peer_entry *e = f->peers[slot]; e; e = e->older)
        if (e->peer.generation == generation)
            e->peer.alive = false;
}

void wf_fabric_free_peers(struct wf_fabric *f)
{
    for (int i = 0; i < WF_SLOTS; i++) {
        while (f->peers[i]) {
            struct peer_entry *e = f->peers[i];
            f->peers[i] = e->older;
            close(e->peer.doorbell);
            wf_region_unmap(e->peer.region);
            free(e);
        }
    }
}
