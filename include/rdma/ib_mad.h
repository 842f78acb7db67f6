/* SPDX-License-Identifier: BSD-2-Clause */
/* What ib_cm.h needs of management datagrams. */
#ifndef IB_MAD_H
#define IB_MAD_H

#include <rdma/ib_verbs.h>

#define IB_MGMT_BASE_VERSION    1
#define IB_MGMT_CLASS_CM        0x07
#define IB_MGMT_METHOD_GET      0x01
#define IB_MGMT_METHOD_SEND     0x03
#define IB_MGMT_METHOD_GET_RESP 0x81

#define IB_QP0      0
#define IB_QP1      cpu_to_be32(1)
#define IB_QP1_QKEY 0x80010000

enum {
    IB_MGMT_MAD_HDR = 24,
    IB_MGMT_MAD_DATA = 232,
    IB_MGMT_MAD_SIZE = IB_MGMT_MAD_HDR + IB_MGMT_MAD_DATA
};

struct ib_mad_hdr {
    u8 base_version;
    u8 mgmt_class;
    u8 class_version;
    u8 method;
    __be16 status;
    __be16 class_specific;
    __be64 tid;
    __be16 attr_id;
    __be16 resv;
    __be32 attr_mod;
};

#endif
