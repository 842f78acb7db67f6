// SPDX-License-Identifier: BSD-2-Clause
// Everything uGNI knows in a process. One lock covers all of it; no callback of the program runs
// under it, and no call blocks while it is held (see lock.c for the one exception, connecting).
#ifndef WF_UGNI_STATE_H
#define WF_UGNI_STATE_H

#include "ugni/am.h"
#include "ugni/device.h"
#include "ugni/entry.h"
#include "ugni/memhndl.h"
#include "ugni/pool.h"
#include <gni_kernel.h>
#include <stdbool.h>
#include <sys/types.h>
#include <uthash.h>
#include <utlist.h>

#define WF_GNI_STATS    21 // the longer list
#define WF_GNI_INFINITE UINT64_MAX

struct wf_gni_peer;
struct wf_gni_session;

// ---- objects ------------------------------------------------------------------------------------

struct gni_cdm {
    struct wf_gni_obj obj;
    uint32_t inst_id, cookie, modes;
    uint8_t ptag;
    bool checkpointed;
    bool kernel; // made by gni_cdm_create()
    struct gni_nic *nic;
    struct gni_cdm *prev, *next;
};

struct gni_nic {
    struct wf_gni_obj obj;
    struct gni_cdm *cdm;
    struct gni_ep *eps;
    struct gni_cq *cqs;
    struct gni_ce *ces;
    struct gni_msgq *msgqs;
    struct gni_err *errs;
    struct gni_comp_chan *chans;
    struct wf_gni_session *sessions; // datagrams posted here, in order
    struct wf_gni_parked *parked;    // datagrams that came first
    uint32_t n_ces, regions;
    uint32_t mdd_entries; // of the vmdh block, 0: none
    uint16_t max_retrans, dlvr_mode;
    uint32_t stats[WF_GNI_STATS];
    gni_errno_t last;
    void (*quiesce)(gni_nic_handle_t, uint64_t);
    struct wf_gni_sleeper *sleepers; // threads that wait for datagrams
};

enum wf_gni_cq_use { WF_GNI_CQ_UNUSED, WF_GNI_CQ_SOURCE, WF_GNI_CQ_DESTINATION };

struct gni_cq {
    struct wf_gni_obj obj;
    struct gni_nic *nic;
    gni_cq_entry_t *ring;
    uint32_t size, head, count;
    bool overrun;
    gni_cq_mode_t mode;
    enum wf_gni_cq_use use;
    uint32_t users; // endpoints, regions, collective channels, message queues
    uint32_t slots, slots_used;
    struct wf_gni_req *reqs;
    uint32_t masked;
    void (*handler)(gni_cq_entry_t *, void *);
    void *context;
    gni_cq_event_hndlr_f *kernel_handler;
    uint64_t kernel_data;
    uint32_t kernel_delay, kernel_pending;
    int wait_fd; // eventfd; -1 until somebody waits
    uint32_t waiters;
    struct gni_comp_chan *chan;
    bool armed;
    struct gni_cq *prev, *next;
    struct gni_cq *chan_next; // in the channel's queue of what fired
    bool fired;
};

struct wf_gni_smsg; // smsg.h

struct gni_ep {
    struct wf_gni_obj obj;
    struct gni_nic *nic;
    struct gni_cq *cq; // may be NULL
    bool bound;
    uint32_t pe, remote_id;
    uint32_t local_event, remote_event;
    struct wf_gni_req *reqs; // posts and sends without their completion
    struct wf_gni_session *session;
    struct wf_gni_smsg *smsg;
    struct wf_gni_peer *peer; // of a bound endpoint, found at the first use
    bool ce_set;
    uint32_t ce_id, ce_child;
    gni_ce_child_t ce_type;
    struct gni_ep *prev, *next;
};

// A post or a message send until its completion was fetched. Its index in the pool is the tid.
struct wf_gni_req {
    struct wf_gni_obj obj;
    struct gni_cq *cq;            // NULL: silent, or the queue is gone
    struct gni_ep *ep;            // NULL: gone
    gni_post_descriptor_t *descr; // NULL: a message send
    uint32_t local_event, remote_event;
    uint16_t cq_mode;
    uint8_t status;       // enum wf_gni_status: the first failure
    uint8_t source;       // enum wf_gni_source
    uint8_t type;         // GNI_CQ_EVENT_TYPE_*
    uint8_t entries_left; // made, not fetched
    bool done;
    uint32_t parts; // transfers not finished
    uint32_t *flag; // flagged get or AMO: set behind the data
    uint32_t flag_value;
    struct wf_gni_req *prev, *next;   // of the queue
    struct wf_gni_req *eprev, *enext; // of the endpoint, until it is done
};

struct wf_gni_region {
    bool live;
    bool held; // deregistered, the number kept
    struct gni_nic *nic;
    struct gni_cq *cq; // events of remote posts, or NULL
    uint8_t ptag;
    uint8_t flags;      // enum wf_gni_mh_flags
    uint64_t addr, len; // whole pages; of segments: 0 and the sum
    gni_mem_segment_t *segs;
    uint32_t n_segs;
    bool reserved;     // GNI_MEM_RESERVE_REGION, not updated yet
    uint64_t amo_page; // last page that an AMO found mapped
    uint64_t held_until;
    gni_mem_handle_t handle;
};

struct gni_err {
    struct wf_gni_obj obj;
    struct gni_nic *nic; // NULL: all
    uint8_t ptag;        // 0: all
    gni_error_mask_t mask;
    gni_error_event_t *queue;
    uint32_t size, head, count, waiters;
    int fd;
    void (*new_event)(gni_err_handle_t);
    void (*critical)(gni_err_handle_t);
    bool call_new, call_critical;
    struct gni_err *prev, *next;   // of the NIC
    struct gni_err *aprev, *anext; // of the process
};

struct gni_comp_chan {
    struct wf_gni_obj obj;
    struct gni_nic *nic;
    int fd;
    struct gni_cq *first, *last; // fired queues
    uint32_t users;
    struct gni_comp_chan *prev, *next;
};

// ---- the process --------------------------------------------------------------------------------

struct wf_gni_state {
    bool joined;
    uint32_t pe; // (host part << 8) | slot
    struct gni_cdm *cdms;
    struct gni_err *errs;
    struct wf_gni_parked *orphans; // datagrams for domains that do not exist yet
    struct wf_gni_region region[WF_GNI_REGIONS];
    uint32_t next_region, live_regions;
    struct wf_gni_pool cdm_pool, nic_pool, ep_pool, cq_pool, err_pool, chan_pool, req_pool;
};
extern struct wf_gni_state wf_gni;

void wf_gni_lock(void);
void wf_gni_unlock(void);

// Record a refusal with its text and return `rc`.
gni_return_t wf_gni_refuse(gni_return_t rc, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
// The same, also remembered as the NIC handle's last failure for gni_get_errno().
gni_return_t wf_gni_fail(struct gni_nic *nic, gni_return_t rc, const char *func, const char *fmt,
                         ...) __attribute__((format(printf, 4, 5)));

static inline struct gni_cdm *wf_gni_cdm(gni_cdm_handle_t h)
{
    return wf_gni_pool_check(&wf_gni.cdm_pool, h);
}

static inline struct gni_nic *wf_gni_nic(gni_nic_handle_t h)
{
    return wf_gni_pool_check(&wf_gni.nic_pool, h);
}

static inline struct gni_ep *wf_gni_ep(gni_ep_handle_t h)
{
    return wf_gni_pool_check(&wf_gni.ep_pool, h);
}

static inline struct gni_cq *wf_gni_cq(gni_cq_handle_t h)
{
    return wf_gni_pool_check(&wf_gni.cq_pool, h);
}

// Milliseconds of a caller, all ones for ever, as a point in time.
uint64_t wf_gni_deadline(uint64_t timeout_ms, uint64_t forever);

// ---- between the files, all under the lock ------------------------------------------------------

// Joins the host's uGNI processes on first use. False: no slot or no thread could be had.
bool wf_gni_join(void);
// Take in what arrived. Called by every call that looks for results.
void wf_gni_progress(void);
// After a look that found nothing (or something), with the lock released.
void wf_gni_idle(bool idle);
// The caller is about to sleep: the thread serves from now on.
void wf_gni_doze(void);
// Sleep on `fd` until it is readable or the deadline; releases the lock meanwhile, and a cancelled
// thread leaves `*waiters` right. False: interrupted by a signal.
bool wf_gni_sleep(int *fd, uint32_t *waiters, uint64_t deadline);
// The same on several at once: descriptors and counts of waiters, pairwise.
struct wf_gni_waitable {
    int *fd;
    uint32_t *waiters;
};
bool wf_gni_sleep_any(const struct wf_gni_waitable *w, uint32_t n, uint64_t deadline);
void wf_gni_wake(int fd, uint32_t waiters);
// An object is about to go: send away who sleeps on it. Gives the lock up meanwhile.
void wf_gni_evict(struct wf_gni_obj *obj, int fd, const uint32_t *waiters);

void wf_gni_cq_push(struct gni_cq *cq, gni_cq_entry_t entry);
void wf_gni_ep_release(struct gni_ep *ep);
// The peer of a bound endpoint; NULL when nobody is there.
struct wf_gni_peer *wf_gni_ep_peer(struct gni_ep *ep);
void wf_gni_nic_release(struct gni_nic *nic);
void wf_gni_cq_release(struct gni_cq *cq);
void wf_gni_region_release(uint32_t number);
void wf_gni_err_release(struct gni_err *err);
void wf_gni_chan_release(struct gni_comp_chan *chan);
void wf_gni_chan_forget(struct gni_cq *cq);
void wf_gni_chan_fire(struct gni_cq *cq);

struct wf_gni_req *wf_gni_req_get(struct gni_ep *ep, struct gni_cq *cq);
void wf_gni_req_put(struct wf_gni_req *req);
// One transfer of the request ended; the last one makes the events.
void wf_gni_req_part_done(struct wf_gni_req *req, enum wf_gni_status status);

void wf_gni_error_event(struct gni_nic *nic, uint8_t category, uint16_t code, uint64_t info);

#endif
