// SPDX-License-Identifier: BSD-2-Clause
// The engine's own view of itself. One lock protects everything in here; wf_enter() and wf_exit()
// bracket every public function. docs/locking.md tells the rest.
#ifndef WF_ENGINE_ENGINE_H
#define WF_ENGINE_ENGINE_H

#include "base/tsc.h"
#include "engine/hca.h"
#include "link/fabric.h"
#include "link/link.h"
#include "mem/keys.h"
#include "qp/qp.h"

#include <pthread.h>

// Device limits, all true: tests/limits uses them.
#define WF_LIMIT_QP      65000
#define WF_LIMIT_CQ      65536
#define WF_LIMIT_CQE     (1u << 22)
#define WF_LIMIT_SRQ     65000
#define WF_LIMIT_SRQ_WR  WF_MAX_WR
#define WF_LIMIT_MR      (WF_KEYTAB_SIZE - 2)
#define WF_LIMIT_PD      (1u << 20)
#define WF_LIMIT_AH      (1u << 20)
#define WF_LIMIT_RD_ATOM 128
#define WF_LIMIT_MSG     (1u << 30)
#define WF_LIMIT_MCAST   8192
#define WF_PORTS         1
#define WF_PKEYS         16
#define WF_NO_QP_INDEX   UINT32_MAX

struct wf_pd {
    uint32_t num;
    uint32_t users;
    struct wf_ctx *ctx;
    struct wf_pd *prev, *next;
};

struct wf_mr {
    struct wf_pd *pd;
    uint32_t index;
    struct wf_key_entry fields;
    struct wf_mr *prev, *next;
};

struct wf_mw {
    struct wf_pd *pd;
    uint32_t index;
    uint32_t rkey; // the key it would have or has
    struct wf_mw *prev, *next;
};

struct wf_xrcd {
    uint32_t num;
    uint32_t refs, users;
    bool has_inode;
    uint64_t dev, ino;
    struct wf_hca *hca;
    struct wf_xrcd *prev, *next;
};

struct wf_mcast_member {
    struct wf_qp *qp;
    union ibv_gid mgid;
    struct wf_mcast_member *prev, *next;
};

struct wf_ctx {
    struct wf_hca *hca;
    const struct wf_ctx_ops *ops;
    void *user;
    struct wf_pd *pds;
    struct wf_mr *mrs;
    struct wf_mw *mws;
    struct wf_cq *cqs;
    struct wf_srq *srqs;
    struct wf_qp *qps;
    struct wf_ctx *prev, *next;
};

// A path with its count of users.
struct wf_path_ref {
    struct wf_path path; // first: the layers below see this
    uint32_t refs;
    bool fixed; // path.link and path.peer hold for every packet (connected QPs)
};

struct wf_qp_list {
    struct wf_qp *head, *tail;
};

enum wf_thread_mode { WF_THREAD_WATCH, WF_THREAD_DOZE };

struct wf_tap;

struct wf_hca {
    pthread_mutex_t lock;
    struct wf_qp_env env;
    struct wf_keys keys;
    struct wf_fabric *fabric; // NULL in tests with an injected link
    struct wf_region *region;
    uint32_t slot;
    struct wf_link *loop, *shm, *udp;
    uint64_t (*clock)(void *arg); // NULL: the real one
    void *clock_arg;
    struct wf_tsc tsc;
    bool fresh; // env.now was read since the lock was taken
    struct wf_gid_table gids;
    uint64_t node_guid; // never changes, so it is read without the lock

    struct wf_qp **qps; // by index, WF_QP_PER_PROCESS
    struct wf_srq **srqs;
    uint32_t next_qp, next_srq, next_pd, next_xrcd;
    uint32_t live_qps, live_srqs, live_cqs;
    uint32_t udp_qps; // connected QPs whose path is udp
    uint32_t ud_qps;
    struct wf_ctx *ctxs;
    struct wf_xrcd *xrcds;
    struct wf_mcast_member *mcast;

    struct wf_qp_list ready, blocked;
    uint32_t urgent;     // of `ready`: have more to do than to acknowledge (never too low)
    uint32_t ack_waits;  // polls since the oldest acknowledgement became due
    struct wf_qp **heap; // timers, by heap_key
    uint32_t heap_len, heap_room;

    // Progress and the engine's thread.
    pthread_t thread;
    bool threaded, stopping;
    int kick_fd;
    enum wf_thread_mode mode;
    uint32_t polls;       // progress made by callers, for the thread to see
    uint64_t earnest_ns;  // of polls without a pause: then the thread leaves the work to pollers
    uint64_t burst_at;    // when polls without a pause began
    uint64_t awake_until; // the thread does not sleep before
    uint64_t polled_at;
    uint32_t empty_polls;
    uint32_t udp_skip;
    uint32_t stale_polls;
    uint64_t udp_busy_until;
    pthread_mutex_t work_lock;
    struct wf_work *work, *work_last; // deferred calls, under work_lock
    struct wf_hca_timer *timers;
    void (*mad_handler)(void *arg, const struct wf_mad *mad);
    void *mad_arg;
    uint32_t refs;
    bool force_udp;           // WEFT_PATH=udp: even within the host
    uint16_t pkeys[WF_PKEYS]; // 0: no entry
    uint32_t moderated_cqs;
    uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes; // on all paths, one-sided ones too
    struct wf_tap *tap;                                  // faults and captures, NULL: none (tap.h)
    uint32_t control_faults, control_capture; // of weftd's control page: what is done already
    uint64_t qkey_violations, pkey_violations;
};

// ---- lock ---------------------------------------------------------------------------------------

void wf_enter(struct wf_hca *h);      // lock, read the clock
void wf_enter_poll(struct wf_hca *h); // lock; the clock is read when something happens
void wf_now(struct wf_hca *h);        // read the clock
bool wf_has_news(const struct wf_hca *h); // events of the fabric that only the thread handles
void wf_exit(struct wf_hca *h);       // do what became due, unlock

// ---- engine.c: made of parts, for hca.c and for tests -----------------------------------------

struct wf_hca_parts {
    struct wf_fabric *fabric;
    struct wf_region *region;
    uint32_t slot;
    struct wf_link *loop, *shm, *udp;
    uint64_t (*clock)(void *arg);
    void *clock_arg;
    const struct wf_gid_table *gids; // when there is no fabric
};
// The engine owns the parts once it is made; when it fails they are still the caller's.
int wf_hca_create(const struct wf_hca_parts *parts, struct wf_hca **out);
void wf_hca_destroy(struct wf_hca *h);
// In a forked child: cut the engine off from the fabric, which is its parent's.
void wf_hca_abandon(struct wf_hca *h);

// ---- between the files of this folder -----------------------------------------------------------

extern const struct wf_qp_ops wf_engine_qp_ops;

void wf_deliver(void *arg, const struct wf_pkt *pkt); // dispatch.c: links call it
// progress.c: receive and send, or one of the two.
int wf_progress_locked(struct wf_hca *h);
int wf_receive_locked(struct wf_hca *h);
void wf_send_locked(struct wf_hca *h);
void wf_damaged(void *arg, uint32_t dqpn);           // likewise
void wf_leaks_of_context(struct wf_ctx *ctx);        // leaks.c
void wf_leaks_watch(struct wf_hca *h);               // NULL: the engine is gone
int wf_tap_verb(struct wf_hca *h, const char *verb); // tap.c
void wf_run_ready(struct wf_hca *h);
void wf_run_urgent(struct wf_hca *h);
void wf_ready(struct wf_qp *qp);
void wf_ready_lazily(struct wf_qp *qp); // only an acknowledgement is due
void wf_forget(struct wf_qp *qp);       // off all lists, it goes away

void wf_heap_put(struct wf_hca *h, struct wf_qp *qp); // timers.c
void wf_heap_remove(struct wf_hca *h, struct wf_qp *qp);
void wf_heap_expire(struct wf_hca *h);
uint64_t wf_heap_next(const struct wf_hca *h);

int wf_thread_start(struct wf_hca *h); // thread.c
void wf_thread_stop(struct wf_hca *h);
void wf_thread_kick(struct wf_hca *h);
void wf_doze_locked(struct wf_hca *h);
void wf_work_run(struct wf_hca *h);               // work.c: run deferred calls; no lock held
bool wf_polled_locked(struct wf_hca *h, int got); // bookkeeping of pollers; true: yield the CPU
void wf_fabric_events(struct wf_hca *h);          // events.c
bool wf_timers_due(struct wf_hca *h, uint64_t now, uint64_t *next); // mad.c: queue due timers

// path.c
int wf_path_make(struct wf_hca *h, const struct ibv_ah_attr *attr, uint32_t dqpn, bool connected,
                 struct wf_path_ref **out);
void wf_path_put(struct wf_path_ref *p);
struct wf_link *wf_route(struct wf_hca *h, const struct wf_path *path, uint32_t dqpn,
                         struct wf_peer **peer);
void wf_qp_use_path(struct wf_qp *qp);
uint32_t wf_qp_segment(struct wf_qp *qp);
int wf_mcast_send(struct wf_qp *qp, const struct wf_path *path, struct wf_pkt *pkt); // mcast.c
void wf_mcast_deliver(struct wf_hca *h, const struct wf_pkt *pkt);

uint64_t wf_cq_expire_moderated(struct wf_hca *h);              // cq.c: when to call again
int wf_pkeys_parse(const char *text, uint16_t pkeys[WF_PKEYS]); // device.c

void wf_ctx_event(struct wf_ctx *ctx, enum ibv_event_type type, void *object, uint8_t port);
void wf_port_event(struct wf_hca *h, enum ibv_event_type type);

struct wf_qp *wf_qp_find(struct wf_hca *h, uint32_t qpn);
int wf_fetch_remote(struct wf_hca *h, const struct wf_pkt *pkt, uint32_t off,
                    const struct iovec *dst, int niov);
int wf_qp_destroy_locked(struct wf_qp *qp);
void wf_qp_send_due_ack(struct wf_qp *qp); // qp.c
void wf_qp_wipe(struct wf_qp *qp);         // qp.c: back to RESET
void wf_qp_drop_paths(struct wf_qp *qp);   // modify.c
void wf_qp_run_now(struct wf_qp *qp);      // progress.c: run it without a trip over the list
int wf_srq_destroy_locked(struct wf_srq *srq);
int wf_cq_destroy_locked(struct wf_cq *cq);
// Slots of completions that a poller of the ring consumed; false: there were none.
bool wf_ctx_reap_locked(struct wf_ctx *ctx);
int wf_mr_dereg_locked(struct wf_mr *mr);
int wf_mw_dealloc_locked(struct wf_mw *mw);

// diagnose.c: the responder's half of a failure, for requesters on this host
void wf_refused(struct wf_qp *qp, uint32_t psn, enum wf_reason why, const char *text);
enum wf_reason wf_diagnose(struct wf_qp *qp, enum wf_reason why, char *text, size_t len);

// Tells builds apart whose structures a tool must not mix up.
#define WF_VIEW_LAYOUT                                                                             \
    ((uint32_t)(sizeof(struct wf_hca) ^ sizeof(struct wf_qp) << 10 ^ sizeof(struct wf_cq) << 20 ^  \
                sizeof(struct wf_srq) << 5 ^ 1u << 31))

// A verb begins: 0, or the error that a fault rule wants of it. Without the lock.
static inline int wf_verb_fault(struct wf_hca *h, const char *verb)
{
    return __builtin_expect(__atomic_load_n(&h->tap, __ATOMIC_RELAXED) != NULL, 0)
               ? wf_tap_verb(h, verb)
               : 0;
}

static inline struct wf_hca *wf_hca_of(const struct wf_qp *qp)
{
    return qp->env->arg;
}

#endif
