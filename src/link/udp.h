// SPDX-License-Identifier: BSD-2-Clause
// What the udp link shows beside struct wf_link (link.h).
#ifndef WF_LINK_UDP_H
#define WF_LINK_UDP_H

#include "link/link.h"

struct wf_udp_counters {
    uint64_t rx_packets, rx_bytes; // delivered; bytes from BTH to ICRC
    uint64_t rx_batches; // datagrams as the kernel handed them over, merged ones count once
    uint64_t rx_malformed;
    uint64_t rx_bad_icrc;
    uint64_t rx_truncated;         // longer than any UDP datagram may be
    uint64_t rx_other_id;          // right under another IPv4 Identification than expected
    uint64_t tx_packets, tx_bytes; // taken by the kernel
    uint64_t tx_batches;           // sends that carried them
    uint64_t tx_blocked;           // times that the socket buffer was full
    // Lost on the way out, by reason.
    uint64_t tx_no_route, tx_too_long, tx_bad_memory, tx_other;
};

// Of a link made by wf_udp_link_create(); lives as long as the link.
const struct wf_udp_counters *wf_udp_link_counters(const struct wf_link *link);

#endif
