// SPDX-License-Identifier: BSD-2-Clause
// The parts of the udp link: udp.c (the object), udp_rx.c, udp_tx.c (batching), udp_send.c (the
// system call and its errors), udp_addr.c (GIDs to socket addresses), udp_sock.c (sockets),
// udp_flow.c (Identifications of a sender), udp_faults.c (faults for tests).
#ifndef WF_LINK_UDP_INTERNAL_H
#define WF_LINK_UDP_INTERNAL_H

#include "link/udp.h"

#include "wire/codec.h"
#include "wire/icrc.h"

#include <netinet/in.h>
#include <sys/socket.h>

#define WF_UDP_SLOTS 256 // destination slots: DestQP >> 16

// ---- addresses ----------------------------------------------------------------------------------

// Where a batch goes and from where; equal contents may share one send.
struct wf_udp_dest {
    union ibv_gid sgid, dgid;
    uint32_t ifindex; // 0: by route
    uint32_t scope;   // IPv6 link-local and multicast
    uint8_t tclass, hop_limit, slot;
    bool v6;
};

union wf_udp_sockaddr {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

#define WF_UDP_CMSG_ROOM 128

// 0, or -ENETUNREACH when the GIDs are of different families.
int wf_udp_dest_of(const struct wf_path *path, const struct wf_pkt *pkt, struct wf_udp_dest *out);
// Name and control data (source address, TOS, TTL; UDP_SEGMENT when gso_size is not 0) of a send.
void wf_udp_dest_fill(const struct wf_udp_dest *dest, uint16_t port, uint16_t gso_size,
                      struct msghdr *msg, union wf_udp_sockaddr *to, void *control);

// ---- sockets ------------------------------------------------------------------------------------

struct wf_udp_socket {
    int fd; // -1: not made yet
    uint16_t port;
};

// Ask the kernel for all that receiving needs, as far as it has it. The port it is bound to, or
// -errno.
int wf_udp_prepare_rx(int fd, bool v6);
// A socket to send to destination slot `slot`; `variant` picks one of 64 source ports. 0 or -errno.
int wf_udp_open_tx(struct wf_udp_socket *s, bool v6, uint8_t slot, uint8_t variant);

// ---- flows --------------------------------------------------------------------------------------

#define WF_UDP_FLOWS 256

// What was learned of one sender (source address and port).
struct wf_udp_flow {
    uint64_t key;
    uint16_t last_id;
    uint8_t step;  // 1: Identifications count up
    uint8_t small; // packets in a row with DF and an Identification a batch of ours can have
    uint8_t odd;   // packets in a row that broke the habit
};

struct wf_udp_flow *wf_udp_flow_find(struct wf_udp_flow table[WF_UDP_FLOWS],
                                     const struct wf_icrc_scope *scope);
uint16_t wf_udp_flow_expect(const struct wf_udp_flow *flow);
// Learn. False: this Identification is so unlike the sender that corruption explains it better.
bool wf_udp_flow_accept(struct wf_udp_flow *flow, const struct wf_icrc_seen *seen);

// ---- receive ------------------------------------------------------------------------------------

#define WF_UDP_RX_MSGS 8
#define WF_UDP_RX_BUF  65536

struct wf_udp_rx {
    int fd;
    bool v6;
    uint32_t idle;      // polls in a row that found nothing
    int want;           // messages to ask for next time
    int nmsg, cur;      // messages received, the one being delivered
    size_t off;         // of the next packet in it
    uint16_t seg, next; // size of its packets, index of the next
    struct wf_icrc_scope scope;
    union ibv_gid sgid, dgid;
    uint8_t tclass, hop_limit;
    uint32_t flow_label, ifindex;
    struct mmsghdr *msgs;
    struct iovec iov[WF_UDP_RX_MSGS];
    union wf_udp_sockaddr from[WF_UDP_RX_MSGS];
    uint8_t *bufs; // WF_UDP_RX_MSGS of WF_UDP_RX_BUF
    _Alignas(16) uint8_t control[WF_UDP_RX_MSGS][256];
};

// ---- send ---------------------------------------------------------------------------------------

#define WF_UDP_TX_PKTS  256
#define WF_UDP_TX_IOVS  2048
#define WF_UDP_TX_DESTS 32
#define WF_UDP_TX_ARENA (160u << 10)

struct wf_udp_tx_pkt {
    uint32_t iov;  // first one
    uint16_t niov; // headers, payload, and the trailer of pad and ICRC, where not in one piece
    uint16_t dest;
    uint32_t len;  // BTH to ICRC
    uint32_t flip; // fault: 1 + the bit to flip after the ICRC is made
};

struct wf_udp_tx {
    int head, npkts; // packets [head, npkts) wait
    int kept;        // packets below this index have payload of our own
    int niov, ndest;
    size_t arena_used;
    int alone_until;    // packets below this index go one by one: their batch failed
    bool alone_for_gso; // ... for a reason that may be UDP_SEGMENT itself
    bool no_gso;
    uint8_t gso_strikes;
    bool blocked;
    uint8_t *keep; // payload of kept packets
    struct wf_udp_tx_pkt pkts[WF_UDP_TX_PKTS];
    struct wf_udp_dest dests[WF_UDP_TX_DESTS];
    struct iovec iovs[WF_UDP_TX_IOVS];
    struct iovec out[WF_UDP_TX_IOVS];
    uint8_t arena[WF_UDP_TX_ARENA];
};

struct wf_udp_faults;

struct wf_udp_link {
    struct wf_link base;
    uint16_t port; // 4791, or what the sockets given are bound to
    uint8_t variant;
    struct wf_udp_faults *faults;
    struct wf_udp_counters counters;
    struct wf_udp_rx *rx[2]; // IPv4, IPv6; NULL when absent
    struct wf_udp_socket socks[2][WF_UDP_SLOTS];
    struct wf_udp_flow flows[WF_UDP_FLOWS];
    struct wf_udp_tx tx;
};

int wf_udp_rx_create(int fd, bool v6, struct wf_udp_rx **out);
void wf_udp_rx_destroy(struct wf_udp_rx *rx);
int wf_udp_poll(struct wf_link *l, int budget);

// Queue one packet; with `copy` its payload may go away at once. flip as in struct wf_udp_tx_pkt,
// needs `copy`. Errors as wf_link_ops.send.
int wf_udp_tx_queue(struct wf_udp_link *u, const struct wf_path *path, const struct wf_pkt *pkt,
                    bool copy, uint32_t flip);
// Push all that waits; payload that must wait on is copied.
void wf_udp_tx_flush(struct wf_udp_link *u);
// Hand packets to the kernel until none waits or the socket is full (tx.blocked).
void wf_udp_tx_push(struct wf_udp_link *u);

// ---- faults -------------------------------------------------------------------------------------

// From the text of WEFT_UDP_FAULTS: "drop=0.01,dup=0.01,reorder=0.01,corrupt=0.01,seed=1". NULL
// when the text is NULL, empty or not understood (that is explained).
struct wf_udp_faults *wf_udp_faults_create(const char *text);
void wf_udp_faults_destroy(struct wf_udp_faults *f);
int wf_udp_faults_send(struct wf_udp_link *u, const struct wf_path *path, const struct wf_pkt *pkt);
void wf_udp_faults_flush(struct wf_udp_link *u);

#endif
