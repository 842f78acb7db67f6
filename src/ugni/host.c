// SPDX-License-Identifier: BSD-2-Clause
// Which address names this host in PE addresses.
#include "ugni/rc.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>

// The first IPv4 address of an interface that is up, other than loopback; 127.0.0.1 if there is
// none. WEFT_GNI_ADDRESS overrides.
static uint32_t own_address(void)
{
    uint32_t found = INADDR_LOOPBACK;
    struct in_addr wanted;
    struct ifaddrs *list;
    const char *set = getenv("WEFT_GNI_ADDRESS");
    if (set && inet_pton(AF_INET, set, &wanted) == 1)
        return ntohl(wanted.s_addr);
    if (getifaddrs(&list))
        return found;
    for (struct ifaddrs *i = list; i && found == INADDR_LOOPBACK; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && i->ifa_flags & IFF_UP &&
            !(i->ifa_flags & IFF_LOOPBACK))
            found = ntohl(((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr);
    freeifaddrs(list);
    return found;
}

// The top octet is left out: the hosts of a job share it.
uint32_t wf_gni_host_part(void)
{
    return own_address() & 0xffffff;
}

uint32_t wf_gni_host_address(uint32_t host_part)
{
    static uint32_t top;
    if (!top)
        top = own_address() & 0xff000000u;
    return top | host_part;
}
