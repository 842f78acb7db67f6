/* SPDX-License-Identifier: BSD-2-Clause */
/* Path records, as ib_cm.h passes them. weft_ib_path() (weft/ib.h) makes one from addresses. */
#ifndef IB_SA_H
#define IB_SA_H

#include <rdma/ib_verbs.h>

enum ib_sa_selector { IB_SA_GT = 0, IB_SA_LT = 1, IB_SA_EQ = 2, IB_SA_BEST = 3 };

/* LIDs are zero on RoCE. packet_life_time: 4.096 us << life time. */
struct ib_sa_path_rec {
    __be64 service_id;
    union ib_gid dgid;
    union ib_gid sgid;
    __be16 dlid;
    __be16 slid;
    int raw_traffic;
    __be32 flow_label;
    u8 hop_limit;
    u8 traffic_class;
    int reversible;
    u8 numb_path;
    __be16 pkey;
    __be16 qos_class;
    u8 sl;
    u8 mtu_selector;
    u8 mtu; /* enum ib_mtu */
    u8 rate_selector;
    u8 rate; /* enum ib_rate */
    u8 packet_life_time_selector;
    u8 packet_life_time;
    u8 preference;
};

#endif
