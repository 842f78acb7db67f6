// SPDX-License-Identifier: BSD-2-Clause
// The header that IP-addressed connections put before their private data (IBA annex A11), and how a
// port becomes a service id.
#ifndef WF_RDMACM_IPHDR_H
#define WF_RDMACM_IPHDR_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#define RCM_HDR_SIZE 36

// src and dst as the sender of the request sees them. Both must be of one family.
int rcm_hdr_put(uint8_t out[RCM_HDR_SIZE], const struct sockaddr *src, const struct sockaddr *dst);
// -EBADMSG: another version. The destination port comes from the service id.
int rcm_hdr_get(const uint8_t in[RCM_HDR_SIZE], uint64_t service_id, struct sockaddr_storage *src,
                struct sockaddr_storage *dst);

// port in host order
static inline uint64_t rcm_service_id(uint16_t port_space, uint16_t port)
{
    return (uint64_t)port_space << 16 | port;
}

#endif
