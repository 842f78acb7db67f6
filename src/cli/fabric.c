// SPDX-License-Identifier: BSD-2-Clause
// The fabric as a tool sees it: a connection to weftd that joins nothing.
#include "cli/fabric.h"

#include "cli/cli.h"
#include "link/fabric_proto.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MS 2000

static int reach(void)
{
    struct sockaddr_un sa;
    const char *name = getenv("WEFT_SOCKET");
    socklen_t len = wf_fabric_address(name && *name ? name : NULL, &sa);
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct ucred cred;
    socklen_t clen = sizeof(cred);
    if (s < 0)
        return -errno;
    if (connect(s, (struct sockaddr *)&sa, len) ||
        getsockopt(s, SOL_SOCKET, SO_PEERCRED, &cred, &clen)) {
        int err = errno;
        close(s);
        return -err;
    }
    if (cred.uid == geteuid())
        return s;
    close(s);
    return -EACCES;
}

// Ask and wait; events for members do not come to us. 0 or -errno.
static int ask(struct cli_fabric *f, struct wf_fmsg *m, int fd, int fds[WF_FABRIC_FDS])
{
    static uint32_t seq;
    int nfds, ret;
    m->version = WF_FABRIC_VERSION;
    m->seq = ++seq;
    ret = wf_fmsg_send(f->sock, m, &fd, fd >= 0 ? 1 : 0, 0);
    while (!ret) {
        struct pollfd p = {.fd = f->sock, .events = POLLIN};
        if (poll(&p, 1, ANSWER_MS) <= 0)
            return -ETIMEDOUT;
        ret = wf_fmsg_recv(f->sock, m, fds, &nfds, 0);
        if (!ret && m->flags & WF_FM_REPLY && m->seq == seq)
            return m->status > 0 ? -EPROTO : m->status;
        for (int i = 0; !ret && i < nfds; i++)
            close(fds[i]);
    }
    return ret;
}

static int ask_plain(struct cli_fabric *f, struct wf_fmsg *m, int fd)
{
    int fds[WF_FABRIC_FDS];
    int ret = ask(f, m, fd, fds);
    for (int i = 0; !ret && i < WF_FABRIC_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return ret;
}

static void name_process(struct cli_process *p)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/comm", p->pid);
    FILE *in = fopen(path, "re");
    if (!in || !fgets(p->name, sizeof(p->name), in))
        snprintf(p->name, sizeof(p->name), "?");
    p->name[strcspn(p->name, "\n")] = 0;
    if (in)
        fclose(in);
}

static struct cli_process *look_at(struct cli_fabric *f, uint32_t slot)
{
    struct wf_fmsg m = {.type = WF_F_PEER, .slot = slot};
    int fds[WF_FABRIC_FDS];
    if (ask(f, &m, -1, fds))
        return NULL;
    void *map = MAP_FAILED;
    if (fds[0] >= 0 && lseek(fds[0], 0, SEEK_END) == (off_t)sizeof(struct wf_region))
        map =
            mmap(NULL, sizeof(struct wf_region), PROT_READ, MAP_SHARED | MAP_NORESERVE, fds[0], 0);
    for (int i = 0; i < WF_FABRIC_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    struct cli_process *p = map == MAP_FAILED ? NULL : calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->slot = slot;
    p->pid = (int32_t)m.index;
    p->region = map;
    name_process(p);
    p->readable = cli_refresh(p);
    return p;
}

static int open_shared(struct cli_fabric *f)
{
    static struct wf_roster_entry roster[WF_SLOTS];
    struct wf_fmsg m = {.type = WF_F_OBSERVE};
    int fds[WF_FABRIC_FDS];
    int ret = ask(f, &m, -1, fds);
    if (ret)
        return ret;
    f->shared_fd = fds[0];
    if (pread(fds[0], &f->gids, sizeof(f->gids), 0) != sizeof(f->gids) ||
        pread(fds[0], roster, sizeof(roster), WF_ROSTER_OFFSET) != sizeof(roster))
        return -EPROTO;
    for (uint32_t slot = 1; slot < WF_SLOTS; slot++) {
        struct cli_process *p = roster[slot].generation ? look_at(f, slot) : NULL;
        if (p)
            f->processes[f->n++] = p;
    }
    return 0;
}

int cli_fabric_open(const char *command, struct cli_fabric *f)
{
    memset(f, 0, sizeof(*f));
    f->shared_fd = -1;
    f->sock = reach();
    if (f->sock == -ECONNREFUSED || f->sock == -ENOENT)
        return cli_fail(CLI_FAILED, command,
                        "no program of this user runs with Weft in this network namespace");
    if (f->sock == -EACCES)
        return cli_fail(CLI_FAILED, command, "this fabric belongs to another user");
    int ret = f->sock < 0 ? f->sock : open_shared(f);
    if (!ret)
        return 0;
    if (f->sock >= 0)
        cli_fabric_close(f);
    if (ret == -EPROTO || ret == -ECONNRESET)
        return cli_fail(CLI_FAILED, command, "weftd is of another version than this weft");
    return cli_fail(CLI_FAILED, command, "weftd does not answer: %s", strerror(-ret));
}

void cli_fabric_close(struct cli_fabric *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        munmap((void *)f->processes[i]->region, sizeof(struct wf_region));
        free(f->processes[i]);
    }
    f->n = 0;
    close(f->sock);
    if (f->shared_fd >= 0)
        close(f->shared_fd);
}

int cli_fabric_faults(struct cli_fabric *f, const char *text, size_t len)
{
    struct wf_fmsg m = {.type = WF_F_FAULTS, .a = len};
    int fd = memfd_create("weft-faults", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text, len) != (ssize_t)len)
        return -EIO;
    int ret = ask_plain(f, &m, fd);
    close(fd);
    return ret;
}

int cli_fabric_capture(struct cli_fabric *f, const char *path, uint64_t ring, uint32_t snaplen)
{
    struct wf_fmsg m = {.type = WF_F_CAPTURE, .a = ring, .index = snaplen};
    if (strlen(path) >= sizeof(m.mad))
        return -ENAMETOOLONG;
    strcpy((char *)m.mad, path);
    return ask_plain(f, &m, -1);
}

struct cli_process *cli_process_find(const char *command, struct cli_fabric *f, const char *text,
                                     int *status)
{
    char *end;
    long pid = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end) {
        *status = cli_fail(CLI_USAGE, command, "\"%s\" is not a process id", text);
        return NULL;
    }
    for (unsigned i = 0; i < f->n; i++)
        if (f->processes[i]->pid == pid)
            return f->processes[i];
    *status = cli_fail(CLI_FAILED, command, "process %ld does not run with Weft here", pid);
    return NULL;
}
