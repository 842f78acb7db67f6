// SPDX-License-Identifier: BSD-2-Clause
// What shm.c and the threads tell each other.
#ifndef WF_UGNI_SHM_H
#define WF_UGNI_SHM_H

#include "ugni/peer.h"

// The other side of a connection on the same host.
struct wf_gni_shm_end {
    struct wf_gni_segment *seg;
    int bell, sock;
    uint32_t pe;
    pid_t pid;
};

extern const struct wf_gni_link wf_gni_shm_link;

int wf_gni_shm_listener(void);
int wf_gni_shm_bell(void);
_Atomic uint32_t *wf_gni_shm_bell_state(void);
bool wf_gni_shm_pending(void);
void wf_gni_shm_accept(void);
void wf_gni_shm_forget(void);

// Watch a connection for its end; thread.c.
void wf_gni_thread_watch(int fd, struct wf_gni_peer *peer);

#endif
