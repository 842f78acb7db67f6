// SPDX-License-Identifier: BSD-2-Clause
// Into the memory of a process: its engine and objects. Lists may change under our feet: every walk
// ends after a number of steps, and what cannot be read ends it too.
#include "cli/fabric.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <wire/grh.h>

#define MAX_STEPS 100000u

bool cli_peek(const struct cli_process *p, const void *address, void *to, size_t len)
{
    struct iovec local = {to, len}, remote = {(void *)(uintptr_t)address, len};
    return address && process_vm_readv(p->pid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

bool cli_refresh(struct cli_process *p)
{
    const struct wf_view *v = &p->region->view;
    return v->layout == WF_VIEW_LAYOUT &&
           cli_peek(p, (const void *)(uintptr_t)v->engine, &p->hca, sizeof(p->hca));
}

enum list { QPS, CQS, MRS };

static unsigned walk(const struct cli_process *p, enum list list,
                     void (*fn)(const struct cli_process *p, const void *object, void *arg),
                     void *arg)
{
    struct wf_ctx ctx;
    union {
        struct wf_qp qp;
        struct wf_cq cq;
        struct wf_mr mr;
    } o;
    unsigned n = 0, steps = 0;
    if (!p->readable)
        return 0;
    for (const struct wf_ctx *c = p->hca.ctxs; c && steps++ < MAX_STEPS; c = ctx.next) {
        if (!cli_peek(p, c, &ctx, sizeof(ctx)))
            break;
        const void *at = list == QPS   ? (void *)ctx.qps
                         : list == CQS ? (void *)ctx.cqs
                                       : (void *)ctx.mrs;
        size_t size = list == QPS   ? sizeof(struct wf_qp)
                      : list == CQS ? sizeof(struct wf_cq)
                                    : sizeof(struct wf_mr);
        while (at && steps++ < MAX_STEPS && cli_peek(p, at, &o, size)) {
            fn(p, &o, arg);
            n++;
            at = list == QPS   ? (void *)o.qp.next
                 : list == CQS ? (void *)o.cq.next
                               : (void *)o.mr.next;
        }
    }
    return n;
}

// One shape of callback for all three lists.
struct typed {
    void (*qp)(const struct cli_process *p, const struct wf_qp *qp, void *arg);
    void (*cq)(const struct cli_process *p, const struct wf_cq *cq, void *arg);
    void (*mr)(const struct cli_process *p, const struct wf_mr *mr, void *arg);
    void *arg;
};

static void on_qp(const struct cli_process *p, const void *object, void *arg)
{
    const struct typed *t = arg;
    t->qp(p, object, t->arg);
}

static void on_cq(const struct cli_process *p, const void *object, void *arg)
{
    const struct typed *t = arg;
    t->cq(p, object, t->arg);
}

static void on_mr(const struct cli_process *p, const void *object, void *arg)
{
    const struct typed *t = arg;
    t->mr(p, object, t->arg);
}

unsigned cli_each_qp(const struct cli_process *p,
                     void (*fn)(const struct cli_process *p, const struct wf_qp *qp, void *arg),
                     void *arg)
{
    return walk(p, QPS, on_qp, &(struct typed){.qp = fn, .arg = arg});
}

unsigned cli_each_cq(const struct cli_process *p,
                     void (*fn)(const struct cli_process *p, const struct wf_cq *cq, void *arg),
                     void *arg)
{
    return walk(p, CQS, on_cq, &(struct typed){.cq = fn, .arg = arg});
}

unsigned cli_each_mr(const struct cli_process *p,
                     void (*fn)(const struct cli_process *p, const struct wf_mr *mr, void *arg),
                     void *arg)
{
    return walk(p, MRS, on_mr, &(struct typed){.mr = fn, .arg = arg});
}

void cli_gid_text(const union ibv_gid *gid, char *buf, size_t len)
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (wf_gid_is_ipv4(gid))
        inet_ntop(AF_INET, gid->raw + 12, text, sizeof(text));
    else
        inet_ntop(AF_INET6, gid->raw, text, sizeof(text));
    snprintf(buf, len, "%s", text);
}

void cli_path_name(const struct cli_process *p, const struct wf_qp *qp, char *buf, size_t len)
{
    struct wf_path path;
    struct wf_peer peer;
    char gid[64];
    if (!cli_peek(p, qp->path, &path, sizeof(path))) {
        snprintf(buf, len, "-");
        return;
    }
    cli_gid_text(&path.dgid, gid, sizeof(gid));
    if (path.link && path.link == p->hca.loop)
        snprintf(buf, len, "loop, same process");
    else if (path.link && path.link == p->hca.shm && cli_peek(p, path.peer, &peer, sizeof(peer)))
        snprintf(buf, len, "shm, pid %d%s", peer.pid, peer.alive ? "" : " (ended)");
    else if (path.link && path.link == p->hca.udp)
        snprintf(buf, len, "udp, %s", gid);
    else
        snprintf(buf, len, "none, %s", gid);
}

const char *cli_qp_type(const struct wf_qp *qp)
{
    switch ((int)qp->type) {
    case IBV_QPT_RC:
        return "RC";
    case IBV_QPT_UC:
        return "UC";
    case IBV_QPT_UD:
        return "UD";
    case IBV_QPT_XRC_SEND:
        return "XRC ini";
    case IBV_QPT_XRC_RECV:
        return "XRC tgt";
    default:
        return "?";
    }
}

const char *cli_qp_state(enum ibv_qp_state s)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return (unsigned)s < sizeof(names) / sizeof(names[0]) ? names[s] : "?";
}
