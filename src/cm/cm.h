// SPDX-License-Identifier: BSD-2-Clause
// The InfiniBand connection manager (IBA vol. 1, chapter 12) as a pure state machine: datagrams,
// calls and the time go in, datagrams and events come out. No thread, lock, socket or clock: the
// owner serialises all calls on one instance. Calls give 0 or -errno; a refusal has been explained.
//
// An id belongs to the caller from wf_cm_id_create(), or from the REQ or SIDR_REQ event that made
// it, until wf_cm_id_destroy(); afterwards the instance may go on with it by itself (to finish a
// disconnect and TIMEWAIT) but no event names it any more.
#ifndef WF_CM_CM_H
#define WF_CM_CM_H

#include "cm/mad.h"
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct wf_cm;
struct wf_cm_id;

#define WF_CM_CLASS_VERSION 2

enum wf_cm_state {
    WF_CM_IDLE,
    WF_CM_LISTEN,
    WF_CM_REQ_SENT,
    WF_CM_REQ_RCVD,
    WF_CM_MRA_REQ_SENT,
    WF_CM_MRA_REQ_RCVD,
    WF_CM_REP_SENT,
    WF_CM_REP_RCVD,
    WF_CM_MRA_REP_SENT,
    WF_CM_MRA_REP_RCVD,
    WF_CM_ESTABLISHED,
    WF_CM_DREQ_SENT,
    WF_CM_DREQ_RCVD,
    WF_CM_TIMEWAIT,
    WF_CM_SIDR_REQ_SENT,
    WF_CM_SIDR_REQ_RCVD,
    WF_CM_STATES
};

enum wf_cm_lap_state {
    WF_CM_LAP_UNINIT,
    WF_CM_LAP_IDLE,
    WF_CM_LAP_SENT,
    WF_CM_LAP_RCVD,
    WF_CM_LAP_MRA_SENT,
    WF_CM_LAP_MRA_RCVD,
};

enum wf_cm_event_type {
    WF_CM_REQ_ERROR,
    WF_CM_REQ_RECEIVED,
    WF_CM_REP_ERROR,
    WF_CM_REP_RECEIVED,
    WF_CM_RTU_RECEIVED,
    WF_CM_USER_ESTABLISHED,
    WF_CM_DREQ_ERROR,
    WF_CM_DREQ_RECEIVED,
    WF_CM_DREP_RECEIVED,
    WF_CM_TIMEWAIT_EXIT,
    WF_CM_MRA_RECEIVED,
    WF_CM_REJ_RECEIVED,
    WF_CM_LAP_ERROR,
    WF_CM_LAP_RECEIVED,
    WF_CM_APR_RECEIVED,
    WF_CM_SIDR_REQ_ERROR,
    WF_CM_SIDR_REQ_RECEIVED,
    WF_CM_SIDR_REP_RECEIVED,
};

enum wf_cm_rej_reason {
    WF_CM_REJ_NO_QP = 1,
    WF_CM_REJ_NO_RESOURCES = 3,
    WF_CM_REJ_TIMEOUT = 4,
    WF_CM_REJ_UNSUPPORTED = 5,
    WF_CM_REJ_COMM_ID = 6,
    WF_CM_REJ_SERVICE_ID = 8,
    WF_CM_REJ_TRANSPORT = 9,
    WF_CM_REJ_STALE = 10,
    WF_CM_REJ_GID = 12,
    WF_CM_REJ_ALT_GID = 18,
    WF_CM_REJ_MTU = 26,
    WF_CM_REJ_CONSUMER = 28,
    WF_CM_REJ_CLASS_VERSION = 31,
};

enum wf_cm_apr_status {
    WF_CM_APR_SUCCESS = 0,
    WF_CM_APR_COMM_ID = 1,
    WF_CM_APR_REJECT = 3,
    WF_CM_APR_QPN = 6,
    WF_CM_APR_GID = 8,
};

enum wf_cm_sidr_status {
    WF_CM_SIDR_SUCCESS = 0,
    WF_CM_SIDR_UNSUPPORTED = 1,
    WF_CM_SIDR_REJECT = 2,
};

// One way between two ports, seen from the side that holds it. LIDs are zero on RoCE.
struct wf_cm_route {
    union ibv_gid sgid, dgid;
    uint16_t slid, dlid;
    uint16_t pkey;
    uint32_t flow_label;
    uint8_t tclass, hop_limit, sl;
    uint8_t mtu;  // enum ibv_mtu
    uint8_t rate; // enum ibv_rate
    uint8_t life; // packet life time: 4.096 us << life
};

// What the instance asks of its owner. No op may call back into the instance.
struct wf_cm_ops {
    // Send to QP1 of the port `dgid`. An error counts as "cannot be sent" for a call and as a lost
    // datagram for a repetition.
    int (*send_mad)(void *arg, const union ibv_gid *dgid, uint32_t sgid_index,
                    const uint8_t mad[WF_MAD_SIZE]);
    // From now on REQ and SIDR_REQ with (service id & mask) are for this instance.
    int (*listen)(void *arg, uint64_t service_id, uint64_t mask);
    void (*unlisten)(void *arg, uint64_t service_id, uint64_t mask);
    // The datagram to send to `dgid` when this process dies; NULL: none any more.
    void (*will)(void *arg, uint32_t local_id, const union ibv_gid *dgid, uint32_t sgid_index,
                 const uint8_t *mad);
    // Index of one of our own GIDs, or -ENOENT.
    int (*gid_index)(void *arg, const union ibv_gid *gid);
};

struct wf_cm_config {
    const struct wf_cm_ops *ops;
    void *arg;
    uint8_t slot; // top 8 bits of every communication id
    uint64_t ca_guid;
    uint8_t ack_delay; // local CA ACK delay: 4.096 us << ack_delay
    uint64_t seed;     // where ids start
    uint64_t now;      // nanoseconds
};

int wf_cm_create(const struct wf_cm_config *config, struct wf_cm **out);
void wf_cm_destroy(struct wf_cm *cm); // silently drops every id

// The time of the calls that follow; also runs what is due. wf_cm_deadline() is when it must be
// called next, WF_NEVER when nothing waits.
void wf_cm_run(struct wf_cm *cm, uint64_t now);
uint64_t wf_cm_deadline(const struct wf_cm *cm);

// A datagram that came to QP1 from port `sgid` to our port `dgid`.
void wf_cm_receive(struct wf_cm *cm, uint64_t now, const union ibv_gid *sgid,
                   const union ibv_gid *dgid, const uint8_t mad[WF_MAD_SIZE]);

struct wf_cm_event {
    enum wf_cm_event_type type;
    struct wf_cm_id *id;
    struct wf_cm_id *listen_id;         // REQ_RECEIVED (NULL: peer to peer), SIDR_REQ_RECEIVED
    struct wf_cm_route path, alternate; // REQ; LAP (alternate only)
    bool has_alternate;
    struct wf_cm_msg msg; // the message received; not with *_ERROR, TIMEWAIT_EXIT, ESTABLISHED
};
// The oldest event, taken off the queue; false when there is none.
bool wf_cm_next_event(struct wf_cm *cm, struct wf_cm_event *out);
bool wf_cm_has_event(const struct wf_cm *cm);

// ---- ids ----------------------------------------------------------------------------------------

int wf_cm_id_create(struct wf_cm *cm, void *user, struct wf_cm_id **out);
// Tell the peer what its state asks for (REJ, DREQ, DREP, SIDR_REP) and drop queued events.
void wf_cm_id_destroy(struct wf_cm_id *id);
// As destroy but the peer is told nothing: a request that could not be looked at for want of memory
// is sent again.
void wf_cm_id_forget(struct wf_cm_id *id);

void wf_cm_id_set_user(struct wf_cm_id *id, void *user);
void *wf_cm_id_user(const struct wf_cm_id *id);
enum wf_cm_state wf_cm_id_state(const struct wf_cm_id *id);
enum wf_cm_lap_state wf_cm_id_lap_state(const struct wf_cm_id *id);
uint32_t wf_cm_id_local(const struct wf_cm_id *id);
uint32_t wf_cm_id_remote(const struct wf_cm_id *id);
uint64_t wf_cm_id_service(const struct wf_cm_id *id);
uint64_t wf_cm_id_service_mask(const struct wf_cm_id *id);
const struct wf_cm_route *wf_cm_id_route(const struct wf_cm_id *id);
const char *wf_cm_state_name(enum wf_cm_state state);

// ---- calls: each is allowed in the states of table.c, else -EINVAL ------------------------------

#define WF_CM_COMPARE_SIZE 64
struct wf_cm_compare {
    uint8_t data[WF_CM_COMPARE_SIZE];
    uint8_t mask[WF_CM_COMPARE_SIZE];
};

#define WF_CM_SERVICE_AGN_MASK 0xff00000000000000ull
#define WF_CM_SERVICE_ASSIGN   0x0200000000000000ull

// mask 0: this very id. WF_CM_SERVICE_ASSIGN: an id of our choice, see wf_cm_id_service().
// `compare` (may be NULL) is matched against the first bytes of the private data. -EBUSY: an
// overlapping listener exists that compare data does not tell apart.
int wf_cm_listen(struct wf_cm_id *id, uint64_t service_id, uint64_t mask,
                 const struct wf_cm_compare *compare);

struct wf_cm_req_param {
    const struct wf_cm_route *path;
    const struct wf_cm_route *alternate; // or NULL
    uint64_t service_id;
    uint32_t qpn;
    enum ibv_qp_type qp_type; // RC, UC, XRC_SEND
    uint32_t psn;
    const void *data;
    uint8_t data_len;
    bool peer_to_peer;
    uint8_t responder_resources, initiator_depth;
    uint8_t remote_response_timeout, local_response_timeout;
    bool flow_control, srq;
    uint8_t retry_count, rnr_retry, max_cm_retries;
    uint32_t ece_vendor, ece_options;
};
int wf_cm_send_req(struct wf_cm_id *id, const struct wf_cm_req_param *param);

struct wf_cm_rep_param {
    uint32_t qpn;
    uint32_t psn;
    const void *data;
    uint8_t data_len;
    uint8_t responder_resources, initiator_depth;
    uint8_t failover_accepted;
    bool flow_control, srq;
    uint8_t rnr_retry;
    uint32_t ece_vendor, ece_options;
};
int wf_cm_send_rep(struct wf_cm_id *id, const struct wf_cm_rep_param *param);

int wf_cm_send_rtu(struct wf_cm_id *id, const void *data, uint8_t len);
int wf_cm_send_dreq(struct wf_cm_id *id, const void *data, uint8_t len);
int wf_cm_send_drep(struct wf_cm_id *id, const void *data, uint8_t len);
int wf_cm_send_rej(struct wf_cm_id *id, uint16_t reason, const void *ari, uint8_t ari_len,
                   const void *data, uint8_t len);

#define WF_CM_MRA_DELAY 0x80 // nothing is sent before a duplicate comes
int wf_cm_send_mra(struct wf_cm_id *id, uint8_t service_timeout, const void *data, uint8_t len);

int wf_cm_send_lap(struct wf_cm_id *id, const struct wf_cm_route *alternate, const void *data,
                   uint8_t len);
int wf_cm_send_apr(struct wf_cm_id *id, uint8_t status, const void *info, uint8_t info_len,
                   const void *data, uint8_t len);

struct wf_cm_sidr_req_param {
    const struct wf_cm_route *path;
    uint64_t service_id;
    uint32_t timeout_ms;
    const void *data;
    uint8_t data_len;
    uint8_t max_cm_retries;
};
int wf_cm_send_sidr_req(struct wf_cm_id *id, const struct wf_cm_sidr_req_param *param);

struct wf_cm_sidr_rep_param {
    uint32_t qpn, qkey;
    uint8_t status; // enum wf_cm_sidr_status
    const void *info;
    uint8_t info_len;
    const void *data;
    uint8_t data_len;
    uint32_t ece_vendor, ece_options;
};
int wf_cm_send_sidr_rep(struct wf_cm_id *id, const struct wf_cm_sidr_rep_param *param);

// A message came in on the QP before the RTU did. -EISCONN: established already.
int wf_cm_notify_established(struct wf_cm_id *id);
// The QP went over to its alternate path.
int wf_cm_notify_migrated(struct wf_cm_id *id);

// Attributes that move the id's QP to attr->qp_state; -EINVAL where the id is not that far.
int wf_cm_init_qp_attr(struct wf_cm_id *id, struct ibv_qp_attr *attr, int *mask);

struct wf_cm_stats {
    uint64_t sent[32], received[32]; // by attribute & 0x1f
    uint64_t repeated;               // sent again by a timer
    uint64_t answered_again;         // RTU, MRA, DREP sent again for a duplicate
    uint64_t malformed;
    uint64_t unknown_id;
    uint64_t wrong_peer;
    uint64_t unexpected; // the state has no use for the message
    uint64_t rejected;   // requests refused by the instance itself
    uint32_t ids;        // alive, those that finish by themselves included
};
const struct wf_cm_stats *wf_cm_stats(const struct wf_cm *cm);

#endif
