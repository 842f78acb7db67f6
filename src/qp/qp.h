// SPDX-License-Identifier: BSD-2-Clause
// The queue pair: protocol core of RC, UC, UD and XRC. Pure: it is given packets and the time and
// gives packets, completions and events. No threads, sockets, clocks or allocation per packet. The
// engine holds its lock around every call.
//
//   state.c      which state changes are allowed, with which attributes
//   requester.c  takes send requests, makes request packets, window and retransmission
//   completer.c  takes responses, retires requests
//   responder.c  takes request packets, executes, acknowledges
//   respond.c    sends READ responses, atomic results and acknowledgements, in order
//   datagram.c   UD in both directions
//   local.c      requests without a packet: bind, local invalidate
//   retire.c     completions, errors, flushing
//   migrate.c    automatic path migration
//   timer.c      ACK timeout and RNR wait
#ifndef WF_QP_QP_H
#define WF_QP_QP_H

#include "base/reason.h"
#include "mem/keys.h"
#include "qp/directory.h"
#include "queue/cq.h"
#include "queue/wq.h"
#include "wire/packet.h"

struct wf_qp;
struct wf_path;

// A shared receive queue as the responder sees it.
struct wf_srq {
    struct wf_srqueue q;
    uint32_t max_wr;
    uint32_t pd;
    uint32_t limit; // 0: not armed
    uint32_t srqn;
    uint32_t users;
    struct wf_cq *cq; // XRC: where its receives complete
    uint32_t xrcd;    // XRC: number of the domain, 0 for a basic SRQ
    enum ibv_srq_type type;
    void *user;
    struct wf_ctx *ctx;
    struct wf_pd *pd_obj;
    struct wf_xrcd *xrcd_obj;
    struct wf_srq *prev, *next; // of its context
};

// What the core asks of the engine.
struct wf_qp_ops {
    // Send to where `path` leads. 0; -EAGAIN: no room now, run the QP again later; -EFAULT: the
    // payload is not in memory; other: lost.
    int (*send)(struct wf_qp *qp, const struct wf_path *path, struct wf_pkt *pkt);
    // Copy `len` bytes at `off` of a payload that lies in another process. 0 or -EFAULT.
    int (*fetch)(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t off, const struct iovec *dst,
                 int niov);
    // What one packet may carry now; asked for at the start of a message.
    uint32_t (*segment)(struct wf_qp *qp);
    // Execute part of a WRITE or READ in the peer's memory, on the same host. -EAGAIN: send it as
    // a packet instead. NULL when there is no such path.
    int (*onesided)(struct wf_qp *qp, const struct wf_swqe *w, const struct iovec *iov, int niov,
                    uint32_t off, uint32_t len);
    // True while the peer, alive, has not yet taken what was sent: no ACK can be expected.
    bool (*unseen)(struct wf_qp *qp);
    void (*event)(struct wf_qp *qp, enum ibv_event_type type);
    void (*srq_event)(struct wf_srq *srq, enum ibv_event_type type);
    void (*cq_overrun)(struct wf_qp *qp, struct wf_cq *cq);
    void (*ack_due)(struct wf_qp *qp);  // as ready, but it may wait for company
    void (*ready)(struct wf_qp *qp);    // call wf_qp_run() soon
    void (*deadline)(struct wf_qp *qp); // qp->deadline came nearer
    // No longer in the directory: wait for peers that copy what it sent.
    void (*withdrawn)(struct wf_qp *qp);
    void (*revoked)(struct wf_qp *qp, uint32_t key); // wait for peers' copies under the key
    struct wf_srq *(*xrc_srq)(struct wf_qp *qp, uint32_t srqn); // NULL: no such SRQ in its domain
    bool (*path_differs)(struct wf_qp *qp, const struct wf_pkt *pkt); // not from the QP's peer
    void (*path_put)(struct wf_qp *qp, struct wf_path *path);
    void (*path_changed)(struct wf_qp *qp); // qp->path is another one now
    // A request was refused: let the requester on this host find out why. May be NULL, as the next.
    void (*refused)(struct wf_qp *qp, uint32_t psn, enum wf_reason why, const char *text);
    // The oldest request fails for `why`: what is known of the peer's side, in text, and the true
    // reason.
    enum wf_reason (*diagnose)(struct wf_qp *qp, enum wf_reason why, char *text, size_t len);
};

// Names are those of mlx5's hw_counters.
struct wf_counters {
    uint64_t rx_write_requests, rx_read_requests, rx_atomic_requests;
    uint64_t out_of_buffer, out_of_sequence, duplicate_request;
    uint64_t rnr_nak_retry_err, packet_seq_err, implied_nak_seq_err, local_ack_timeout_err;
    uint64_t req_cqe_error, req_cqe_flush_error, resp_cqe_error, resp_cqe_flush_error;
    uint64_t req_remote_access_errors, req_remote_invalid_request;
    uint64_t resp_remote_access_errors, resp_local_length_error;
    uint64_t roce_adp_retrans; // packets sent again
};

struct wf_qp_env {
    struct wf_counters counters;
    const struct wf_qp_ops *ops;
    void *arg;
    struct wf_keys *keys;
    uint64_t now; // ns; the engine sets it before each call
    bool posting; // inside post_send, which must be quick
    // What exactly was wrong with the memory of a request: for its explanation, soon after.
    uint32_t detail_qpn;
    char detail[200];
};

// A READ or atomic that the responder has accepted: kept for duplicates (IBA 9.7.5.1.2).
struct wf_resource {
    uint8_t operation; // enum wf_operation; 0xff: free
    bool pending;      // (part of) its response is still to be sent
    bool again;        // asked for again
    uint32_t psn, npsn;
    uint32_t rkey, pd;
    uint64_t va;
    uint32_t len;
    uint32_t start; // offset at which this response began (a repeat may begin in the middle)
    uint32_t off;   // next byte to send
    uint32_t msn;
    uint64_t orig; // atomics
};

struct wf_requester {
    uint32_t psn;        // next to assign
    uint32_t una_psn;    // oldest not acknowledged
    uint32_t off;        // bytes sent of the request at sq.next
    uint32_t sent_psn;   // next PSN to send (below psn after going back)
    uint32_t reads;      // READ and atomic requests outstanding
    uint32_t read_chunk; // bytes asked for by one READ request; 0: all
    uint32_t unasked;    // packets since the last one with AckReq
    uint32_t cwnd;       // packets that may be outstanding; 0: no limit
    uint32_t cwnd_max;
    uint32_t cwnd_credit; // packets acknowledged since cwnd last grew
    uint32_t ssthresh;
    uint8_t retries, rnr_retries; // left
    bool went_back;               // since una_psn last moved
    bool dying;                   // the peer's process is gone, ack_deadline says when to give up
    bool failing;           // the request at sq.next failed locally; waits until it is the oldest
    bool one_sided_refused; // the request at sq.next goes by packets
    enum ibv_wc_status fail_status;
    enum wf_reason fail_reason;
    enum wf_reason heard;  // best guess why there is no progress
    uint64_t ack_deadline; // WF_NEVER: none
    uint64_t rnr_until;    // 0: none
};

enum wf_inbound { WF_IN_NONE = 0, WF_IN_SEND, WF_IN_WRITE };

struct wf_responder {
    enum wf_inbound open; // message that has started and not ended
    bool nak_sent;        // for the current gap
    bool ack_due;
    uint32_t pd;         // whose regions the request at hand may name
    bool has_wqe;        // a receive is taken for the open message
    uint32_t rq_counter; // receive queue counter or SRQ slot of that receive
    struct wf_rwqe *wqe;
    struct wf_srq *srq; // where it was taken from, NULL: the QP's own queue
    uint32_t off;       // bytes placed
    uint64_t va;        // WRITE: next address
    uint32_t rkey, left;
    struct wf_resource *res;
    uint32_t nres;     // max_dest_rd_atomic
    uint32_t res_head; // next to fill, free-running
    uint32_t res_pending;
};

struct wf_qp {
    struct wf_qp_env *env;
    struct wf_qp_entry *dir; // in the shared region
    uint32_t qpn;
    enum ibv_qp_type type;
    enum ibv_qp_state state;
    struct ibv_qp_attr attr; // as set, for query
    int attr_set;            // IBV_QP_* ever set
    uint32_t pd;
    uint32_t mtu; // bytes
    uint32_t seg; // payload of one packet: mtu, or more on links within the host
    uint16_t pkey;
    bool sig_all;
    bool sqd_event_sent;
    bool peer_dead;
    bool one_sided; // WRITE and READ may go straight to the peer's memory
    bool comm_est_sent;
    bool blocked; // waits for room in a link
    struct wf_path *path, *alt_path;
    struct wf_cq *scq, *rcq;
    struct wf_srq *srq;
    struct wf_sq sq;
    struct wf_rq rq;
    struct wf_requester req;
    struct wf_responder resp;
    uint64_t deadline; // next timer, WF_NEVER: none
    uint64_t heap_key;
    uint32_t heap_pos; // 0: not in the engine's heap
    bool on_ready;
    bool lazy; // on the ready list for an acknowledgement only
    struct wf_qp *ready_next;
    uint64_t stat_retransmits, stat_rnr, stat_timeouts;
    enum wf_reason root; // what put it into ERR or SQE; flushes name it
    // The engine's.
    struct wf_hca *hca;
    struct wf_ctx *ctx;
    struct wf_pd *pd_obj;
    struct wf_xrcd *xrcd;
    void *user;
    uint32_t create_flags;
    uint32_t mcast_groups;
    uint32_t max_recv_sge_reported;
    struct wf_qp *prev, *next; // of its context
};

static inline bool wf_qp_connected(const struct wf_qp *qp)
{
    return qp->type != IBV_QPT_UD;
}

static inline bool wf_qp_reliable(const struct wf_qp *qp)
{
    return qp->type != IBV_QPT_UD && qp->type != IBV_QPT_UC;
}

static inline uint32_t wf_qp_npsn(const struct wf_qp *qp, uint32_t len)
{
    return len ? (uint32_t)(((uint64_t)len + qp->mtu - 1) / qp->mtu) : 1;
}

// state.c. Check a transition; 0 or a refusal of -EINVAL.
int wf_qp_check_modify(const struct wf_qp *qp, enum ibv_qp_state to, int mask);
const char *wf_qp_state_name(enum ibv_qp_state s);

// Put the core into its state after RESET, INIT .. as `state` says; attributes are in qp->attr.
void wf_qp_reset(struct wf_qp *qp);
void wf_qp_start_responder(struct wf_qp *qp); // entering RTR
void wf_qp_start_requester(struct wf_qp *qp); // entering RTS from RTR
void wf_qp_set_state(struct wf_qp *qp, enum ibv_qp_state to);
// Bring the shared directory entry up to date with state and attributes.
void wf_qp_publish(struct wf_qp *qp);

// Do all work that can be done now. qp->blocked says whether it waits for a link.
void wf_qp_run(struct wf_qp *qp);
void wf_qp_expire(struct wf_qp *qp); // qp->deadline has come
// A packet for this QP; transport and opcode class match its type.
void wf_qp_request(struct wf_qp *qp, const struct wf_pkt *pkt);
void wf_qp_response(struct wf_qp *qp, const struct wf_pkt *pkt);
void wf_qp_datagram(struct wf_qp *qp, const struct wf_pkt *pkt);
// The peer's process ended.
void wf_qp_peer_died(struct wf_qp *qp);

// ---- between the files of this folder -----------------------------------------------------------

void wf_req_run(struct wf_qp *qp);
void wf_req_go_back(struct wf_qp *qp);
void wf_req_window_grow(struct wf_qp *qp, uint32_t acked);
void wf_req_window_shrink(struct wf_qp *qp, bool timeout);
void wf_ud_run(struct wf_qp *qp);
void wf_resp_run(struct wf_qp *qp);
void wf_resp_nak(struct wf_qp *qp, uint8_t syndrome, uint32_t psn);
// Execute bind and local invalidate; on failure the status is not SUCCESS.
enum ibv_wc_status wf_local_execute(struct wf_qp *qp, const struct wf_swqe *w, enum wf_reason *why);
// Invalidate a key at the peer's wish (SEND with invalidate). 0 or -EINVAL.
int wf_local_invalidate(struct wf_qp *qp, uint32_t key);

// Turn [off, off + *len) of a request's (or receive's) SGEs into up to WF_MAX_IOV addresses. Where
// regions in pieces need more, *len becomes what was covered.
enum ibv_wc_status wf_gather(struct wf_qp *qp, const struct wf_swqe *w, uint32_t off, uint32_t *len,
                             unsigned need, struct iovec *iov, int *niov, enum wf_reason *why);
enum ibv_wc_status wf_scatter(struct wf_qp *qp, uint32_t pd, const struct wf_rwqe *w, uint32_t off,
                              uint32_t *len, struct iovec *iov, int *niov, enum wf_reason *why);
// For a packet to be sent: lower *len to whole MTUs that a link can carry, when the list is long.
// The caller gathers again then.
void wf_gather_trim(const struct wf_qp *qp, const struct iovec *iov, int *niov, uint32_t *len);
// Registered memory is not pinned: is all of it still there (for writing)? One touch a page.
bool wf_memory_there(const struct iovec *iov, int niov, bool write);
// Is the program's memory gone, of what the oldest request has sent without an answer?
bool wf_payload_gone(struct wf_qp *qp);
// Fill iov from the payload, beginning at `off`. 0, -EFAULT, or -ESTALE: the payload still lay with
// the sender, whose QP is gone, so the packet counts as lost.
int wf_place(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t off, const struct iovec *iov,
             int niov);
// The whole payload into a receive, beginning at `off` of it. 0, or not and a status.
int wf_place_recv(struct wf_qp *qp, uint32_t pd, const struct wf_rwqe *w, uint32_t off,
                  const struct wf_pkt *pkt, enum ibv_wc_status *status, enum wf_reason *why);

const char *wf_wc_status_name(enum ibv_wc_status status);
// The detail that is kept for this QP, after "; ", or "".
const char *wf_detail_take(struct wf_qp *qp, char *buf, size_t len);

// Completions. complete_send reports the request at sq.una and moves on.
void wf_retire_done(struct wf_qp *qp);
void wf_retire_failed(struct wf_qp *qp, enum ibv_wc_status status, enum wf_reason why);
void wf_complete_recv(struct wf_qp *qp, struct wf_completion *c);
void wf_recv_failed(struct wf_qp *qp, enum ibv_wc_status status, enum wf_reason why);
void wf_qp_to_error(struct wf_qp *qp);
void wf_qp_flush(struct wf_qp *qp);
void wf_qp_flush_sends(struct wf_qp *qp);

// Take a receive for an incoming message; false: none posted.
bool wf_recv_take(struct wf_qp *qp, const struct wf_pkt *pkt);

// migrate.c
void wf_migrate_set(struct wf_qp *qp, enum ibv_mig_state to);     // the user's wish
void wf_migrate_seen(struct wf_qp *qp, const struct wf_pkt *pkt); // BTH.M of a packet
bool wf_migrate_instead_of_failing(struct wf_qp *qp); // retries ended; true: goes on elsewhere

// timer.c
void wf_timer_start(struct wf_qp *qp);    // something is outstanding
void wf_timer_progress(struct wf_qp *qp); // una_psn moved
void wf_timer_rnr(struct wf_qp *qp, uint64_t wait);
void wf_timer_death(struct wf_qp *qp); // the peer's process is gone
void wf_timer_stop(struct wf_qp *qp);

#endif
