/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the kernel's verbs interface that its connection manager's interface (ib_cm.h) is
 * made of: names and values as there, in user space. QPs, memory and completions are those of
 * <infiniband/verbs.h>; weft/ib.h leads from one to the other. */
#ifndef IB_VERBS_H
#define IB_VERBS_H

#include <endian.h>
#include <linux/types.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#ifndef cpu_to_be64
#define cpu_to_be16(x) htobe16(x)
#define cpu_to_be32(x) htobe32(x)
#define cpu_to_be64(x) htobe64(x)
#define be16_to_cpu(x) be16toh(x)
#define be32_to_cpu(x) be32toh(x)
#define be64_to_cpu(x) be64toh(x)
#endif

#define IB_DEVICE_NAME_MAX 64

/* Given by weft_ib_device() and never freed. */
struct ib_device {
    char name[IB_DEVICE_NAME_MAX];
    __be64 node_guid;
    u8 phys_port_cnt;
};

union ib_gid {
    u8 raw[16];
    struct {
        __be64 subnet_prefix;
        __be64 interface_id;
    } global;
};

enum ib_mtu { IB_MTU_256 = 1, IB_MTU_512 = 2, IB_MTU_1024 = 3, IB_MTU_2048 = 4, IB_MTU_4096 = 5 };

enum ib_rate {
    IB_RATE_PORT_CURRENT = 0,
    IB_RATE_2_5_GBPS = 2,
    IB_RATE_10_GBPS = 3,
    IB_RATE_30_GBPS = 4,
    IB_RATE_5_GBPS = 5,
    IB_RATE_20_GBPS = 6,
    IB_RATE_40_GBPS = 7,
    IB_RATE_60_GBPS = 8,
    IB_RATE_80_GBPS = 9,
    IB_RATE_120_GBPS = 10
};

enum ib_event_type {
    IB_EVENT_CQ_ERR,
    IB_EVENT_QP_FATAL,
    IB_EVENT_QP_REQ_ERR,
    IB_EVENT_QP_ACCESS_ERR,
    IB_EVENT_COMM_EST,
    IB_EVENT_SQ_DRAINED,
    IB_EVENT_PATH_MIG,
    IB_EVENT_PATH_MIG_ERR,
    IB_EVENT_DEVICE_FATAL,
    IB_EVENT_PORT_ACTIVE,
    IB_EVENT_PORT_ERR,
    IB_EVENT_LID_CHANGE,
    IB_EVENT_PKEY_CHANGE,
    IB_EVENT_SM_CHANGE,
    IB_EVENT_SRQ_ERR,
    IB_EVENT_SRQ_LIMIT_REACHED,
    IB_EVENT_QP_LAST_WQE_REACHED,
    IB_EVENT_CLIENT_REREGISTER,
    IB_EVENT_GID_CHANGE
};

enum ib_wc_status {
    IB_WC_SUCCESS,
    IB_WC_LOC_LEN_ERR,
    IB_WC_LOC_QP_OP_ERR,
    IB_WC_LOC_EEC_OP_ERR,
    IB_WC_LOC_PROT_ERR,
    IB_WC_WR_FLUSH_ERR,
    IB_WC_MW_BIND_ERR,
    IB_WC_BAD_RESP_ERR,
    IB_WC_LOC_ACCESS_ERR,
    IB_WC_REM_INV_REQ_ERR,
    IB_WC_REM_ACCESS_ERR,
    IB_WC_REM_OP_ERR,
    IB_WC_RETRY_EXC_ERR,
    IB_WC_RNR_RETRY_EXC_ERR,
    IB_WC_LOC_RDD_VIOL_ERR,
    IB_WC_REM_INV_RD_REQ_ERR,
    IB_WC_REM_ABORT_ERR,
    IB_WC_INV_EECN_ERR,
    IB_WC_INV_EEC_STATE_ERR,
    IB_WC_FATAL_ERR,
    IB_WC_RESP_TIMEOUT_ERR,
    IB_WC_GENERAL_ERR
};

enum ib_qp_type {
    IB_QPT_SMI,
    IB_QPT_GSI,
    IB_QPT_RC,
    IB_QPT_UC,
    IB_QPT_UD,
    IB_QPT_RAW_IPV6,
    IB_QPT_RAW_ETHERTYPE,
    IB_QPT_RAW_PACKET = 8,
    IB_QPT_XRC_INI = 9,
    IB_QPT_XRC_TGT
};

enum ib_qp_state {
    IB_QPS_RESET,
    IB_QPS_INIT,
    IB_QPS_RTR,
    IB_QPS_RTS,
    IB_QPS_SQD,
    IB_QPS_SQE,
    IB_QPS_ERR
};

enum ib_mig_state { IB_MIG_MIGRATED, IB_MIG_REARM, IB_MIG_ARMED };

enum ib_access_flags {
    IB_ACCESS_LOCAL_WRITE = 1,
    IB_ACCESS_REMOTE_WRITE = 1 << 1,
    IB_ACCESS_REMOTE_READ = 1 << 2,
    IB_ACCESS_REMOTE_ATOMIC = 1 << 3,
    IB_ACCESS_MW_BIND = 1 << 4
};

enum ib_qp_attr_mask {
    IB_QP_STATE = 1,
    IB_QP_CUR_STATE = 1 << 1,
    IB_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
    IB_QP_ACCESS_FLAGS = 1 << 3,
    IB_QP_PKEY_INDEX = 1 << 4,
    IB_QP_PORT = 1 << 5,
    IB_QP_QKEY = 1 << 6,
    IB_QP_AV = 1 << 7,
    IB_QP_PATH_MTU = 1 << 8,
    IB_QP_TIMEOUT = 1 << 9,
    IB_QP_RETRY_CNT = 1 << 10,
    IB_QP_RNR_RETRY = 1 << 11,
    IB_QP_RQ_PSN = 1 << 12,
    IB_QP_MAX_QP_RD_ATOMIC = 1 << 13,
    IB_QP_ALT_PATH = 1 << 14,
    IB_QP_MIN_RNR_TIMER = 1 << 15,
    IB_QP_SQ_PSN = 1 << 16,
    IB_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
    IB_QP_PATH_MIG_STATE = 1 << 18,
    IB_QP_CAP = 1 << 19,
    IB_QP_DEST_QPN = 1 << 20
};

enum ib_ah_flags { IB_AH_GRH = 1 };

struct ib_global_route {
    union ib_gid dgid;
    u32 flow_label;
    u8 sgid_index;
    u8 hop_limit;
    u8 traffic_class;
};

struct ib_ah_attr {
    struct ib_global_route grh;
    u16 dlid;
    u8 sl;
    u8 src_path_bits;
    u8 static_rate;
    u8 ah_flags;
    u8 port_num;
};

struct ib_qp_cap {
    u32 max_send_wr;
    u32 max_recv_wr;
    u32 max_send_sge;
    u32 max_recv_sge;
    u32 max_inline_data;
};

struct ib_qp_attr {
    enum ib_qp_state qp_state;
    enum ib_qp_state cur_qp_state;
    enum ib_mtu path_mtu;
    enum ib_mig_state path_mig_state;
    u32 qkey;
    u32 rq_psn;
    u32 sq_psn;
    u32 dest_qp_num;
    int qp_access_flags;
    struct ib_qp_cap cap;
    struct ib_ah_attr ah_attr;
    struct ib_ah_attr alt_ah_attr;
    u16 pkey_index;
    u16 alt_pkey_index;
    u8 en_sqd_async_notify;
    u8 sq_draining;
    u8 max_rd_atomic;
    u8 max_dest_rd_atomic;
    u8 min_rnr_timer;
    u8 port_num;
    u8 timeout;
    u8 retry_cnt;
    u8 rnr_retry;
    u8 alt_port_num;
    u8 alt_timeout;
};

#ifdef __cplusplus
}
#endif

#endif
