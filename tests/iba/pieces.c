// SPDX-License-Identifier: BSD-2-Clause
// Regions of scattered pages between two processes: one writes into the other's, reads it back,
// sends from its own and receives into it.
#include <weft/iba_cb.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 300
#define LEN   (PAGES * PAGE_SIZE)
#define ALL   (IB_AC_LOCAL_WRITE | IB_AC_RDMA_READ | IB_AC_RDMA_WRITE | IB_AC_MW_BIND)

static IB_VERBS_INTERFACE_STANDARD verbs;
static IB_CA *ca;
static IB_PD *pd;
static IB_CQ *cq;
static IB_QP *qp;
static IB_MR *pieces, *all;
static char *scattered, *flat; // every second page of `scattered` is in the region
static int peer;

struct card {
    ULONG qpn, rkey;
    IB_GID gid;
} mine, theirs;

static void need(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "failed: %s\n", what);
    exit(1);
}

static VOID store(PVOID context, NTSTATUS status, ULONG_PTR info)
{
    need(NT_SUCCESS(status), "an async verb");
    *(ULONG_PTR *)context = info;
}

// ---- setting up ---------------------------------------------------------------------------------

static void make_region(void)
{
    SCATTER_GATHER_LIST *sg = calloc(1, sizeof(*sg) + PAGES * sizeof(sg->Elements[0]));
    scattered = aligned_alloc(PAGE_SIZE, 2 * LEN);
    flat = malloc(LEN);
    memset(scattered, 0, 2 * LEN);
    sg->NumberOfElements = PAGES;
    for (ULONG i = 0; i < PAGES; i++) {
        sg->Elements[i].Address = MmGetPhysicalAddress(scattered + 2 * i * PAGE_SIZE);
        sg->Elements[i].Length = PAGE_SIZE;
    }
    weft_cb_reg_scatter_gather(&verbs, pd, sg, ALL, store, &pieces);
    weft_cb_get_dma_mr(&verbs, pd, ALL, store, &all);
    free(sg);
}

static void open_all(void)
{
    union {
        IB_PORT_ATTR attr;
        char room[4096];
    } port;
    ULONG_PTR size;
    IB_QP_CREATE c = {.SqDepth = 4, .RqDepth = 4, .SqSge = 1, .RqSge = 1};
    need(!weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 1, (PINTERFACE)&verbs), "interface");
    weft_cb_open_ca(&verbs, NULL, NULL, store, &ca);
    weft_cb_query_port(&verbs, 1, sizeof(port), &port.attr, store, &size);
    memcpy(&mine.gid, port.room + port.attr.GidTblOffset, sizeof(mine.gid));
    weft_cb_create_pd(&verbs, ca, store, &pd);
    weft_cb_create_cq(&verbs, ca, 16, NULL, NULL, NULL, store, &cq);
    c.pSendCq = c.pRecvCq = cq;
    weft_cb_create_qp(&verbs, pd, &c, NULL, NULL, store, &qp);
    make_region();
    mine.qpn = qp->Qpn;
    mine.rkey = pieces->RKey;
}

static void meet(void)
{
    need(write(peer, &mine, sizeof(mine)) == sizeof(mine), "write");
    need(read(peer, &theirs, sizeof(theirs)) == sizeof(theirs), "read");
}

static void connect_qp(void)
{
    ULONG_PTR none;
    IB_QP_MODIFY init = {.ReqState = IbQpsInit}, rtr = {.ReqState = IbQpsRtr},
                 rts = {.ReqState = IbQpsRts};
    init.state.Init.PrimaryPort = 1;
    init.state.Init.AccessMask = IB_AC_RDMA_READ | IB_AC_RDMA_WRITE;
    rtr.state.rtr.DestQp = theirs.qpn;
    rtr.state.rtr.PrimaryAh.PortNumber = 1;
    rtr.state.rtr.PrimaryAh.Flags = IB_AH_FLAG_GRH;
    rtr.state.rtr.PrimaryAh.Grh.SGid = mine.gid;
    rtr.state.rtr.PrimaryAh.Grh.DGid = theirs.gid;
    rtr.state.rtr.RespRes = rts.state.rts.InitDepth = 1;
    rtr.state.rtr.RnrNakTimeout = 12;
    rts.state.rts.LocalAckTimeout = 14;
    rts.state.rts.RetryCnt = rts.state.rts.RnrRetryCnt = 7;
    weft_cb_modify_qp(&verbs, qp, &init, store, &none);
    weft_cb_modify_qp(&verbs, qp, &rtr, store, &none);
    weft_cb_modify_qp(&verbs, qp, &rts, store, &none);
}

// ---- data ---------------------------------------------------------------------------------------

static void poll_one(const char *what)
{
    IB_WC wc;
    LONG n;
    do {
        n = 1;
        weft_iba_poll_flat(&verbs, cq, &n, &wc);
    } while (n == 0);
    need(wc.Status == IbWcSuccess, what);
}

static void request(IB_OP_TYPE type, void *address, IB_MR *mr, ULONG length, ULONG_PTR at)
{
    union {
        IB_SEND_WR wr;
        char room[WEFT_IBA_SEND_WR_SIZE(1)];
    } u;
    IB_SGE sge = {address, length, mr->LKey};
    memset(&u, 0, sizeof(u));
    u.wr.Type = type;
    u.wr.Flags = IB_WR_FLAG_SIGNALED;
    u.wr.SgeCount = 1;
    u.wr.Sge[0] = &sge;
    u.wr.u.Rdma.Address = (void *)at;
    u.wr.u.Rdma.RKey = theirs.rkey;
    need(!verbs.PostSend(qp, &u.wr, NULL), "PostSend");
}

static void receive(void *address, IB_MR *mr)
{
    union {
        IB_RECV_WR wr;
        char room[WEFT_IBA_RECV_WR_SIZE(1)];
    } u;
    IB_SGE sge = {address, LEN, mr->LKey};
    memset(&u, 0, sizeof(u));
    u.wr.SgeCount = 1;
    u.wr.Sge[0] = &sge;
    need(!verbs.PostRecv(qp, &u.wr, NULL), "PostRecv");
}

static void fill(char seed)
{
    for (ULONG i = 0; i < LEN; i++)
        flat[i] = (char)(seed + i * 31 + i / PAGE_SIZE);
}

// RDMA leaves no trace in the target's thread. Looking at the CQ takes the engine's lock, which
// tells the thread sanitizer that what the engine wrote came before.
static void check_pieces(char seed)
{
    LONG n;
    verbs.PeekCq(cq, &n);
    fill(seed);
    for (ULONG i = 0; i < PAGES; i++) {
        need(!memcmp(scattered + 2 * i * PAGE_SIZE, flat + i * PAGE_SIZE, PAGE_SIZE), "a page");
        need(scattered[(2 * i + 1) * PAGE_SIZE + 7] == 0, "a page that is not in the region");
    }
}

static void check_flat(char seed, ULONG from)
{
    char *got = malloc(LEN);
    memcpy(got, flat, LEN);
    fill(seed);
    need(!memcmp(got + from, flat + from, LEN - from), "what came back");
    free(got);
}

// The active side works on the passive one's region; they meet after each step.
static void active(void)
{
    fill(1);
    request(IbRdmaWrite, flat, all, LEN, 0);
    poll_one("writing");
    meet();
    memset(flat, 0, LEN);
    request(IbRdmaRead, flat + 100, all, LEN - 100, 100);
    poll_one("reading");
    check_flat(1, 100);
    meet(); // the peer has looked
    fill(2);
    request(IbSend, flat, all, LEN, 0); // into the peer's pieces
    poll_one("sending");
    meet();
    receive(flat, all);
    meet();
    poll_one("receiving");
    check_flat(2, 0);
    request(IbRdmaRead, NULL, pieces, LEN, 0); // from pieces into pieces
    poll_one("reading into pieces");
    check_pieces(2);
    meet();
}

static void passive(void)
{
    receive(NULL, pieces);
    meet();
    check_pieces(1);
    meet();
    poll_one("receiving into pieces");
    check_pieces(2);
    meet();
    meet();
    request(IbSend, NULL, pieces, LEN, 0); // from pieces
    poll_one("sending from pieces");
    meet();
}

static void close_all(void)
{
    ULONG_PTR none;
    weft_cb_destroy_qp(&verbs, qp, store, &none);
    weft_cb_dereg_mr(&verbs, pieces, store, &none);
    weft_cb_dereg_mr(&verbs, all, store, &none);
    weft_cb_destroy_cq(&verbs, cq, store, &none);
    weft_cb_destroy_pd(&verbs, pd, store, &none);
    weft_cb_close_ca(&verbs, ca, store, &none);
    verbs.InterfaceDereference(verbs.Context);
    free(scattered);
    free(flat);
}

int main(void)
{
    int ends[2], status = 0;
    need(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    pid_t child = fork();
    peer = ends[child == 0];
    close(ends[child != 0]);
    open_all();
    meet();
    connect_qp();
    meet();
    if (child)
        active();
    else
        passive();
    close_all();
    if (child) {
        waitpid(child, &status, 0);
        need(status == 0, "the other process");
        printf("moved\n");
    }
    return 0;
}
