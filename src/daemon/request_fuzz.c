// SPDX-License-Identifier: BSD-2-Clause
// Messages of a hostile client, from the decoder to what they do: two members and a stranger take
// turns. No network and no netlink are needed.
#include "daemon/daemon.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 3

static struct weftd *fresh_daemon(void)
{
    struct weftd *d = calloc(1, sizeof(*d));
    memset(d->sockets.fd, -1, sizeof(d->sockets.fd));
    d->epfd = epoll_create1(EPOLL_CLOEXEC);
    d->net[0].fd = d->net[1].fd = d->sockets.keep_tx = -1;
    d->sockets.keep_rx = open("/dev/null", O_RDONLY | O_CLOEXEC);
    d->gids.memfd = memfd_create("gids", MFD_CLOEXEC);
    d->gids.table = calloc(1, sizeof(*d->gids.table));
    d->gids.roster = calloc(WF_SLOTS, sizeof(*d->gids.roster));
    d->gids.table->gids[0].gid.raw[0] = 0xfe;
    d->generation = 1;
    slots_init(d);
    return d;
}

static struct client *add_client(struct weftd *d, int *other)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
        abort();
    struct client *c = calloc(1, sizeof(*c));
    c->sock.fd = pair[0];
    c->pidfd.fd = c->region_fd = c->doorbell = -1;
    c->out_tail = &c->out;
    c->next = d->clients;
    d->clients = c;
    *other = pair[1];
    return c;
}

static void join(struct weftd *d, struct client *c)
{
    struct wf_fmsg m = {.version = WF_FABRIC_VERSION, .type = WF_F_JOIN, .seq = 1};
    int fds[WF_FABRIC_FDS] = {memfd_create("r", MFD_CLOEXEC | MFD_ALLOW_SEALING),
                              open("/dev/null", O_WRONLY | O_CLOEXEC), -1, -1};
    uint64_t magic = WF_REGION_MAGIC;
    if (ftruncate(fds[0], sizeof(struct wf_region)) ||
        pwrite(fds[0], &magic, sizeof(magic), 0) != sizeof(magic) ||
        fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
        abort();
    request_handle(d, c, &m, fds, 2);
    if (!c->slot)
        abort();
}

static void end_daemon(struct weftd *d, const int *other)
{
    while (d->clients)
        client_close(d, d->clients);
    clients_bury(d);
    for (int i = 0; i < CLIENTS; i++)
        close(other[i]);
    close(d->epfd);
    close(d->gids.memfd);
    close(d->sockets.keep_rx);
    free(d->gids.table);
    free(d->gids.roster);
    free(d);
}

// Input: for each message the client's number, then as many bytes of the message as there are.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weftd *d = fresh_daemon();
    struct client *c[CLIENTS];
    int other[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        c[i] = add_client(d, &other[i]);
    join(d, c[0]);
    join(d, c[1]);
    for (int n = 0; size > 1 && n < 16; n++) {
        struct wf_fmsg m = {.version = WF_FABRIC_VERSION};
        int fds[WF_FABRIC_FDS] = {-1, -1, -1, -1};
        struct client *from = c[*data % CLIENTS];
        size_t take = size - 1 < sizeof(m) - 4 ? size - 1 : sizeof(m) - 4;
        memcpy((uint8_t *)&m + 4, data + 1, take);
        data += take + 1;
        size -= take + 1;
        if (!from->gone && wf_fmsg_check(&m, sizeof(m)) == 0)
            request_handle(d, from, &m, fds, 0);
    }
    end_daemon(d, other);
    return 0;
}
