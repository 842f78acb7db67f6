// SPDX-License-Identifier: BSD-2-Clause
#include "link/udp_internal.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <unistd.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif

#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif

#define SOCKET_BUFFER (8 << 20)
#define PORT_BASE     0xc000
#define VARIANTS      64

static int set(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

// As large as the kernel lets this user have.
static void enlarge(int fd, int forced, int plain)
{
    if (set(fd, SOL_SOCKET, forced, SOCKET_BUFFER))
        set(fd, SOL_SOCKET, plain, SOCKET_BUFFER);
}

static int bound_port(int fd)
{
    union wf_udp_sockaddr at;
    socklen_t len = sizeof(at);
    if (getsockname(fd, &at.sa, &len))
        return -errno;
    return ntohs(at.sa.sa_family == AF_INET6 ? at.in6.sin6_port : at.in.sin_port);
}

int wf_udp_prepare_rx(int fd, bool v6)
{
    enlarge(fd, SO_RCVBUFFORCE, SO_RCVBUF);
    set(fd, SOL_UDP, UDP_GRO, 1); // from Linux 5.0 on; without it datagrams come one by one
    int rc;
    if (v6) {
        rc = set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
        set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
        set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
        set(fd, IPPROTO_IPV6, IPV6_FLOWINFO, 1);
        set(fd, SOL_UDP, UDP_NO_CHECK6_RX, 1); // adapters send no UDP checksum: the ICRC serves
    } else {
        rc = set(fd, IPPROTO_IP, IP_PKTINFO, 1);
        set(fd, IPPROTO_IP, IP_RECVTOS, 1);
        set(fd, IPPROTO_IP, IP_RECVTTL, 1);
    }
    return rc ? rc : bound_port(fd);
}

// Nothing is ever read from a sending socket, so nothing may pile up in it.
static int refuse_input(int fd)
{
    struct sock_filter drop = {.code = BPF_RET | BPF_K, .k = 0};
    struct sock_fprog prog = {.len = 1, .filter = &drop};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) ? -errno : 0;
}

// With DO, a socket that is not connected sends DF and Identification 0, and i in the i-th segment
// of a UDP_SEGMENT send: known values, as the ICRC needs.
static int prepare_tx(int fd, bool v6)
{
    int rc = refuse_input(fd);
    if (!rc)
        rc = set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (!rc && v6)
        rc = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (!rc)
        rc = v6 ? set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO)
                : set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
    // Members of a group on this host get its datagrams through shared memory already.
    if (v6)
        set(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0);
    else
        set(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 0);
    enlarge(fd, SO_SNDBUFFORCE, SO_SNDBUF);
    return rc;
}

static int bind_port(int fd, bool v6, uint16_t port)
{
    union wf_udp_sockaddr at = {0};
    if (v6)
        at.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
    else
        at.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    return bind(fd, &at.sa, v6 ? sizeof(at.in6) : sizeof(at.in)) ? -errno : 0;
}

// Receive offload merges datagrams of one flow, and then steering looks at the first only: so the
// low byte of the port is the slot, on all processes of the host, which may share a port.
static int bind_some_port(int fd, bool v6, uint8_t slot, uint8_t variant)
{
    for (int i = 0; i < VARIANTS; i++) {
        int port = PORT_BASE | ((variant + i) % VARIANTS) << 8 | slot;
        int rc = bind_port(fd, v6, (uint16_t)port);
        if (rc != -EADDRINUSE)
            return rc;
    }
    return bind_port(fd, v6, 0);
}

int wf_udp_open_tx(struct wf_udp_socket *s, bool v6, uint8_t slot, uint8_t variant)
{
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int rc = prepare_tx(fd, v6);
    if (!rc)
        rc = bind_some_port(fd, v6, slot, variant);
    int port = rc ? rc : bound_port(fd);
    if (port < 0) {
        close(fd);
        return port;
    }
    *s = (struct wf_udp_socket){.fd = fd, .port = (uint16_t)port};
    return 0;
}
