/* SPDX-License-Identifier: BSD-2-Clause */
/* The InfiniBand connection manager with the kernel's interface, in user space: connections of RC
 * and UC queue pairs, alternate paths, and service id resolution for datagrams. Objects of verbs
 * are reached through weft/ib.h.
 *
 * Every call may be made from any thread, also from a handler (but see ib_destroy_cm_id), blocks on
 * nothing but locks unless said otherwise, and gives 0 or -errno: -EINVAL when the state of the id
 * does not allow it or data is too long, -ENOMEM, -ENETUNREACH and the like when a message cannot
 * be sent. Numbers of type __be.. are in network byte order, all others in the host's. */
#ifndef IB_CM_H
#define IB_CM_H

#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>

#ifdef __cplusplus
extern "C" {
#else
/* There is no such class in user space; the name is here for programs that mention it. */
extern struct class cm_class;
#endif

enum ib_cm_state {
    IB_CM_IDLE,
    IB_CM_LISTEN,
    IB_CM_REQ_SENT,
    IB_CM_REQ_RCVD,
    IB_CM_MRA_REQ_SENT,
    IB_CM_MRA_REQ_RCVD,
    IB_CM_REP_SENT,
    IB_CM_REP_RCVD,
    IB_CM_MRA_REP_SENT,
    IB_CM_MRA_REP_RCVD,
    IB_CM_ESTABLISHED,
    IB_CM_DREQ_SENT,
    IB_CM_DREQ_RCVD,
    IB_CM_TIMEWAIT,
    IB_CM_SIDR_REQ_SENT,
    IB_CM_SIDR_REQ_RCVD
};

/* Runs inside IB_CM_ESTABLISHED. */
enum ib_cm_lap_state {
    IB_CM_LAP_UNINIT,
    IB_CM_LAP_IDLE,
    IB_CM_LAP_SENT,
    IB_CM_LAP_RCVD,
    IB_CM_MRA_LAP_SENT,
    IB_CM_MRA_LAP_RCVD,
};

enum ib_cm_event_type {
    IB_CM_REQ_ERROR,
    IB_CM_REQ_RECEIVED,
    IB_CM_REP_ERROR,
    IB_CM_REP_RECEIVED,
    IB_CM_RTU_RECEIVED,
    IB_CM_USER_ESTABLISHED,
    IB_CM_DREQ_ERROR,
    IB_CM_DREQ_RECEIVED,
    IB_CM_DREP_RECEIVED,
    IB_CM_TIMEWAIT_EXIT,
    IB_CM_MRA_RECEIVED,
    IB_CM_REJ_RECEIVED,
    IB_CM_LAP_ERROR,
    IB_CM_LAP_RECEIVED,
    IB_CM_APR_RECEIVED,
    IB_CM_SIDR_REQ_ERROR,
    IB_CM_SIDR_REQ_RECEIVED,
    IB_CM_SIDR_REP_RECEIVED
};

/* Bytes of private data and further information that each message carries; received data always
 * has the full length, padded with zeros. */
enum ib_cm_data_size {
    IB_CM_REQ_PRIVATE_DATA_SIZE = 92,
    IB_CM_MRA_PRIVATE_DATA_SIZE = 222,
    IB_CM_REJ_PRIVATE_DATA_SIZE = 148,
    IB_CM_REP_PRIVATE_DATA_SIZE = 196,
    IB_CM_RTU_PRIVATE_DATA_SIZE = 224,
    IB_CM_DREQ_PRIVATE_DATA_SIZE = 220,
    IB_CM_DREP_PRIVATE_DATA_SIZE = 224,
    IB_CM_REJ_ARI_LENGTH = 72,
    IB_CM_LAP_PRIVATE_DATA_SIZE = 168,
    IB_CM_APR_PRIVATE_DATA_SIZE = 148,
    IB_CM_APR_INFO_LENGTH = 72,
    IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE = 216,
    IB_CM_SIDR_REP_PRIVATE_DATA_SIZE = 136,
    IB_CM_SIDR_REP_INFO_LENGTH = 72,
    IB_CM_COMPARE_SIZE = 64
};

struct ib_cm_id;

/* Paths are from the receiver's point of view, and what the peer may start is given as what this
 * side must be ready for. alternate_path is NULL when there is none; listen_id is NULL when two
 * peers connected to each other. */
struct ib_cm_req_event_param {
    struct ib_cm_id *listen_id;
    u8 port;
    struct ib_sa_path_rec *primary_path;
    struct ib_sa_path_rec *alternate_path;
    __be64 remote_ca_guid;
    u32 remote_qkey;
    u32 remote_qpn;
    enum ib_qp_type qp_type;
    u32 starting_psn;
    u8 responder_resources;
    u8 initiator_depth;
    unsigned int local_cm_response_timeout : 5;
    unsigned int flow_control : 1;
    unsigned int remote_cm_response_timeout : 5;
    unsigned int retry_count : 3;
    unsigned int rnr_retry_count : 3;
    unsigned int srq : 1;
};

struct ib_cm_rep_event_param {
    __be64 remote_ca_guid;
    u32 remote_qkey;
    u32 remote_qpn;
    u32 starting_psn;
    u8 responder_resources;
    u8 initiator_depth;
    unsigned int target_ack_delay : 5;
    unsigned int failover_accepted : 2;
    unsigned int flow_control : 1;
    unsigned int rnr_retry_count : 3;
    unsigned int srq : 1;
};

/* IBA vol. 1, table 99. */
enum ib_cm_rej_reason {
    IB_CM_REJ_NO_QP = 1,
    IB_CM_REJ_NO_EEC = 2,
    IB_CM_REJ_NO_RESOURCES = 3,
    IB_CM_REJ_TIMEOUT = 4,
    IB_CM_REJ_UNSUPPORTED = 5,
    IB_CM_REJ_INVALID_COMM_ID = 6,
    IB_CM_REJ_INVALID_COMM_INSTANCE = 7,
    IB_CM_REJ_INVALID_SERVICE_ID = 8,
    IB_CM_REJ_INVALID_TRANSPORT_TYPE = 9,
    IB_CM_REJ_STALE_CONN = 10,
    IB_CM_REJ_RDC_NOT_EXIST = 11,
    IB_CM_REJ_INVALID_GID = 12,
    IB_CM_REJ_INVALID_LID = 13,
    IB_CM_REJ_INVALID_SL = 14,
    IB_CM_REJ_INVALID_TRAFFIC_CLASS = 15,
    IB_CM_REJ_INVALID_HOP_LIMIT = 16,
    IB_CM_REJ_INVALID_PACKET_RATE = 17,
    IB_CM_REJ_INVALID_ALT_GID = 18,
    IB_CM_REJ_INVALID_ALT_LID = 19,
    IB_CM_REJ_INVALID_ALT_SL = 20,
    IB_CM_REJ_INVALID_ALT_TRAFFIC_CLASS = 21,
    IB_CM_REJ_INVALID_ALT_HOP_LIMIT = 22,
    IB_CM_REJ_INVALID_ALT_PACKET_RATE = 23,
    IB_CM_REJ_PORT_CM_REDIRECT = 24,
    IB_CM_REJ_PORT_REDIRECT = 25,
    IB_CM_REJ_INVALID_MTU = 26,
    IB_CM_REJ_INSUFFICIENT_RESP_RESOURCES = 27,
    IB_CM_REJ_CONSUMER_DEFINED = 28,
    IB_CM_REJ_INVALID_RNR_RETRY = 29,
    IB_CM_REJ_DUPLICATE_LOCAL_COMM_ID = 30,
    IB_CM_REJ_INVALID_CLASS_VERSION = 31,
    IB_CM_REJ_INVALID_FLOW_LABEL = 32,
    IB_CM_REJ_INVALID_ALT_FLOW_LABEL = 33
};

struct ib_cm_rej_event_param {
    enum ib_cm_rej_reason reason;
    void *ari;
    u8 ari_length;
};

struct ib_cm_mra_event_param {
    u8 service_timeout;
};

struct ib_cm_lap_event_param {
    struct ib_sa_path_rec *alternate_path;
};

enum ib_cm_apr_status {
    IB_CM_APR_SUCCESS,
    IB_CM_APR_INVALID_COMM_ID,
    IB_CM_APR_UNSUPPORTED,
    IB_CM_APR_REJECT,
    IB_CM_APR_REDIRECT,
    IB_CM_APR_IS_CURRENT,
    IB_CM_APR_INVALID_QPN_EECN,
    IB_CM_APR_INVALID_LID,
    IB_CM_APR_INVALID_GID,
    IB_CM_APR_INVALID_FLOW_LABEL,
    IB_CM_APR_INVALID_TCLASS,
    IB_CM_APR_INVALID_HOP_LIMIT,
    IB_CM_APR_INVALID_PACKET_RATE,
    IB_CM_APR_INVALID_SL
};

struct ib_cm_apr_event_param {
    enum ib_cm_apr_status ap_status;
    void *apr_info;
    u8 info_len;
};

struct ib_cm_sidr_req_event_param {
    struct ib_cm_id *listen_id;
    u8 port;
    u16 pkey;
};

enum ib_cm_sidr_status {
    IB_SIDR_SUCCESS,
    IB_SIDR_UNSUPPORTED,
    IB_SIDR_REJECT,
    IB_SIDR_NO_QP,
    IB_SIDR_REDIRECT,
    IB_SIDR_UNSUPPORTED_VERSION
};

struct ib_cm_sidr_rep_event_param {
    enum ib_cm_sidr_status status;
    u32 qkey;
    u32 qpn;
    void *info;
    u8 info_len;
};

/* Valid during the handler only, with all that it points to. */
struct ib_cm_event {
    enum ib_cm_event_type event;
    union {
        struct ib_cm_req_event_param req_rcvd;
        struct ib_cm_rep_event_param rep_rcvd;
        struct ib_cm_rej_event_param rej_rcvd;
        struct ib_cm_mra_event_param mra_rcvd;
        struct ib_cm_lap_event_param lap_rcvd;
        struct ib_cm_apr_event_param apr_rcvd;
        struct ib_cm_sidr_req_event_param sidr_req_rcvd;
        struct ib_cm_sidr_rep_event_param sidr_rep_rcvd;
        enum ib_wc_status send_status; /* the ..._ERROR events */
    } param;
    void *private_data;
};

/* Told of every event of an id, one at a time and in order, on a thread of the library with no lock
 * held. REQ_RECEIVED and SIDR_REQ_RECEIVED on a listener bring a new id, which has the listener's
 * handler and context and is the program's to destroy. A value other than 0 makes the library
 * destroy the id when the handler is back (-ENOMEM on a new one: without a word to the peer, who
 * will ask again). */
typedef int (*ib_cm_handler)(struct ib_cm_id *cm_id, struct ib_cm_event *event);

struct ib_cm_id {
    ib_cm_handler cm_handler;
    void *context;
    struct ib_device *device;
    __be64 service_id;
    __be64 service_mask;
    enum ib_cm_state state; /* of this moment, for diagnosis */
    enum ib_cm_lap_state lap_state;
    __be32 local_id;
    __be32 remote_id;
    u32 remote_cm_qpn; /* 1 */
};

/* A new id, or NULL with errno. May block for two seconds, on first use. */
struct ib_cm_id *ib_create_cm_id(struct ib_device *device, ib_cm_handler cm_handler, void *context);

/* Ends the exchange as its state asks for and frees the id. Waits for a handler of it that runs;
 * must not be called from that handler, which returns non-zero instead. */
void ib_destroy_cm_id(struct ib_cm_id *cm_id);

#define IB_SERVICE_ID_AGN_MASK  cpu_to_be64(0xFF00000000000000ULL)
#define IB_CM_ASSIGN_SERVICE_ID cpu_to_be64(0x0200000000000000ULL)
#define IB_CMA_SERVICE_ID       cpu_to_be64(0x0000000001000000ULL)
#define IB_CMA_SERVICE_ID_MASK  cpu_to_be64(0xFFFFFFFFFF000000ULL)
#define IB_SDP_SERVICE_ID       cpu_to_be64(0x0000000000010000ULL)
#define IB_SDP_SERVICE_ID_MASK  cpu_to_be64(0xFFFFFFFFFFFF0000ULL)

struct ib_cm_compare_data {
    u8 data[IB_CM_COMPARE_SIZE];
    u8 mask[IB_CM_COMPARE_SIZE];
};

/* Listen to requests for service_id, as far as service_mask looks (0: all of it). With
 * IB_CM_ASSIGN_SERVICE_ID the library picks an id: see cm_id->service_id. compare_data, if given,
 * must be found at the start of the private data. -EBUSY: somebody listens there already and
 * compare data does not tell the two apart. */
int ib_cm_listen(struct ib_cm_id *cm_id, __be64 service_id, __be64 service_mask,
                 struct ib_cm_compare_data *compare_data);

struct ib_cm_req_param {
    struct ib_sa_path_rec *primary_path;
    struct ib_sa_path_rec *alternate_path; /* or NULL */
    __be64 service_id;
    u32 qp_num;
    enum ib_qp_type qp_type;
    u32 starting_psn;
    const void *private_data;
    u8 private_data_len;
    u8 peer_to_peer; /* the peer calls ib_send_cm_req too instead of listening */
    u8 responder_resources;
    u8 initiator_depth;
    u8 remote_cm_response_timeout;
    u8 flow_control;
    u8 local_cm_response_timeout;
    u8 retry_count;
    u8 rnr_retry_count;
    u8 max_cm_retries;
    u8 srq;
};

int ib_send_cm_req(struct ib_cm_id *cm_id, struct ib_cm_req_param *param);

struct ib_cm_rep_param {
    u32 qp_num;
    u32 starting_psn;
    const void *private_data;
    u8 private_data_len;
    u8 responder_resources;
    u8 initiator_depth;
    u8 failover_accepted;
    u8 flow_control;
    u8 rnr_retry_count;
    u8 srq;
};

int ib_send_cm_rep(struct ib_cm_id *cm_id, struct ib_cm_rep_param *param);

/* The data is kept and sent again should the peer's reply come twice. */
int ib_send_cm_rtu(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len);

int ib_send_cm_dreq(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len);

/* The id goes to TIMEWAIT even if the message cannot be sent. */
int ib_send_cm_drep(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len);

/* What the QP reported: IB_EVENT_COMM_EST, a message came before the RTU (-EISCONN: established
 * already); IB_EVENT_PATH_MIG, it went over to the alternate path. */
int ib_cm_notify(struct ib_cm_id *cm_id, enum ib_event_type event);

int ib_send_cm_rej(struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason, void *ari, u8 ari_length,
                   const void *private_data, u8 private_data_len);

#define IB_CM_MRA_FLAG_DELAY 0x80 /* nothing is sent before a duplicate comes */

/* Ask the peer for patience; the lower 5 bits of service_timeout say how much (4.096 us << n). */
int ib_send_cm_mra(struct ib_cm_id *cm_id, u8 service_timeout, const void *private_data,
                   u8 private_data_len);

int ib_send_cm_lap(struct ib_cm_id *cm_id, struct ib_sa_path_rec *alternate_path,
                   const void *private_data, u8 private_data_len);

/* qp_attr->qp_state says where the QP is to go; the attributes for that and their mask come back,
 * for weft_ib_modify_qp(). */
int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, struct ib_qp_attr *qp_attr, int *qp_attr_mask);

int ib_send_cm_apr(struct ib_cm_id *cm_id, enum ib_cm_apr_status status, void *info, u8 info_length,
                   const void *private_data, u8 private_data_len);

struct ib_cm_sidr_req_param {
    struct ib_sa_path_rec *path;
    __be64 service_id;
    int timeout_ms;
    const void *private_data;
    u8 private_data_len;
    u8 max_cm_retries;
};

int ib_send_cm_sidr_req(struct ib_cm_id *cm_id, struct ib_cm_sidr_req_param *param);

struct ib_cm_sidr_rep_param {
    u32 qp_num;
    u32 qkey;
    enum ib_cm_sidr_status status;
    const void *info;
    u8 info_length;
    const void *private_data;
    u8 private_data_len;
};

int ib_send_cm_sidr_rep(struct ib_cm_id *cm_id, struct ib_cm_sidr_rep_param *param);

#ifdef __cplusplus
}
#endif

#endif
