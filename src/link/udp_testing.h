// SPDX-License-Identifier: BSD-2-Clause
// For tests and benchmarks of the udp link: links on loopback, and a sendmmsg() that can be told to
// fail (linked in with -Wl,--wrap=sendmmsg,--wrap=sendmsg).
#ifndef WF_LINK_UDP_TESTING_H
#define WF_LINK_UDP_TESTING_H

#include "link/link.h"

struct udp_testing {
    int fds[2];
    uint16_t port;
    struct wf_link *a, *b; // one and the same over IPv6
    struct wf_path to_b, to_a;
};

// 0 or -errno.
int udp_testing_open(struct udp_testing *t, bool v6);
int udp_testing_open_at(struct udp_testing *t, bool v6, uint16_t port); // not any free port
void udp_testing_close(struct udp_testing *t);

void udp_testing_block(bool on);  // the socket buffer is full
void udp_testing_no_gso(bool on); // UDP_SEGMENT is not known

#endif
