// SPDX-License-Identifier: BSD-2-Clause
// weft status: who runs on this fabric and in what state its objects are.
#include "cli/cli.h"
#include "cli/fabric.h"

#include <jansson.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

static int help(FILE *out, int status)
{
    fputs(
        "usage: weft status [--json] [PID]\n\n"
        "Shows the device, the processes that use it and their queue pairs, completion queues and\n"
        "memory, from outside: it works while they hang or sit in a debugger.\n",
        out);
    return status;
}

struct totals {
    unsigned qps, cqs, mrs;
    uint64_t bytes;
    json_t *list;
};

static void human(uint64_t n, char *buf, size_t len)
{
    static const char units[] = " KMGTPE";
    double v = (double)n;
    unsigned u = 0;
    for (; v >= 1024 && units[u + 1]; u++)
        v /= 1024;
    if (u)
        snprintf(buf, len, "%.1f %ciB", v, units[u]);
    else
        snprintf(buf, len, "%llu B", (unsigned long long)n);
}

// Posted and not completed, of how many.
static void fill_text(uint32_t used, uint32_t max, char *buf, size_t len)
{
    if (max)
        snprintf(buf, len, "%u/%u", used, max);
    else
        snprintf(buf, len, "-");
}

static void qp_text(const struct cli_process *p, const struct wf_qp *qp, void *arg)
{
    struct totals *t = arg;
    char path[96], sq[24], rq[24];
    if (!t->qps++)
        printf("    %-9s %-7s %-5s %-9s %-11s %-11s %-24s %s\n", "QP", "type", "state", "peer QP",
               "sends", "receives", "path", "retries");
    cli_path_name(p, qp, path, sizeof(path));
    fill_text(qp->sq.head - qp->sq.una, qp->sq.max_wr, sq, sizeof(sq));
    fill_text(qp->rq.head - qp->rq.next, qp->rq.max_wr, rq, sizeof(rq));
    printf("    0x%06x  %-7s %-5s ", qp->qpn, cli_qp_type(qp), cli_qp_state(qp->state));
    if (qp->type == IBV_QPT_UD || !qp->attr.dest_qp_num)
        printf("%-9s", "-");
    else
        printf("0x%06x ", qp->attr.dest_qp_num);
    printf(" %-11s %-11s %-24s %llu\n", sq, qp->srq ? "SRQ" : rq, path,
           (unsigned long long)qp->stat_retransmits);
}

static void cq_count(const struct cli_process *p, const struct wf_cq *cq, void *arg)
{
    struct totals *t = arg;
    t->cqs++;
}

static void mr_count(const struct cli_process *p, const struct wf_mr *mr, void *arg)
{
    struct totals *t = arg;
    t->mrs++;
    t->bytes += mr->fields.len < UINT64_MAX / 2 ? mr->fields.len : 0;
}

static void process_text(const struct cli_process *p)
{
    struct totals t = {0};
    char bytes[32];
    cli_each_cq(p, cq_count, &t);
    cli_each_mr(p, mr_count, &t);
    human(t.bytes, bytes, sizeof(bytes));
    printf("\n  %s, pid %d, slot %u", p->name, p->pid, p->slot);
    if (!p->readable) {
        puts(": its memory cannot be read (another build, or the kernel forbids it)");
        return;
    }
    printf(": %u CQs, %u memory regions (%s)\n", t.cqs, t.mrs, bytes);
    cli_each_qp(p, qp_text, &t);
}

static void qp_json(const struct cli_process *p, const struct wf_qp *qp, void *arg)
{
    char path[96];
    struct totals *t = arg;
    cli_path_name(p, qp, path, sizeof(path));
    json_array_append_new(
        t->list,
        json_pack("{s:i,s:s,s:s,s:i,s:s,s:i,s:i,s:i,s:i,s:i,s:I,s:I,s:I}", "qpn", (int)qp->qpn,
                  "type", cli_qp_type(qp), "state", cli_qp_state(qp->state), "peer_qpn",
                  (int)qp->attr.dest_qp_num, "path", path, "sends", (int)(qp->sq.head - qp->sq.una),
                  "max_sends", (int)qp->sq.max_wr, "receives", (int)(qp->rq.head - qp->rq.next),
                  "max_receives", (int)qp->rq.max_wr, "mtu", (int)qp->mtu, "retransmits",
                  (json_int_t)qp->stat_retransmits, "rnr", (json_int_t)qp->stat_rnr, "timeouts",
                  (json_int_t)qp->stat_timeouts));
}

static json_t *process_json(const struct cli_process *p)
{
    struct totals t = {.list = json_array()};
    cli_each_cq(p, cq_count, &t);
    cli_each_mr(p, mr_count, &t);
    cli_each_qp(p, qp_json, &t);
    return json_pack("{s:s,s:i,s:i,s:b,s:i,s:i,s:I,s:o}", "name", p->name, "pid", p->pid, "slot",
                     (int)p->slot, "readable", p->readable, "cqs", (int)t.cqs, "memory_regions",
                     (int)t.mrs, "memory_bytes", (json_int_t)t.bytes, "qps", t.list);
}

static void device_text(const struct cli_fabric *f)
{
    unsigned gids = 0;
    printf("device weft0: port %s, %u process%s\n", f->gids.port_active ? "ACTIVE" : "DOWN", f->n,
           f->n == 1 ? "" : "es");
    for (int i = 0; i < WF_GIDS; i++) {
        char gid[64];
        const struct wf_gid_slot *g = &f->gids.gids[i];
        static const union ibv_gid none;
        if (memcmp(&g->gid, &none, sizeof(none)) == 0)
            continue;
        cli_gid_text(&g->gid, gid, sizeof(gid));
        if (!gids++)
            printf("  %-6s %-40s %s\n", "GID", "address", "interface");
        printf("  %-6d %-40s %.15s%s\n", i, gid, g->ifname, g->up ? "" : " (down)");
    }
}

static json_t *device_json(const struct cli_fabric *f)
{
    json_t *gids = json_array();
    for (int i = 0; i < WF_GIDS; i++) {
        char gid[64], ifname[16];
        const struct wf_gid_slot *g = &f->gids.gids[i];
        static const union ibv_gid none;
        if (memcmp(&g->gid, &none, sizeof(none)) == 0)
            continue;
        cli_gid_text(&g->gid, gid, sizeof(gid));
        snprintf(ifname, sizeof(ifname), "%.15s", g->ifname);
        json_array_append_new(gids, json_pack("{s:i,s:s,s:s,s:b}", "index", i, "address", gid,
                                              "interface", ifname, "up", g->up != 0));
    }
    return json_pack("{s:s,s:b,s:o}", "name", "weft0", "port_active", f->gids.port_active != 0,
                     "gids", gids);
}

static void show_json(const struct cli_fabric *f, const struct cli_process *only)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < f->n; i++)
        if (!only || f->processes[i] == only)
            json_array_append_new(list, process_json(f->processes[i]));
    json_t *all = json_pack("{s:o,s:o}", "device", device_json(f), "processes", list);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
}

static void show_text(const struct cli_fabric *f, const struct cli_process *only)
{
    device_text(f);
    for (unsigned i = 0; i < f->n; i++)
        if (!only || f->processes[i] == only)
            process_text(f->processes[i]);
}

int cli_status(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
    struct cli_fabric f;
    struct cli_process *only = NULL;
    bool json = false;
    int c;
    while ((c = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
        if (c == 'h')
            return help(stdout, CLI_OK);
        if (c == '?')
            return CLI_USAGE;
        json = true;
    }
    if (argc - optind > 1)
        return cli_fail(CLI_USAGE, "status", "one process at most");
    int status = cli_fabric_open("status", &f);
    if (status)
        return status;
    if (optind < argc)
        only = cli_process_find("status", &f, argv[optind], &status);
    if (!status && json)
        show_json(&f, only);
    else if (!status)
        show_text(&f, only);
    cli_fabric_close(&f);
    return status;
}
