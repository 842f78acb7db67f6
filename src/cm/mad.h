// SPDX-License-Identifier: BSD-2-Clause
// Connection management datagrams as structures in host order, and back (IBA vol. 1, chapter 12.6).
// Decoding takes every 256-byte MAD of the class: fields have the width of the wire, reserved bits
// are ignored and are sent as zero. What a value means is not judged here.
#ifndef WF_CM_MAD_H
#define WF_CM_MAD_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define WF_MAD_SIZE     256
#define WF_MAD_DATA     24 // where the message starts
#define WF_MAD_CLASS_CM 0x07

enum wf_mad_method {
    WF_MAD_GET = 0x01,
    WF_MAD_SEND = 0x03,
    WF_MAD_GET_RESP = 0x81,
};

enum wf_cm_attr {
    WF_CM_CLASS_PORT_INFO = 0x0001,
    WF_CM_REQ = 0x0010,
    WF_CM_MRA = 0x0011,
    WF_CM_REJ = 0x0012,
    WF_CM_REP = 0x0013,
    WF_CM_RTU = 0x0014,
    WF_CM_DREQ = 0x0015,
    WF_CM_DREP = 0x0016,
    WF_CM_SIDR_REQ = 0x0017,
    WF_CM_SIDR_REP = 0x0018,
    WF_CM_LAP = 0x0019,
    WF_CM_APR = 0x001a,
};

enum wf_cm_sizes {
    WF_CM_REQ_DATA = 92,
    WF_CM_MRA_DATA = 222,
    WF_CM_REJ_DATA = 148,
    WF_CM_REP_DATA = 196,
    WF_CM_RTU_DATA = 224,
    WF_CM_DREQ_DATA = 220,
    WF_CM_DREP_DATA = 224,
    WF_CM_LAP_DATA = 168,
    WF_CM_APR_DATA = 148,
    WF_CM_SIDR_REQ_DATA = 216,
    WF_CM_SIDR_REP_DATA = 136,
    WF_CM_INFO = 72, // additional information of REJ, APR and SIDR_REP
};

enum wf_cm_transport {
    WF_CM_RC = 0,
    WF_CM_UC = 1,
    WF_CM_RD = 2,
    WF_CM_EXT = 3, // see wf_cm_req.ext_transport
};
#define WF_CM_EXT_XRC 1

// What an MRA acknowledges and a REJ rejects (12.6.6, 12.6.7).
enum wf_cm_what {
    WF_CM_WHAT_REQ = 0,
    WF_CM_WHAT_REP = 1,
    WF_CM_WHAT_OTHER = 2,
};

struct wf_cm_hdr {
    uint8_t class_version;
    uint8_t method;
    uint16_t status;
    uint64_t tid;
    uint16_t attr; // enum wf_cm_attr
    uint32_t modifier;
};

// Path of a REQ (primary, alternate) or LAP; "local" is the side that sends the message.
struct wf_cm_path {
    uint16_t local_lid, remote_lid;
    union ibv_gid local_gid, remote_gid;
    uint32_t flow_label;
    uint8_t rate;
    uint8_t tclass;
    uint8_t hop_limit;
    uint8_t sl;
    bool subnet_local;
    uint8_t ack_timeout;
    bool sap; // alternate path of a REQ only
};

struct wf_cm_req {
    uint32_t local_id;
    uint32_t vendor_id;
    uint64_t service_id;
    uint64_t ca_guid;
    uint32_t qkey;
    uint32_t qpn;
    uint8_t responder_resources;
    uint32_t local_eecn;
    uint8_t initiator_depth;
    uint32_t remote_eecn;
    uint8_t remote_response_timeout;
    uint8_t transport; // enum wf_cm_transport
    bool flow_control;
    uint32_t psn;
    uint8_t local_response_timeout;
    uint8_t retry_count;
    uint16_t pkey;
    uint8_t mtu; // enum ibv_mtu
    bool rdc_exists;
    uint8_t rnr_retry;
    uint8_t max_cm_retries;
    bool srq;
    uint8_t ext_transport;
    struct wf_cm_path primary, alternate;
    uint8_t data[WF_CM_REQ_DATA];
};

struct wf_cm_rep {
    uint32_t local_id, remote_id;
    uint32_t qkey;
    uint32_t qpn;
    uint32_t vendor_id;
    uint32_t eecn; // XRC: number of the target QP
    uint32_t psn;
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint8_t target_ack_delay;
    uint8_t failover_accepted;
    bool flow_control;
    uint8_t rnr_retry;
    bool srq;
    uint64_t ca_guid;
    uint8_t data[WF_CM_REP_DATA];
};

struct wf_cm_mra {
    uint32_t local_id, remote_id;
    uint8_t what; // enum wf_cm_what
    uint8_t service_timeout;
    uint8_t data[WF_CM_MRA_DATA];
};

struct wf_cm_rej {
    uint32_t local_id, remote_id;
    uint8_t what; // enum wf_cm_what
    uint8_t ari_len;
    uint16_t reason; // enum wf_cm_rej_reason
    uint8_t ari[WF_CM_INFO];
    uint8_t data[WF_CM_REJ_DATA];
};

struct wf_cm_rtu {
    uint32_t local_id, remote_id;
    uint8_t data[WF_CM_RTU_DATA];
};

struct wf_cm_dreq {
    uint32_t local_id, remote_id;
    uint32_t remote_qpn; // the receiver's own
    uint8_t data[WF_CM_DREQ_DATA];
};

struct wf_cm_drep {
    uint32_t local_id, remote_id;
    uint8_t data[WF_CM_DREP_DATA];
};

struct wf_cm_lap {
    uint32_t local_id, remote_id;
    uint32_t remote_qpn;
    uint8_t remote_response_timeout;
    struct wf_cm_path path;
    uint8_t data[WF_CM_LAP_DATA];
};

struct wf_cm_apr {
    uint32_t local_id, remote_id;
    uint8_t info_len;
    uint8_t status; // enum wf_cm_apr_status
    uint8_t info[WF_CM_INFO];
    uint8_t data[WF_CM_APR_DATA];
};

struct wf_cm_sidr_req {
    uint32_t request_id;
    uint16_t pkey;
    uint64_t service_id;
    uint8_t data[WF_CM_SIDR_REQ_DATA];
};

struct wf_cm_sidr_rep {
    uint32_t request_id;
    uint8_t status; // enum wf_cm_sidr_status
    uint8_t info_len;
    uint32_t vendor_id;
    uint32_t qpn;
    uint64_t service_id;
    uint32_t qkey;
    uint8_t info[WF_CM_INFO];
    uint8_t data[WF_CM_SIDR_REP_DATA];
};

// 13.4.8.1; only what a CM answers with.
struct wf_class_port_info {
    uint8_t base_version, class_version;
    uint16_t capabilities; // 1 << 9 RC, 12 UC, 13 SIDR (table 110)
    uint8_t response_time;
    union ibv_gid redirect_gid;
    uint16_t redirect_lid, redirect_pkey;
    uint32_t redirect_qpn, redirect_qkey;
};

struct wf_cm_msg {
    struct wf_cm_hdr hdr;
    union {
        struct wf_cm_req req;
        struct wf_cm_mra mra;
        struct wf_cm_rej rej;
        struct wf_cm_rep rep;
        struct wf_cm_rtu rtu;
        struct wf_cm_dreq dreq;
        struct wf_cm_drep drep;
        struct wf_cm_lap lap;
        struct wf_cm_apr apr;
        struct wf_cm_sidr_req sidr_req;
        struct wf_cm_sidr_rep sidr_rep;
        struct wf_class_port_info class_port_info;
    };
};

// 0; -EBADMSG: not a MAD of the CM class and base version 1; -EOPNOTSUPP: a method and attribute
// that the class does not have. The class version is the caller's to check (REJ 31).
int wf_cm_decode(const uint8_t mad[WF_MAD_SIZE], struct wf_cm_msg *out);

// Fields wider than on the wire are cut. hdr.attr must be one of enum wf_cm_attr.
void wf_cm_encode(const struct wf_cm_msg *msg, uint8_t mad[WF_MAD_SIZE]);

// "REQ"; "?" for an unknown attribute.
const char *wf_cm_attr_name(uint16_t attr);

// The private data of a message and its length on the wire.
uint8_t *wf_cm_msg_data(struct wf_cm_msg *msg, uint32_t *len);

#endif
