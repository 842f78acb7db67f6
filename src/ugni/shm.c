// SPDX-License-Identifier: BSD-2-Clause
// Peers on the same host. A process takes a slot by binding an abstract Unix socket that is named
// after it: the kernel keeps slots apart, per user and network namespace, and gives a dead
// process's slot back. Connecting to that socket exchanges the segments; the connection stays,
// because its end is how either side learns that the other died.
#include "ugni/shm.h"
#include "base/reason.h"
#include "ugni/segment.h"
#include "ugni/state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MS 2000 // a listener that takes longer is stopped or gone

struct hello {
    uint32_t magic, version;
    uint32_t pe;
    int32_t pid;
};

// A connection that a peer made, until somebody with the lock takes it over.
struct incoming {
    struct incoming *next;
    struct wf_gni_shm_end end;
};

static struct {
    struct wf_gni_segment *seg;
    int memfd, bell, listener;
    uint32_t slot;
    uint32_t live; // last value given to a region's `live`
    struct wf_gni_peer *by_slot[WF_GNI_SLOTS];
    pthread_mutex_t incoming_lock; // for changing `incoming`; taken after the uGNI lock
    struct incoming *_Atomic incoming;
} shm = {.memfd = -1, .bell = -1, .listener = -1, .incoming_lock = PTHREAD_MUTEX_INITIALIZER};

static socklen_t slot_address(struct sockaddr_un *a, uint32_t slot)
{
    memset(a, 0, sizeof(*a));
    a->sun_family = AF_UNIX;
    int n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "weft-gni.%u.%u", getuid(), slot);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int take_slot(void)
{
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (s < 0)
        return -errno;
    // Start from the pid: a slot is not used again soon, and ranks started together do not collide.
    for (uint32_t i = 0; i < WF_GNI_SLOTS - 1; i++) {
        struct sockaddr_un a;
        uint32_t slot = 1 + ((uint32_t)getpid() + i) % (WF_GNI_SLOTS - 1);
        if (bind(s, (struct sockaddr *)&a, slot_address(&a, slot)))
            continue;
        if (listen(s, WF_GNI_SLOTS))
            break;
        shm.listener = s;
        shm.slot = slot;
        return 0;
    }
    close(s);
    return -ENOSPC;
}

static int make_segment(uint32_t host)
{
    shm.memfd = memfd_create("weft-gni", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (shm.memfd < 0 || ftruncate(shm.memfd, sizeof(struct wf_gni_segment)) ||
        fcntl(shm.memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return -errno;
    void *m =
        mmap(NULL, sizeof(struct wf_gni_segment), PROT_READ | PROT_WRITE, MAP_SHARED, shm.memfd, 0);
    if (m == MAP_FAILED)
        return -errno;
    shm.seg = m;
    shm.seg->magic = WF_GNI_SEGMENT_MAGIC;
    shm.seg->version = WF_GNI_AM_VERSION;
    shm.seg->pe = WF_GNI_PE(host, shm.slot);
    shm.seg->pid = getpid();
    shm.seg->probe = WF_GNI_SEGMENT_MAGIC;
    shm.seg->self = (uintptr_t)&shm.seg->probe;
    return 0;
}

int wf_gni_shm_open(uint32_t host)
{
    int err = take_slot();
    if (!err)
        err = make_segment(host);
    if (!err && (shm.bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
        err = -errno;
    // Lets peers copy to and from this process where the Yama module asks for leave.
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    return err;
}

uint32_t wf_gni_shm_slot(void)
{
    return shm.slot;
}

int wf_gni_shm_listener(void)
{
    return shm.listener;
}

int wf_gni_shm_bell(void)
{
    return shm.bell;
}

_Atomic uint32_t *wf_gni_shm_bell_state(void)
{
    return &shm.seg->bell;
}

// A forked child has neither the slot nor the peers of its parent.
void wf_gni_shm_forget(void)
{
    close(shm.listener);
    for (uint32_t i = 0; i < WF_GNI_SLOTS; i++)
        if (shm.by_slot[i]) {
            close(shm.by_slot[i]->sock[0]);
            if (shm.by_slot[i]->sock[1] >= 0)
                close(shm.by_slot[i]->sock[1]);
            shm.by_slot[i] = NULL;
        }
    shm.seg = NULL;
    shm.incoming = NULL;
    pthread_mutex_init(&shm.incoming_lock, NULL);
}

// ---- connecting ---------------------------------------------------------------------------------

static int send_hello(int s)
{
    struct hello h = {WF_GNI_SEGMENT_MAGIC, WF_GNI_AM_VERSION, shm.seg->pe, getpid()};
    struct iovec iov = {&h, sizeof(h)};
    union {
        char buf[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } c = {0};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.buf, .msg_controllen = sizeof(c.buf)};
    struct cmsghdr *cm = CMSG_FIRSTHDR(&m);
    int fds[2] = {shm.memfd, shm.bell};
    cm->cmsg_level = SOL_SOCKET;
    cm->cmsg_type = SCM_RIGHTS;
    cm->cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(cm), fds, sizeof(fds));
    return sendmsg(s, &m, MSG_NOSIGNAL) == sizeof(h) ? 0 : -EPIPE;
}

static int receive_fds(int s, struct hello *h, int fds[2])
{
    struct iovec iov = {h, sizeof(*h)};
    union {
        char buf[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } c = {0};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.buf, .msg_controllen = sizeof(c.buf)};
    struct pollfd p = {s, POLLIN, 0};
    if (poll(&p, 1, ANSWER_MS) <= 0)
        return -ETIMEDOUT;
    ssize_t n = recvmsg(s, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    struct cmsghdr *cm = CMSG_FIRSTHDR(&m);
    if (n != sizeof(*h) || !cm || cm->cmsg_type != SCM_RIGHTS ||
        cm->cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return -EPROTO;
    memcpy(fds, CMSG_DATA(cm), 2 * sizeof(int));
    return 0;
}

static bool same_user(int s, pid_t *pid)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    if (getsockopt(s, SOL_SOCKET, SO_PEERCRED, &cred, &len) || cred.uid != getuid())
        return false;
    *pid = cred.pid;
    return true;
}

// Maps only what cannot shrink under us.
static struct wf_gni_segment *map_segment(int fd)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) ||
        st.st_size < (off_t)sizeof(struct wf_gni_segment))
        return NULL;
    void *m = mmap(NULL, sizeof(struct wf_gni_segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return m == MAP_FAILED ? NULL : m;
}

// The kernel's answer to one copy decides for all.
static bool try_copy(pid_t pid, uint64_t probe_at)
{
    uint64_t got = 0;
    struct iovec local = {&got, sizeof(got)}, remote = {(void *)(uintptr_t)probe_at, sizeof(got)};
    const char *off = getenv("WEFT_GNI_NO_CMA");
    if (off && *off == '1')
        return false;
    return process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(got) &&
           got == WF_GNI_SEGMENT_MAGIC;
}

static int exchange(int s, struct wf_gni_shm_end *end)
{
    struct hello h;
    int fds[2] = {-1, -1}, err = send_hello(s);
    if (!err)
        err = receive_fds(s, &h, fds);
    if (err)
        return err;
    end->seg = map_segment(fds[0]);
    close(fds[0]);
    end->bell = fds[1];
    end->sock = s;
    end->pe = h.pe;
    if (h.magic != WF_GNI_SEGMENT_MAGIC || h.version != WF_GNI_AM_VERSION || !end->seg ||
        !same_user(s, &end->pid)) {
        if (end->seg)
            munmap(end->seg, sizeof(*end->seg));
        close(end->bell);
        return -EPROTO;
    }
    return 0;
}

static void take_end(struct wf_gni_peer *peer, const struct wf_gni_shm_end *end)
{
    peer->seg = end->seg;
    peer->pid = end->pid;
    peer->bell = end->bell;
    peer->sock[0] = end->sock;
    peer->sock[1] = -1;
    peer->link = &wf_gni_shm_link;
    peer->cma = try_copy(end->pid, end->seg->self);
    if (!peer->cma)
        wf_explain(WF_R_CMA_DENIED, "uGNI PE 0x%x, pid %d", peer->pe, (int)end->pid);
    shm.by_slot[WF_GNI_PE_SLOT(peer->pe)] = peer;
    wf_gni_thread_watch(end->sock, peer);
}

int wf_gni_shm_connect(struct wf_gni_peer *peer)
{
    struct sockaddr_un a;
    struct wf_gni_shm_end end;
    pid_t pid;
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (s < 0)
        return -errno;
    int err =
        connect(s, (struct sockaddr *)&a, slot_address(&a, WF_GNI_PE_SLOT(peer->pe))) ? -ENOENT : 0;
    if (!err && !same_user(s, &pid))
        err = -EACCES;
    if (!err)
        err = exchange(s, &end);
    if (!err && end.pe != peer->pe)
        err = -ENOENT;
    if (err) {
        close(s);
        return err;
    }
    take_end(peer, &end);
    return 0;
}

// In the listener's thread, without the uGNI lock: a peer that holds its own lock waits for this.
void wf_gni_shm_accept(void)
{
    int s = accept4(shm.listener, NULL, NULL, SOCK_CLOEXEC);
    struct incoming *in = s < 0 ? NULL : calloc(1, sizeof(*in));
    pid_t pid;
    if (!in || !same_user(s, &pid)) {
        if (s >= 0)
            close(s);
        free(in);
        return;
    }
    struct hello h;
    int fds[2];
    if (receive_fds(s, &h, fds)) {
        close(s);
        free(in);
        return;
    }
    in->end = (struct wf_gni_shm_end){map_segment(fds[0]), fds[1], s, h.pe, pid};
    close(fds[0]);
    if (!in->end.seg || h.magic != WF_GNI_SEGMENT_MAGIC || h.version != WF_GNI_AM_VERSION ||
        !WF_GNI_PE_SLOT(h.pe)) {
        close(s);
        close(fds[1]);
        free(in);
        return;
    }
    pthread_mutex_lock(&shm.incoming_lock);
    in->next = shm.incoming;
    shm.incoming = in;
    pthread_mutex_unlock(&shm.incoming_lock);
    send_hello(s);
}

// Peers that connected become peers of ours. When both sides connected at once, the second
// connection is kept for its end only.
static void adopt_incoming(void)
{
    pthread_mutex_lock(&shm.incoming_lock);
    struct incoming *list = shm.incoming;
    shm.incoming = NULL;
    pthread_mutex_unlock(&shm.incoming_lock);
    while (list) {
        struct incoming *in = list;
        list = in->next;
        struct wf_gni_peer *p = shm.by_slot[WF_GNI_PE_SLOT(in->end.pe)];
        if (p && !p->dead && p->pid == in->end.pid && p->sock[1] < 0) {
            p->sock[1] = in->end.sock;
            wf_gni_thread_watch(in->end.sock, p);
            close(in->end.bell);
            munmap(in->end.seg, sizeof(*in->end.seg));
        } else {
            if (p && !p->dead)
                wf_gni_peer_died(p);
            p = wf_gni_peer_new(in->end.pe);
            if (p)
                take_end(p, &in->end);
        }
        free(in);
    }
}

static void shm_close(struct wf_gni_peer *peer)
{
    for (int i = 0; i < 2; i++)
        if (peer->sock[i] >= 0)
            close(peer->sock[i]);
    close(peer->bell);
    munmap(peer->seg, sizeof(*peer->seg));
    peer->seg = NULL;
    if (shm.by_slot[WF_GNI_PE_SLOT(peer->pe)] == peer)
        shm.by_slot[WF_GNI_PE_SLOT(peer->pe)] = NULL;
}

// ---- messages -----------------------------------------------------------------------------------

static int shm_send(struct wf_gni_peer *peer, const struct wf_gni_am *am, const void *payload)
{
    int err = wf_gni_ring_put(&peer->seg->ring[shm.slot], am, payload);
    if (err)
        return err;
    atomic_fetch_or(&peer->seg->pending[shm.slot / 64], 1ull << shm.slot % 64);
    uint32_t armed = WF_GNI_BELL_ARMED;
    if (atomic_load(&peer->seg->bell) == armed &&
        atomic_compare_exchange_strong(&peer->seg->bell, &armed, WF_GNI_BELL_RUNG)) {
        uint64_t one = 1;
        if (write(peer->bell, &one, sizeof(one)) < 0)
            return 0; // full counter: it rings already
    }
    return 0;
}

const struct wf_gni_link wf_gni_shm_link = {shm_send, shm_close};

static void drain(uint32_t slot)
{
    struct wf_gni_ring *ring = &shm.seg->ring[slot];
    struct wf_gni_am am;
    const void *payload;
    if (atomic_load(&shm.incoming)) // a new process may have the slot
        adopt_incoming();
    for (unsigned i = 0; i < 256; i++) {
        int got = wf_gni_ring_get(ring, &am, &payload);
        if (got < 0)
            wf_explain(WF_R_BAD_PACKET, "uGNI message ring of slot %u", slot);
        if (got <= 0)
            return;
        if (shm.by_slot[slot])
            wf_gni_am_handle(shm.by_slot[slot], &am, payload);
        wf_gni_ring_done(ring, &am);
    }
    atomic_fetch_or(&shm.seg->pending[slot / 64], 1ull << slot % 64);
}

bool wf_gni_shm_pending(void)
{
    uint64_t any = 0;
    for (unsigned w = 0; w < WF_GNI_SLOTS / 64; w++)
        any |= atomic_load_explicit(&shm.seg->pending[w], memory_order_relaxed);
    return any != 0;
}

bool wf_gni_shm_poll(void)
{
    bool found = false;
    for (unsigned w = 0; w < WF_GNI_SLOTS / 64; w++) {
        if (!atomic_load_explicit(&shm.seg->pending[w], memory_order_relaxed))
            continue;
        uint64_t bits = atomic_exchange(&shm.seg->pending[w], 0);
        found = true;
        for (; bits; bits &= bits - 1)
            drain(w * 64 + (uint32_t)__builtin_ctzll(bits));
    }
    return found;
}

// ---- regions ------------------------------------------------------------------------------------

void wf_gni_shm_region(uint32_t number)
{
    const struct wf_gni_region *r = &wf_gni.region[number];
    struct wf_gni_seg_region *s = &shm.seg->region[number];
    atomic_store(&s->live, 0);
    if (!r->live || r->reserved)
        return;
    s->ptag = r->ptag;
    s->flags = r->flags;
    s->has_cq = r->cq != NULL;
    s->by_message = r->n_segs != 0;
    s->addr = r->addr;
    s->len = r->len;
    if (++shm.live == 0)
        shm.live = 1;
    atomic_store(&s->live, shm.live);
}

// A consistent copy; false when there is no region.
static bool peer_region(struct wf_gni_peer *peer, uint32_t number, struct wf_gni_seg_region *out)
{
    const struct wf_gni_seg_region *s = &peer->seg->region[number];
    for (int tries = 0; tries < 1000; tries++) {
        uint32_t live = atomic_load(&s->live);
        *out = (struct wf_gni_seg_region){.ptag = s->ptag,
                                          .flags = s->flags,
                                          .has_cq = s->has_cq,
                                          .by_message = s->by_message,
                                          .addr = s->addr,
                                          .len = s->len};
        atomic_thread_fence(memory_order_acquire);
        if (!live)
            return false;
        if (atomic_load(&s->live) == live)
            return true;
    }
    return false;
}

static int copy_all(pid_t pid, uint64_t addr, char *local, uint64_t len, bool write)
{
    while (len) {
        size_t n = len < (1u << 30) ? (size_t)len : 1u << 30;
        struct iovec l = {local, n}, r = {(void *)(uintptr_t)addr, n};
        ssize_t done = write ? process_vm_writev(pid, &l, 1, &r, 1, 0)
                             : process_vm_readv(pid, &l, 1, &r, 1, 0);
        if (done <= 0)
            return errno == ESRCH ? WF_GNI_ST_PEER_DIED : WF_GNI_ST_TRANSLATION;
        local += done;
        addr += (uint64_t)done;
        len -= (uint64_t)done;
    }
    return WF_GNI_ST_OK;
}

int wf_gni_shm_copy(struct wf_gni_peer *peer, uint8_t ptag, uint32_t region, uint64_t at,
                    void *local, uint64_t len, bool write)
{
    struct wf_gni_seg_region r;
    if (peer->link != &wf_gni_shm_link || !peer->cma)
        return -1;
    if (!peer_region(peer, region, &r))
        return WF_GNI_ST_MDD;
    if (r.by_message)
        return -1;
    if (r.ptag != ptag || (write && r.flags & WF_GNI_MH_READ_ONLY))
        return WF_GNI_ST_PROTECTION;
    if (r.flags & WF_GNI_MH_VMDH && at >= r.addr) // as in target.c
        at -= r.addr;
    if (len > r.len || at > r.len - len)
        return WF_GNI_ST_BOUNDS;
    return copy_all(peer->pid, r.addr + at, local, len, write);
}
