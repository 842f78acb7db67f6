// SPDX-License-Identifier: BSD-2-Clause
// The way from libweft-preload.so, which sees the opens and writes of a program, to the engine's
// library, which plays the kernel's rdma_cm device. libibverbs.so.1 exports weft_rdmacm_server();
// the preload library finds it in the libibverbs.so.1 that librdmacm has loaded, so both share one
// engine and neither links the other.
#ifndef WF_RDMACM_SERVER_H
#define WF_RDMACM_SERVER_H

#include <stddef.h>
#include <sys/types.h>

#define WF_RDMACM_SERVER_VERSION 1

struct wf_rdmacm_server {
    unsigned version;
    // As open(2) of the device: a descriptor (readable when an event waits), or -errno.
    int (*open)(int flags);
    // As write(2): one command. Blocks only for an event, and not with O_NONBLOCK.
    ssize_t (*write)(int fd, const void *buf, size_t len);
    // The descriptor is about to be closed: drop what belongs to it.
    void (*close)(int fd);
};

const struct wf_rdmacm_server *weft_rdmacm_server(void);

#endif
