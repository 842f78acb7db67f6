// SPDX-License-Identifier: BSD-2-Clause
// weft-verbs: the helper of weft perf and weft devinfo; argv[0] says which.
#include "cli/perf.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const char *state_name(enum ibv_port_state s)
{
    return s == IBV_PORT_ACTIVE ? "ACTIVE" : s == IBV_PORT_DOWN ? "DOWN" : "?";
}

static void print_gids(struct ibv_context *ctx, int n)
{
    static const union ibv_gid none;
    for (int i = 0; i < n; i++) {
        union ibv_gid gid;
        char text[INET6_ADDRSTRLEN];
        if (ibv_query_gid(ctx, 1, i, &gid) || memcmp(&gid, &none, sizeof(none)) == 0)
            continue;
        inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
        printf("    GID %-3d %s\n", i, text);
    }
}

static int devinfo(void)
{
    struct ibv_device_attr d;
    struct ibv_port_attr p;
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_context *ctx = list && n ? ibv_open_device(list[0]) : NULL;
    if (!ctx || ibv_query_device(ctx, &d) || ibv_query_port(ctx, 1, &p)) {
        fputs("weft devinfo: the device cannot be opened; weft doctor tells more\n", stderr);
        return 1;
    }
    printf("%s: Weft %s\n", ibv_get_device_name(list[0]), d.fw_ver);
    printf("  queue pairs      %d, %d requests each, %d SGEs\n", d.max_qp, d.max_qp_wr, d.max_sge);
    printf("  completion       %d queues of %d entries\n", d.max_cq, d.max_cqe);
    printf("  shared receive   %d queues of %d\n", d.max_srq, d.max_srq_wr);
    printf("  memory           %d regions, %d windows\n", d.max_mr, d.max_mw);
    printf("  reads, atomics   %d outstanding each way\n", d.max_qp_rd_atom);
    printf("  port 1           %s, MTU %d, messages up to %u bytes\n", state_name(p.state),
           128 << p.active_mtu, p.max_msg_sz);
    print_gids(ctx, p.gid_tbl_len);
    ibv_close_device(ctx);
    ibv_free_device_list(list);
    return 0;
}

int main(int argc, char **argv)
{
    if (strcmp(argv[0], "perf") == 0)
        return perf_main(argc, argv);
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        puts("usage: weft devinfo\n\nThe device that programs see, its limits and addresses.");
        return 0;
    }
    if (argc > 1) {
        fprintf(stderr, "weft devinfo: unknown word \"%s\"\n", argv[1]);
        return 2;
    }
    return devinfo();
}
