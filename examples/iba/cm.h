// SPDX-License-Identifier: BSD-2-Clause
// The connection manager's side of connect.c, in a file of its own: the kernel's RDMA headers and
// the RFC's use the same names for different things, so no file can include both.
#ifndef EXAMPLES_IBA_CM_H
#define EXAMPLES_IBA_CM_H

#include <stdint.h>

// What a queue pair needs to know of its connection.
struct connection {
    uint32_t dest_qpn, rq_psn, sq_psn;
    uint8_t sgid[16], dgid[16], hop_limit;
    uint8_t mtu; // code: 1 is 256 bytes, 5 is 4096
    uint8_t responder_resources, initiator_depth, rnr_timer;
    uint8_t ack_timeout, retry_count, rnr_retry_count;
};

// Waits for a request to connect to queue pair `qpn`.
void cm_wait(uint32_t qpn, struct connection *c);
// Replies, once the queue pair is in RTS, and waits until the client is ready.
void cm_accept(void);
// Asks for a connection and waits for the reply.
void cm_call(const char *address, uint32_t qpn, struct connection *c);
// Tells the server that the queue pair is in RTS.
void cm_ready(void);
// The client ends the connection; the server waits for that.
void cm_disconnect(void);
void cm_wait_disconnect(void);

#endif
