// SPDX-License-Identifier: BSD-2-Clause
#include "link/fabric_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

// What peers try to read; the address is the same after fork() but then the pid differs.
static uint64_t probe_value;

static void publish_probe(struct wf_region *r)
{
    if (getrandom(&probe_value, sizeof(probe_value), GRND_NONBLOCK) != sizeof(probe_value))
        probe_value = wf_fabric_now_ms() ^ (uint64_t)getpid() << 32;
    r->probe_addr = (uint64_t)(uintptr_t)&probe_value;
    r->probe_value = probe_value;
    r->pid = getpid();
    // Only Yama knows the option; where it fails nothing needs it.
    prctl(PR_SET_PTRACER, (unsigned long)-1, 0, 0, 0);
}

int wf_region_create(struct wf_region **out, int *fd)
{
    *fd = memfd_create("weft-region", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0)
        return -errno;
    struct wf_region *r = MAP_FAILED;
    // The size is sealed so that no peer's access can be made to fault.
    if (ftruncate(*fd, sizeof(*r)) == 0 &&
        fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
    if (r == MAP_FAILED) {
        int err = errno;
        close(*fd);
        *fd = -1;
        return -err;
    }
    // A core dump or a forked child has no use for up to 90 MB of rings.
    madvise(r, sizeof(*r), MADV_DONTDUMP);
    r->magic = WF_REGION_MAGIC;
    r->size = sizeof(*r);
    publish_probe(r);
    *out = r;
    return 0;
}

void wf_region_unmap(struct wf_region *r)
{
    if (r)
        munmap(r, sizeof(*r));
}

bool wf_region_probe(pid_t pid, uint64_t addr, uint64_t value)
{
    uint64_t got = 0;
    struct iovec local = {&got, sizeof(got)};
    struct iovec remote = {(void *)(uintptr_t)addr, sizeof(got)};
    return pid > 0 && process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(got) &&
           got == value;
}
