// SPDX-License-Identifier: BSD-2-Clause
// The node GUID: never 0, the same for every weftd of one host and network namespace, different for
// any other. MAC addresses will not do: containers on different hosts often share them.
#include "daemon/daemon.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

// FNV-1a, then mixed: only to spread the bits.
static uint64_t mix(uint64_t h, const void *data, size_t n)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3ull;
    h ^= h >> 29;
    return h * 0x9e3779b97f4a7c15ull;
}

static uint64_t mix_file(uint64_t h, const char *path)
{
    char buf[128];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf));
    if (fd >= 0)
        close(fd);
    return n > 0 ? mix(h, buf, (size_t)n) : h;
}

static uint64_t mix_netns(uint64_t h)
{
    struct stat st;
    uint64_t cookie = 0;
    socklen_t len = sizeof(cookie);
    int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s >= 0 && getsockopt(s, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) == 0)
        h = mix(h, &cookie, sizeof(cookie));
    if (s >= 0)
        close(s);
    if (!cookie && stat("/proc/self/ns/net", &st) == 0)
        h = mix(h, &st.st_ino, sizeof(st.st_ino));
    return h;
}

uint64_t identity_guid(void)
{
    struct utsname u;
    uint64_t h = 0xcbf29ce484222325ull;
    h = mix_file(h, "/proc/sys/kernel/random/boot_id");
    h = mix_file(h, "/etc/machine-id");
    if (uname(&u) == 0)
        h = mix(h, u.nodename, strlen(u.nodename));
    h = mix_netns(h);
    // First byte as an EUI-64: locally administered, not a group.
    return (h & 0x00ffffffffffffffull) | 0x0200000000000000ull;
}
