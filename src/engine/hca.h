// SPDX-License-Identifier: BSD-2-Clause
// The HCA as its faces see it: verbs, ib_cm, async verbs and uGNI all call this and nothing below.
//
// Vocabulary: constants and plain attribute structures are those of <infiniband/verbs.h> (enums of
// states, opcodes, statuses, access flags; ibv_qp_attr, ibv_send_wr, ibv_wc ...), so that faces
// translate little. Objects are our own.
//
// Results: 0 or -errno; on success the object comes through the last pointer. Every refusal has
// gone through wf_refuse() already.
//
// Threads: every function may be called from any thread; each takes the engine's one lock for its
// duration and none blocks on the network. Callbacks marked "under the lock" must only note what
// happened (set a flag, queue, write an eventfd) and must not call back into the engine; use
// wf_hca_defer() for work that does.
#ifndef WF_ENGINE_HCA_H
#define WF_ENGINE_HCA_H

#include "link/gidtab.h"
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct wf_hca;
struct wf_ctx;
struct wf_pd;
struct wf_mr;
struct wf_mw;
struct wf_cq;
struct wf_srq;
struct wf_qp;
struct wf_xrcd;

// ---- device -------------------------------------------------------------------------------------

// The engine of this process, made on first use: joins the fabric (weftd), starts the background
// thread. After fork() the child gets an engine of its own. Counted; wf_hca_put() for each get.
int wf_hca_get(struct wf_hca **out);
void wf_hca_put(struct wf_hca *hca);

// Call fn(arg) soon from the engine's thread with no lock held. `work` is the caller's, and free to
// be used again once fn runs. Queuing queued work does nothing.
struct wf_work {
    void (*fn)(struct wf_work *work);
    struct wf_work *next;
    bool queued;
};
void wf_hca_defer(struct wf_hca *hca, struct wf_work *work);

// Make progress now: receive, send, timers. For callers that wait for something by polling.
void wf_hca_progress(struct wf_hca *hca);

// Say that the caller is about to sleep: from now on the engine's thread makes progress at once
// instead of leaving it to pollers. Arming a CQ does this too.
void wf_hca_doze(struct wf_hca *hca);

void wf_hca_query_device(struct wf_hca *hca, struct ibv_device_attr *attr);
int wf_hca_query_port(struct wf_hca *hca, uint8_t port, struct ibv_port_attr *attr);
int wf_hca_query_gid(struct wf_hca *hca, uint8_t port, uint32_t index, struct wf_gid_slot *out);
int wf_hca_query_pkey(struct wf_hca *hca, uint8_t port, uint32_t index, uint16_t *pkey);
uint64_t wf_hca_node_guid(struct wf_hca *hca);
uint64_t wf_hca_clock(struct wf_hca *hca); // the device clock, nanoseconds (1 GHz)

// ---- management datagrams and timers: what cm/ needs (engine/mad.c)
// -------------------------------

struct wf_mad; // link/fabric.h

// The one receiver of CM datagrams for this process. fn runs under the lock: it copies the datagram
// and defers. fn NULL: datagrams are dropped again.
void wf_hca_set_mad_handler(struct wf_hca *hca, void (*fn)(void *arg, const struct wf_mad *mad),
                            void *arg);
// As wf_fabric_send_mad(), _listen(), _unlisten(), _set_will(), under the lock.
int wf_hca_send_mad(struct wf_hca *hca, const union ibv_gid *dgid, uint32_t sgid_index,
                    const uint8_t mad[256]);
int wf_hca_cm_listen(struct wf_hca *hca, uint64_t service_id, uint64_t mask);
void wf_hca_cm_unlisten(struct wf_hca *hca, uint64_t service_id, uint64_t mask);
int wf_hca_set_will(struct wf_hca *hca, uint32_t id, const union ibv_gid *dgid, uint32_t sgid_index,
                    const uint8_t *mad);
uint32_t wf_hca_slot(struct wf_hca *hca); // of this process: top 8 bits of QPNs and CM ids

// Call work->fn once, at or soon after `deadline` (wf_clock_ns()), as wf_hca_defer() would. Setting
// a timer that is set moves it; WF_NEVER takes it back, but a work that has been queued already
// still runs. Meant for a handful of timers, not for one per connection.
struct wf_hca_timer {
    struct wf_work work;
    struct wf_hca_timer *next;
    uint64_t deadline; // WF_NEVER: not set
};
void wf_hca_set_timer(struct wf_hca *hca, struct wf_hca_timer *timer, uint64_t deadline);

// ---- contexts -----------------------------------------------------------------------------------

// An open device. Objects belong to the context that made them; a context's asynchronous events are
// those of its objects and those of the port and device.
struct wf_ctx_ops {
    // Under the lock. `object` is the `user` pointer of the CQ, QP or SRQ concerned, NULL for port
    // and device events, where `port` is set.
    void (*async)(void *user, enum ibv_event_type type, void *object, uint8_t port);
};
int wf_ctx_open(struct wf_hca *hca, const struct wf_ctx_ops *ops, void *user, struct wf_ctx **out);
int wf_ctx_close(struct wf_ctx *ctx); // destroys what is left in it

// ---- protection domains, memory -----------------------------------------------------------------

int wf_pd_create(struct wf_ctx *ctx, struct wf_pd **out);
int wf_pd_destroy(struct wf_pd *pd); // -EBUSY while objects use it

// Register [addr, addr + len) so that requests name it as [iova, iova + len). Nothing is pinned and
// nothing is touched; the memory need not exist yet. iova 0 with IBV_ACCESS_ZERO_BASED.
// -EINVAL: wrap-around, unknown access flags, remote write or atomic without local write.
int wf_mr_reg(struct wf_pd *pd, void *addr, uint64_t len, uint64_t iova, unsigned access,
              struct wf_mr **out);
// A region of any address and length whose contents are zeros and which drops what is written.
int wf_mr_reg_null(struct wf_pd *pd, struct wf_mr **out);
// A region of pieces that need not be adjacent, named as one range [iova, iova + their sum). The
// list is copied. -EINVAL: no piece, or an empty one. Such a region cannot be registered again.
int wf_mr_reg_pieces(struct wf_pd *pd, const struct iovec *pieces, uint32_t num, uint64_t iova,
                     unsigned access, struct wf_mr **out);
// flags: IBV_REREG_MR_*. On failure the region is as it was before.
int wf_mr_rereg(struct wf_mr *mr, int flags, struct wf_pd *pd, void *addr, uint64_t len,
                unsigned access);
int wf_mr_dereg(struct wf_mr *mr); // -EBUSY while a memory window is bound to it
uint32_t wf_mr_lkey(const struct wf_mr *mr);
uint32_t wf_mr_rkey(const struct wf_mr *mr);

int wf_mw_alloc(struct wf_pd *pd, enum ibv_mw_type type, struct wf_mw **out);
int wf_mw_dealloc(struct wf_mw *mw);
uint32_t wf_mw_rkey(const struct wf_mw *mw);
// ibv_mw.handle of a face must be wf_mw_handle(): a posted bind finds the window by it, and the
// region by ibv_mr.lkey.
uint32_t wf_mw_handle(const struct wf_mw *mw);

// ---- completion queues --------------------------------------------------------------------------

struct wf_cq_init {
    uint32_t cqe;                // at least this many entries
    bool ignore_overrun;         // overwrite the oldest instead of failing
    void *user;                  // handed to callbacks
    void (*on_comp)(void *user); // under the lock, once per arming; may be NULL
};

// A work completion and what ibv_wc has no room for.
struct wf_wc {
    struct ibv_wc wc;
    uint64_t timestamp; // wf_hca_clock() when it was made
    uint32_t srqn;      // XRC: the SRQ that the receive came from
    void *qp_user;      // `user` of the QP, NULL when unknown
};

int wf_cq_create(struct wf_ctx *ctx, const struct wf_cq_init *init, struct wf_cq **out);
uint32_t wf_cq_size(const struct wf_cq *cq);      // entries it really has
int wf_cq_resize(struct wf_cq *cq, uint32_t cqe); // -EINVAL when fewer than are waiting
int wf_cq_destroy(struct wf_cq *cq);              // -EBUSY while QPs use it
// Number of completions stored, or -errno (-EIO after overrun, once the ring is empty).
int wf_cq_poll(struct wf_cq *cq, int n, struct ibv_wc *wc);
int wf_cq_poll_ex(struct wf_cq *cq, struct wf_wc *wc); // 1, 0 or -errno
uint32_t wf_cq_pending(struct wf_cq *cq);              // completions waiting
// One on_comp for the next completion (or the next solicited or failed one).
int wf_cq_arm(struct wf_cq *cq, bool solicited_only);
// At least `count` completions or `usec` before on_comp is called; 0, 0 turns it off.
int wf_cq_moderate(struct wf_cq *cq, uint16_t count, uint16_t usec);

// The ring itself, for pollers that read Arbel entries: see include/arbel/cqe.h.
struct wf_cq_ring {
    void *cqe;            // 32-byte entries
    uint32_t entries;     // power of two
    _Atomic uint32_t *ci; // consumer index, free-running; the poller publishes it here
};
void wf_cq_ring(struct wf_cq *cq, struct wf_cq_ring *out);

// ---- address handles ----------------------------------------------------------------------------

// ibv_send_wr.wr.ud.ah must point to the `ibv` of one of these.
struct wf_ah {
    struct ibv_ah ibv;
    struct ibv_ah_attr attr;
    struct wf_path *path;
    struct wf_pd *pd;
};
int wf_ah_create(struct wf_pd *pd, const struct ibv_ah_attr *attr, struct wf_ah **out);
int wf_ah_destroy(struct wf_ah *ah);

// ---- shared receive queues, XRC -----------------------------------------------------------------

struct wf_srq_init {
    enum ibv_srq_type type;
    uint32_t max_wr, max_sge, limit;
    struct wf_xrcd *xrcd; // XRC only
    struct wf_cq *cq;     // XRC only
    void *user;
};
int wf_srq_create(struct wf_pd *pd, struct wf_srq_init *init,
                  struct wf_srq **out); // sets real caps
int wf_srq_modify(struct wf_srq *srq, const struct ibv_srq_attr *attr, int mask);
int wf_srq_query(struct wf_srq *srq, struct ibv_srq_attr *attr);
int wf_srq_destroy(struct wf_srq *srq); // -EBUSY while QPs use it
uint32_t wf_srq_num(const struct wf_srq *srq);
int wf_srq_post(struct wf_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

// Domains are shared by the inode of `fd`; fd -1 makes a private one.
int wf_xrcd_open(struct wf_ctx *ctx, int fd, int oflags, struct wf_xrcd **out);
int wf_xrcd_close(struct wf_xrcd *xrcd);

// ---- queue pairs --------------------------------------------------------------------------------

struct wf_qp_init {
    enum ibv_qp_type type; // RC, UC, UD, XRC_SEND, XRC_RECV
    struct wf_cq *send_cq, *recv_cq;
    struct wf_srq *srq;
    struct wf_xrcd *xrcd;
    struct ibv_qp_cap cap; // in: wanted, out: given (never less)
    bool sig_all;
    uint32_t create_flags; // IBV_QP_CREATE_*
    void *user;
};
int wf_qp_create(struct wf_ctx *ctx, struct wf_pd *pd, struct wf_qp_init *init, struct wf_qp **out);
// Attributes and masks as ibv_modify_qp(3); IBA 11.2.5.2 decides what a transition needs.
int wf_qp_modify(struct wf_qp *qp, const struct ibv_qp_attr *attr, int mask);
int wf_qp_query(struct wf_qp *qp, struct ibv_qp_attr *attr, struct wf_qp_init *init);
int wf_qp_destroy(struct wf_qp *qp); // -EBUSY while attached to a multicast group
uint32_t wf_qp_num(const struct wf_qp *qp);
enum ibv_qp_state wf_qp_state(const struct wf_qp *qp);
int wf_qp_attach_mcast(struct wf_qp *qp, const union ibv_gid *mgid);
int wf_qp_detach_mcast(struct wf_qp *qp, const union ibv_gid *mgid);

// Where the requests that completion entries name lie: entry's wqe_adr = offset + slot * stride,
// slot = number of the request since RESET modulo slots. Receives of an SRQ count by its slots.
struct wf_wqes {
    uint32_t send_offset, send_stride, send_slots;
    uint32_t recv_stride, recv_slots; // offset 0; slots 0: the QP has no receive queue
};
void wf_qp_wqes(struct wf_qp *qp, struct wf_wqes *out);

// Post a chain; *bad is the first request that was not taken, earlier ones stay posted.
// -EINVAL state, opcode, SGE count, inline length; -ENOMEM queue full.
// Opcodes are IBV_WR_* and WF_WR_FLUSH, which names its range in wr.rdma and sg_list[0].length and
// its type and level in imm_data (placement type | selectivity << 4).
#define WF_WR_FLUSH 14
int wf_qp_post_send(struct wf_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
uint32_t wf_qp_send_room(struct wf_qp *qp); // requests that the send queue would take now
int wf_qp_post_recv(struct wf_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
