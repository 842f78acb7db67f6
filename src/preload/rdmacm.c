// SPDX-License-Identifier: BSD-2-Clause
// /dev/infiniband/rdma_cm: the descriptors that its open gives, and the calls on them. Commands go
// to the libibverbs.so.1 that librdmacm has loaded, see rdmacm/server.h.
#include "preload/preload.h"
#include "rdmacm/server.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MAX_FD 65536
// The number of misc devices; the minor is any.
#define RDMA_CM_RDEV makedev(10, 58)

static _Atomic uint8_t ours[MAX_FD]; // 1: a descriptor of the server
// The process that `ours` is about. A child of vfork() that closes everything before exec shares
// this memory, and must not take the descriptors from its parent.
static _Atomic pid_t owner;
static const struct wf_rdmacm_server *_Atomic server;

static ssize_t (*next_write)(int, const void *, size_t);
static int (*next_close)(int);
static int (*next_dup2)(int, int);
static int (*next_dup3)(int, int, int);
static int (*next_fstat)(int, struct stat *);

// These may be called from signal handlers, where looking a name up is not safe.
__attribute__((constructor)) static void find_next(void)
{
    next_write = preload_next("write");
    next_close = preload_next("close");
    next_dup2 = preload_next("dup2");
    next_dup3 = preload_next("dup3");
    next_fstat = preload_next("fstat");
}

static bool is_ours(int fd)
{
    return fd >= 0 && fd < MAX_FD && atomic_load_explicit(&ours[fd], memory_order_relaxed);
}

static const struct wf_rdmacm_server *find_server(void)
{
    const struct wf_rdmacm_server *s = atomic_load(&server);
    if (s)
        return s;
    void *lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!lib)
        lib = dlopen("libibverbs.so.1", RTLD_LAZY);
    const struct wf_rdmacm_server *(*get)(void) = lib ? dlsym(lib, "weft_rdmacm_server") : NULL;
    s = get ? get() : NULL;
    if (s && s->version == WF_RDMACM_SERVER_VERSION)
        atomic_store(&server, s);
    return s && s->version == WF_RDMACM_SERVER_VERSION ? s : NULL;
}

// A child of fork() begins with none.
static void own_table(void)
{
    pid_t pid = getpid();
    if (atomic_exchange(&owner, pid) == pid)
        return;
    for (int fd = 0; fd < MAX_FD; fd++)
        atomic_store_explicit(&ours[fd], 0, memory_order_relaxed);
}

int preload_rdmacm_open(int flags)
{
    const struct wf_rdmacm_server *s = find_server();
    if (!s) {
        // The one mistake that is easily made: say it whatever WEFT_EXPLAIN is.
        fputs("weft: the libibverbs.so.1 of this program is another one than weft's\n", stderr);
        errno = ENODEV;
        return -1;
    }
    own_table();
    int fd = s->open(flags);
    if (fd >= MAX_FD) {
        s->close(fd);
        next_close(fd);
        fd = -EMFILE;
    }
    if (fd < 0) {
        errno = -fd;
        return -1;
    }
    atomic_store(&ours[fd], 1);
    return fd;
}

static void forget(int fd)
{
    if (is_ours(fd) && atomic_load(&owner) == getpid() && atomic_exchange(&ours[fd], 0))
        atomic_load(&server)->close(fd);
}

PRELOAD_EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
    if (!next_write)
        find_next();
    if (!is_ours(fd))
        return next_write(fd, buf, len);
    ssize_t n =
        atomic_load(&owner) == getpid() ? atomic_load(&server)->write(fd, buf, len) : -EBADF;
    if (n >= 0)
        return n;
    errno = (int)-n;
    return -1;
}

PRELOAD_EXPORT int close(int fd)
{
    if (!next_close)
        find_next();
    forget(fd);
    return next_close(fd);
}

PRELOAD_EXPORT int dup2(int from, int to)
{
    if (!next_dup2)
        find_next();
    if (from != to)
        forget(to);
    return next_dup2(from, to);
}

PRELOAD_EXPORT int dup3(int from, int to, int flags)
{
    if (!next_dup3)
        find_next();
    if (from != to)
        forget(to);
    return next_dup3(from, to, flags);
}

// librdmacm looks whether it is a character device.
PRELOAD_EXPORT int fstat(int fd, struct stat *st)
{
    if (!next_fstat)
        find_next();
    int rc = next_fstat(fd, st);
    if (rc == 0 && is_ours(fd)) {
        st->st_mode = S_IFCHR | 0666;
        st->st_rdev = RDMA_CM_RDEV;
    }
    return rc;
}

PRELOAD_EXPORT int __fxstat(int version, int fd, struct stat *st)
{
    (void)version;
    return fstat(fd, st);
}
