// SPDX-License-Identifier: BSD-2-Clause
// A POSIX shared memory object for each job (tag and cookie), user and network namespace of a host.
#include "ugni/msgq.h"
#include "ugni/peer.h"
#include "ugni/state.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONNS 2048u

struct conn {
    _Atomic uint32_t owner; // PE that assigned it; 0: free
    _Atomic uint32_t pe;
    _Atomic uint32_t state; // enum wf_gni_msgq_conn
};

struct shared {
    _Atomic uint32_t attached;
    _Atomic uint32_t max_msg_sz, smsg_q_sz; // of the first to come, plus one
    struct conn conn[CONNS];
};

struct wf_gni_msgq_table {
    struct shared *s;
    char name[96];
};

static void make_name(char *out, size_t n, uint8_t ptag, uint32_t cookie)
{
    struct stat ns = {0};
    if (stat("/proc/self/ns/net", &ns))
        ns.st_ino = 0;
    snprintf(out, n, "/weft-gni-msgq.%u.%lu.%u.%u", getuid(), (unsigned long)ns.st_ino, ptag,
             cookie);
}

// The first process's attributes are everybody's.
static bool agree(_Atomic uint32_t *where, uint32_t value)
{
    uint32_t none = 0;
    return atomic_compare_exchange_strong(where, &none, value + 1) || none == value + 1;
}

struct wf_gni_msgq_table *wf_gni_msgq_table_open(uint8_t ptag, uint32_t cookie,
                                                 const gni_msgq_attr_t *attrs, bool *agrees)
{
    struct wf_gni_msgq_table *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    make_name(t->name, sizeof(t->name), ptag, cookie);
    int fd = shm_open(t->name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *m = MAP_FAILED;
    if (fd >= 0 && !ftruncate(fd, sizeof(struct shared)))
        m = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (m == MAP_FAILED) {
        free(t);
        return NULL;
    }
    t->s = m;
    atomic_fetch_add(&t->s->attached, 1);
    *agrees =
        agree(&t->s->max_msg_sz, attrs->max_msg_sz) && agree(&t->s->smsg_q_sz, attrs->smsg_q_sz);
    return t;
}

void wf_gni_msgq_table_close(struct wf_gni_msgq_table *t)
{
    for (uint32_t i = 0; i < CONNS; i++)
        if (atomic_load(&t->s->conn[i].owner) == wf_gni.pe) {
            atomic_store(&t->s->conn[i].state, WF_GNI_CONN_NONE);
            atomic_store(&t->s->conn[i].owner, 0);
        }
    if (atomic_fetch_sub(&t->s->attached, 1) == 1)
        shm_unlink(t->name);
    munmap(t->s, sizeof(*t->s));
    free(t);
}

static struct conn *own(struct wf_gni_msgq_table *t, uint32_t pe)
{
    for (uint32_t i = 0; i < CONNS; i++)
        if (atomic_load(&t->s->conn[i].owner) == wf_gni.pe && atomic_load(&t->s->conn[i].pe) == pe)
            return &t->s->conn[i];
    return NULL;
}

bool wf_gni_msgq_table_assign(struct wf_gni_msgq_table *t, uint32_t pe)
{
    for (uint32_t i = 0; i < CONNS; i++) {
        uint32_t none = 0;
        if (!atomic_compare_exchange_strong(&t->s->conn[i].owner, &none, wf_gni.pe))
            continue;
        atomic_store(&t->s->conn[i].pe, pe);
        atomic_store(&t->s->conn[i].state, WF_GNI_CONN_ASSIGNED);
        return true;
    }
    return false;
}

enum wf_gni_msgq_conn wf_gni_msgq_table_own(struct wf_gni_msgq_table *t, uint32_t pe)
{
    struct conn *c = own(t, pe);
    return c ? (enum wf_gni_msgq_conn)atomic_load(&c->state) : WF_GNI_CONN_NONE;
}

void wf_gni_msgq_table_connect(struct wf_gni_msgq_table *t, uint32_t pe)
{
    struct conn *c = own(t, pe);
    if (c)
        atomic_store(&c->state, WF_GNI_CONN_UP);
}

void wf_gni_msgq_table_release(struct wf_gni_msgq_table *t, uint32_t pe)
{
    struct conn *c = own(t, pe);
    if (c) {
        atomic_store(&c->state, WF_GNI_CONN_NONE);
        atomic_store(&c->owner, 0);
    }
}

enum wf_gni_msgq_conn wf_gni_msgq_table_find(struct wf_gni_msgq_table *t, uint32_t pe)
{
    enum wf_gni_msgq_conn best = WF_GNI_CONN_NONE;
    for (uint32_t i = 0; i < CONNS; i++) {
        struct conn *c = &t->s->conn[i];
        uint32_t state = atomic_load(&c->state);
        if (atomic_load(&c->owner) && state > best && state <= WF_GNI_CONN_UP &&
            WF_GNI_PE_HOST(atomic_load(&c->pe)) == WF_GNI_PE_HOST(pe))
            best = (enum wf_gni_msgq_conn)state;
    }
    return best;
}
