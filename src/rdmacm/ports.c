// SPDX-License-Identifier: BSD-2-Clause
// Port spaces with the kernel's rules of who may share a port. Within the process they are kept
// here; between processes weftd refuses the second listener.
#include "rdmacm/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define PORTS 65536

// Ids bound in one port space, by a hash of the port.
#define BUCKETS 1024
LIST_HEAD(bucket, rcm_id);
struct port_space {
    uint16_t ps;
    struct bucket bucket[BUCKETS];
};
static struct port_space spaces[] = {
    {.ps = RDMA_PS_TCP}, {.ps = RDMA_PS_UDP}, {.ps = RDMA_PS_IPOIB}, {.ps = RDMA_PS_IB}};

void rcm_ports_reset(void)
{
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
        for (size_t b = 0; b < BUCKETS; b++)
            LIST_INIT(&spaces[i].bucket[b]);
}

static struct bucket *bucket_of(uint16_t ps, uint16_t port)
{
    size_t i = 0;
    while (i + 1 < sizeof(spaces) / sizeof(spaces[0]) && spaces[i].ps != ps)
        i++;
    return &spaces[i].bucket[port % BUCKETS];
}

// May `id` have the port beside `other`, which has it? `reuse`: both said so and neither listens.
static int conflict(const struct rcm_id *id, const struct rcm_id *other, bool reuse)
{
    if (reuse && other->reuseaddr && other->state != RCM_LISTENING)
        return 0;
    if (id->afonly && other->afonly && id->src.ss_family != other->src.ss_family)
        return 0;
    if (rcm_addr_any(&id->src) || rcm_addr_any(&other->src))
        return -EADDRNOTAVAIL;
    return rcm_addr_same(&id->src, &other->src) ? -EADDRINUSE : 0;
}

static int check(const struct rcm_id *id, uint16_t port, bool reuse)
{
    const struct rcm_id *other;
    LIST_FOREACH(other, bucket_of(id->ps, port), of_port)
    {
        if (other == id || other->ps != id->ps || rcm_addr_port(&other->src) != port)
            continue;
        int rc = conflict(id, other, reuse);
        if (rc)
            return rc;
    }
    return 0;
}

static void read_two(const char *file, unsigned *a, unsigned *b)
{
    FILE *f = fopen(file, "re");
    unsigned x, y = 0;
    if (!f)
        return;
    int n = fscanf(f, "%u %u", &x, &y);
    if (n >= 1)
        *a = x;
    if (n >= 2 && b)
        *b = y;
    fclose(f);
}

static bool privileged(uint16_t port)
{
    unsigned first = 1024;
    read_two("/proc/sys/net/ipv4/ip_unprivileged_port_start", &first, NULL);
    return port < first && geteuid() != 0;
}

static int pick(struct rcm_id *id)
{
    unsigned low = 32768, high = 60999, start = 0;
    read_two("/proc/sys/net/ipv4/ip_local_port_range", &low, &high);
    if (low < 1 || high >= PORTS || low > high)
        return -EADDRNOTAVAIL;
    if (getrandom(&start, sizeof(start), GRND_NONBLOCK) < 0)
        start = (unsigned)getpid();
    for (unsigned i = 0; i <= high - low; i++) {
        uint16_t port = (uint16_t)(low + (start + i) % (high - low + 1));
        const struct rcm_id *other;
        bool used = false;
        LIST_FOREACH(other, bucket_of(id->ps, port), of_port)
        used |= other->ps == id->ps && rcm_addr_port(&other->src) == port;
        if (!used) {
            rcm_addr_set_port(&id->src, port);
            return 0;
        }
    }
    return -EADDRNOTAVAIL;
}

int rcm_port_bind(struct rcm_id *id)
{
    uint16_t port = rcm_addr_port(&id->src);
    int rc = 0;
    if (!port)
        rc = pick(id);
    else if (privileged(port))
        rc = wf_refuse(EACCES, WF_R_RDMACM_PORT, "port %u needs root", port);
    else
        rc = check(id, port, id->reuseaddr);
    if (rc)
        return wf_refuse(-rc, WF_R_RDMACM_PORT, "port %u of port space 0x%04x", port, id->ps);
    LIST_INSERT_HEAD(bucket_of(id->ps, rcm_addr_port(&id->src)), id, of_port);
    id->bound = true;
    return 0;
}

void rcm_port_release(struct rcm_id *id)
{
    if (id->bound)
        LIST_REMOVE(id, of_port);
    id->bound = false;
}

int rcm_port_listen(struct rcm_id *id)
{
    uint16_t port = rcm_addr_port(&id->src);
    int rc = check(id, port, false);
    if (rc)
        return wf_refuse(-rc, WF_R_RDMACM_PORT, "listening on port %u of port space 0x%04x", port,
                         id->ps);
    return 0;
}
