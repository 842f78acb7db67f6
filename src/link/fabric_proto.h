// SPDX-License-Identifier: BSD-2-Clause
// What an engine and weftd say to each other over a SOCK_SEQPACKET abstract Unix socket. Every
// message is one struct wf_fmsg; descriptors travel beside it. A request carries a number that its
// reply repeats; MAD and WILL have no reply; events have number 0.
#ifndef WF_LINK_FABRIC_PROTO_H
#define WF_LINK_FABRIC_PROTO_H

#include "link/gidtab.h"
#include <stddef.h>
#include <stdint.h>

#define WF_FABRIC_VERSION  1u
#define WF_FABRIC_NAME_FMT "weft-%u-v1" // uid; in the abstract name space
#define WF_FABRIC_FDS      4
#define WF_ROCE_PORT       4791

enum wf_fmsg_type {
    WF_F_JOIN = 1,     // fds: region, doorbell [, keepsake, GID table when joining again]
                       // reply: slot, generation; fds: GID table, keepsake [, IPv4] [, IPv6]
    WF_F_LEAVE,        // no reply but the end of the connection
    WF_F_PEER,         // slot; reply: generation, pid in `index`; fds: region, doorbell
    WF_F_LISTEN,       // a service id, b mask
    WF_F_UNLISTEN,     // likewise
    WF_F_MCAST_JOIN,   // dgid, index
    WF_F_MCAST_LEAVE,  // likewise
    WF_F_MCAST_SLOTS,  // dgid; reply: slots
    WF_F_MAD,          // dgid, index, mad; as an event also sgid, sqpn, pkey, tclass, ifindex
    WF_F_WILL,         // a id, dgid, index, mad; WF_FM_DROP takes it back
    WF_F_PEER_DIED,    // event: slot, generation
    WF_F_GID_CHANGE,   // event: index
    WF_F_PORT,         // event: index 1 up, 0 down
    WF_F_MCAST_CHANGE, // event: dgid
    WF_F_OBSERVE,      // a tool looks, and joins nothing; reply: fd: GID table. Then PEER and
    WF_F_FAULTS,       // a length, fd: text of fault rules (length 0: none)
    WF_F_CAPTURE,      // a ring, index snap length, mad: path, "" to stop
    WF_F_CONTROL,      // event: rules or capture changed (link/control.h)
    WF_F_TYPES
};

enum wf_fmsg_flags {
    WF_FM_REPLY = 1 << 0,
    WF_FM_REJOIN = 1 << 1, // JOIN: slot and generation are those of before
    WF_FM_IPV4 = 1 << 2,   // JOIN reply: which sockets follow
    WF_FM_IPV6 = 1 << 3,
    WF_FM_DROP = 1 << 4,
};

struct wf_fmsg {
    uint32_t version;
    uint16_t type;
    uint16_t flags;
    uint32_t seq;
    int32_t status; // replies: 0 or -errno
    uint32_t slot;
    uint32_t index;
    uint64_t generation;
    uint64_t a, b;
    uint64_t slots[4];
    uint8_t sgid[16];
    uint8_t dgid[16];
    uint32_t sqpn;
    uint32_t ifindex;
    uint16_t pkey;
    uint8_t tclass;
    uint8_t reserved[5];
    uint8_t mad[256];
};
_Static_assert(sizeof(struct wf_fmsg) == 384, "no padding: it all crosses a socket");

// The memfd of the GID table continues with the roster: which slots are taken. A weftd started
// after its predecessor was killed learns from it whom it still has to expect.
#define WF_ROSTER_OFFSET 4096u
struct wf_roster_entry {
    uint64_t generation; // 0: free
    int32_t pid;
    uint32_t reserved;
};

// A received message that is well formed: right size, version, known type, indexes in range.
// 0 or -EPROTO.
int wf_fmsg_check(const struct wf_fmsg *m, size_t size);

// Send or receive one message. Receive: 0, -EAGAIN, -ECONNRESET (also at the end of the
// connection), -EPROTO for a malformed one, -EMFILE for a whole one whose descriptors found no room
// here; its descriptors are closed. *nfds descriptors were
// received, all close-on-exec; slots not filled hold -1. `flags` are those of sendmsg.
int wf_fmsg_send(int sock, const struct wf_fmsg *m, const int *fds, int nfds, int flags);
int wf_fmsg_recv(int sock, struct wf_fmsg *m, int fds[WF_FABRIC_FDS], int *nfds, int flags);

// Abstract address of the daemon of this user: length for bind() and connect().
struct sockaddr_un;
unsigned wf_fabric_address(const char *name, struct sockaddr_un *sa);

#endif
