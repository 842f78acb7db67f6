// SPDX-License-Identifier: BSD-2-Clause
// Ping-pong over the async verbs. It speaks the exchange of ibv_rc_pingpong, ibv_uc_pingpong and
// ibv_ud_pingpong (one line over TCP port 18515), so its peer may be any of them:
//
//     iba_pingpong rc|uc|ud [-g gid-index] [-s size] [-n iterations] [-e] [server]
//
// Without a server it waits to be one. Every byte that arrives is checked: it must be 0x7b, which
// is what those programs send. -e sleeps on completion events instead of polling.
#include "call.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PORT    "18515"
#define FILL    0x7b
#define QKEY    0x11111111
#define GRH     40
#define LINE    52 // "lid:qpn:psn:gid" with its NUL, 4 + 6 + 6 + 32 digits
#define RECEIVE 1
#define SEND    2
#define DEPTH   100

static IB_VERBS_INTERFACE_STANDARD verbs;
static struct call call, event;
static IB_CA *ca;
static IB_PD *pd;
static IB_CQ *cq;
static IB_QP *qp;
static IB_MR *mr;
static IB_AH *ah;
static unsigned char *buffer;

static struct {
    IB_QP_TYPE type;
    int gid_index, size, iterations, events;
    const char *server;
} opt = {.size = 4096, .iterations = 1000};

struct party {
    ULONG qpn, psn;
    IB_GID gid;
} me, peer;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

// ---- objects ------------------------------------------------------------------------------------

static void read_gid(void)
{
    ULONG size;
    verbs.QueryPort(verbs.Context, 1, sizeof(size), (IB_PORT_ATTR *)&size, call_irp(&call));
    call_wait(&call, "QueryPort");
    IB_PORT_ATTR *port = calloc(1, size);
    verbs.QueryPort(verbs.Context, 1, size, port, call_irp(&call));
    call_wait(&call, "QueryPort");
    if (opt.gid_index < 0 || opt.gid_index >= port->NumGids) {
        fprintf(stderr, "GID index %d of %u\n", opt.gid_index, port->NumGids);
        exit(1);
    }
    me.gid = ((IB_GID *)((char *)port + port->GidTblOffset))[opt.gid_index];
    free(port);
}

static void open_all(void)
{
    check(weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 1, (PINTERFACE)&verbs), "interface");
    weft_iba_set_path_mtu(IB_MTU_1024); // what those programs use
    verbs.OpenCa(verbs.Context, NULL, NULL, NULL, call_irp(&call));
    ca = (IB_CA *)call_wait(&call, "OpenCa");
    read_gid();
    verbs.CreatePd(ca, NULL, call_irp(&call));
    pd = (IB_PD *)call_wait(&call, "CreatePd");
    verbs.CreateCq(ca, DEPTH + 1, NULL, NULL, NULL, NULL, call_irp(&call));
    cq = (IB_CQ *)call_wait(&call, "CreateCq");
    IB_QP_CREATE c = {.Type = opt.type,
                      .SqDepth = 1,
                      .RqDepth = DEPTH,
                      .SqSge = 1,
                      .RqSge = 1,
                      .pSendCq = cq,
                      .pRecvCq = cq};
    verbs.CreateQp(pd, &c, NULL, NULL, NULL, call_irp(&call));
    qp = (IB_QP *)call_wait(&call, "CreateQp");
    me.qpn = qp->Qpn;
    me.psn = (ULONG)getpid() & 0xffffff;
    buffer = calloc(1, (size_t)opt.size + GRH);
    memset(buffer, FILL, (size_t)opt.size + GRH);
    PMDL mdl = IoAllocateMdl(buffer, (ULONG)opt.size + GRH, FALSE, FALSE, NULL);
    if (!mdl)
        die("IoAllocateMdl");
    MmBuildMdlForNonPagedPool(mdl);
    verbs.RegMdl(pd, mdl, IB_AC_LOCAL_WRITE, call_irp(&call));
    mr = (IB_MR *)call_wait(&call, "RegMdl");
}

static void modify(IB_QP_MODIFY *m)
{
    verbs.ModifyQp(qp, m, NULL, call_irp(&call));
    call_wait(&call, "ModifyQp");
}

static void to_init(void)
{
    IB_QP_MODIFY m = {.ReqState = IbQpsInit};
    m.state.Init.PrimaryPort = 1;
    m.state.Init.Qkey = QKEY;
    modify(&m);
}

static void connect_qp(void)
{
    IB_QP_MODIFY rtr = {.ReqState = IbQpsRtr}, rts = {.ReqState = IbQpsRts};
    IB_AH_ATTR path = {.PortNumber = 1, .Flags = IB_AH_FLAG_GRH};
    path.Grh.SGid = me.gid;
    path.Grh.DGid = peer.gid;
    path.Grh.HopLimit = 64;
    rtr.state.rtr.RqPsn = peer.psn;
    rtr.state.rtr.DestQp = peer.qpn;
    rtr.state.rtr.PrimaryAh = path;
    rtr.state.rtr.RespRes = 1;
    rtr.state.rtr.RnrNakTimeout = 12;
    rts.state.rts.SqPsn = me.psn;
    rts.state.rts.RetryCnt = 7;
    rts.state.rts.RnrRetryCnt = 7;
    rts.state.rts.LocalAckTimeout = 14;
    rts.state.rts.InitDepth = 1;
    modify(&rtr);
    modify(&rts);
    if (opt.type == IbQpTypeUnreliableDgrm)
        check(verbs.CreateAh(pd, &path, &ah), "CreateAh");
}

// ---- the exchange -------------------------------------------------------------------------------

static int reach(void)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
    hints.ai_flags = opt.server ? 0 : AI_PASSIVE;
    if (getaddrinfo(opt.server, PORT, &hints, &list))
        die("getaddrinfo");
    for (struct addrinfo *a = list; a; a = a->ai_next) {
        int one = 1, fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (opt.server && connect(fd, a->ai_addr, a->ai_addrlen) == 0)
            return freeaddrinfo(list), fd;
        if (!opt.server && bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 1) == 0) {
            int peer_fd = accept(fd, NULL, NULL);
            close(fd);
            return freeaddrinfo(list), peer_fd;
        }
        close(fd);
    }
    die("TCP");
    return -1;
}

static void tell(int fd)
{
    char line[LINE];
    int n = snprintf(line, sizeof(line), "%04x:%06x:%06x:", 0, me.qpn, me.psn);
    for (int i = 0; i < 16; i++)
        n += snprintf(line + n, sizeof(line) - (size_t)n, "%02x", me.gid.Raw[i]);
    if (write(fd, line, sizeof(line)) != (ssize_t)sizeof(line))
        die("write");
}

static void learn(int fd)
{
    char line[LINE + 1] = "", gid[33];
    size_t got = 0;
    unsigned lid;
    while (got < LINE) {
        ssize_t n = read(fd, line + got, LINE - got);
        if (n <= 0)
            die("read");
        got += (size_t)n;
    }
    if (sscanf(line, "%x:%x:%x:%32s", &lid, &peer.qpn, &peer.psn, gid) != 4 || strlen(gid) != 32) {
        fprintf(stderr, "the peer says \"%s\"\n", line);
        exit(1);
    }
    for (int i = 0; i < 16; i++) {
        unsigned byte;
        sscanf(gid + 2 * i, "%2x", &byte);
        peer.gid.Raw[i] = (UCHAR)byte;
    }
}

// The server connects before it answers, so that its queue pair is ready for the client's first
// message.
static void exchange(void)
{
    char done[LINE];
    int fd = reach();
    if (opt.server) {
        tell(fd);
        learn(fd);
        connect_qp();
        if (write(fd, "done", sizeof("done")) < 0)
            die("write");
    } else {
        learn(fd);
        connect_qp();
        tell(fd);
        if (read(fd, done, sizeof(done)) < 0)
            die("read");
    }
    close(fd);
}

// ---- traffic ------------------------------------------------------------------------------------

static void post_receives(int n)
{
    union {
        IB_RECV_WR wr;
        char room[WEFT_IBA_RECV_WR_SIZE(1)];
    } u;
    IB_SGE sge = {buffer, (ULONG)opt.size + GRH, mr->LKey};
    memset(&u, 0, sizeof(u));
    u.wr.WrId = RECEIVE;
    u.wr.SgeCount = 1;
    u.wr.Sge[0] = &sge;
    while (n--)
        check(verbs.PostRecv(qp, &u.wr, NULL), "PostRecv");
}

// On UD the first 40 bytes of the buffer are for the GRH of what arrives.
static void post_send(void)
{
    union {
        IB_SEND_WR wr;
        char room[WEFT_IBA_SEND_WR_SIZE(1)];
    } u;
    int ud = opt.type == IbQpTypeUnreliableDgrm;
    IB_SGE sge = {buffer + (ud ? GRH : 0), (ULONG)opt.size, mr->LKey};
    memset(&u, 0, sizeof(u));
    u.wr.WrId = SEND;
    u.wr.Type = IbSend;
    u.wr.Flags = IB_WR_FLAG_SIGNALED;
    u.wr.SgeCount = 1;
    u.wr.Sge[0] = &sge;
    if (ud) {
        u.wr.u.Ud.pAh = ah;
        u.wr.u.Ud.RemoteQpn = peer.qpn;
        u.wr.u.Ud.RemoteQkey = QKEY;
    }
    check(verbs.PostSend(qp, &u.wr, NULL), "PostSend");
}

static void check_data(const IB_WC *wc)
{
    int skip = opt.type == IbQpTypeUnreliableDgrm ? GRH : 0;
    int wrong = wc->Length != (ULONG)(opt.size + skip);
    for (int i = skip; i < opt.size + skip && !wrong; i++)
        wrong = buffer[i] != FILL;
    if (wrong) {
        fprintf(stderr, "wrong data in a message of %u bytes\n", wc->Length);
        exit(1);
    }
}

static void next(IB_WC *wc)
{
    LONG n = 1;
    while (weft_iba_poll_flat(&verbs, cq, &n, wc), n == 0) {
        n = 1;
        if (!opt.events)
            continue;
        // Arm, look once more, and only then sleep.
        verbs.GetCqCompEvent(cq, call_irp(&event));
        check(verbs.RearmCq(cq, FALSE), "RearmCq");
        weft_iba_poll_flat(&verbs, cq, &n, wc);
        if (n) {
            IoCancelIrp(event.irp);
            KeWaitForSingleObject(&event.done, Executive, KernelMode, FALSE, NULL);
            break;
        }
        call_wait(&event, "GetCqCompEvent");
        n = 1;
    }
    if (wc->Status != IbWcSuccess) {
        fprintf(stderr, "completion %llu: status %d, reason %u\n", (unsigned long long)wc->WrId,
                (int)wc->Status, wc->VendorError);
        exit(1);
    }
}

static void play(void)
{
    int sent = 0, received = 0, receives = DEPTH;
    unsigned pending = RECEIVE;
    struct timeval start, end;
    gettimeofday(&start, NULL);
    if (opt.server) {
        post_send();
        pending |= SEND;
    }
    while (sent < opt.iterations || received < opt.iterations) {
        IB_WC wc;
        next(&wc);
        pending &= ~(unsigned)wc.WrId;
        if (wc.WrId == SEND) {
            sent++;
        } else {
            received++;
            check_data(&wc);
            if (--receives <= 1) {
                post_receives(DEPTH - receives);
                receives = DEPTH;
            }
        }
        if (!pending && sent < opt.iterations) {
            post_send();
            pending = RECEIVE | SEND;
        }
    }
    gettimeofday(&end, NULL);
    double us = (double)(end.tv_sec - start.tv_sec) * 1e6 + (double)(end.tv_usec - start.tv_usec);
    printf("%d bytes, %d iterations, %.2f usec each\n", opt.size, opt.iterations,
           us / opt.iterations);
}

static void close_all(void)
{
    if (ah)
        verbs.DestroyAh(ah);
    verbs.DestroyQp(qp, NULL, call_irp(&call));
    call_wait(&call, "DestroyQp");
    verbs.DestroyCq(cq, NULL, call_irp(&call));
    call_wait(&call, "DestroyCq");
    verbs.DeregMr(mr, call_irp(&call));
    IoFreeMdl((PMDL)call_wait(&call, "DeregMr"));
    verbs.DestroyPd(pd, NULL, call_irp(&call));
    call_wait(&call, "DestroyPd");
    verbs.CloseCa(ca, NULL, call_irp(&call));
    call_wait(&call, "CloseCa");
    verbs.InterfaceDereference(verbs.Context);
    free(buffer);
}

static int usage(void)
{
    fprintf(stderr, "usage: iba_pingpong rc|uc|ud [-g gid-index] [-s size] [-n iterations] [-e] "
                    "[server]\n");
    return 2;
}

static int parse(int argc, char **argv)
{
    int c;
    if (argc < 2)
        return usage();
    if (strcmp(argv[1], "rc") == 0)
        opt.type = IbQpTypeReliableConn;
    else if (strcmp(argv[1], "uc") == 0)
        opt.type = IbQpTypeUnreliableConn;
    else if (strcmp(argv[1], "ud") == 0)
        opt.type = IbQpTypeUnreliableDgrm, opt.size = 1024;
    else
        return usage();
    while ((c = getopt(argc - 1, argv + 1, "g:s:n:e")) != -1) {
        if (c == 'g')
            opt.gid_index = atoi(optarg);
        else if (c == 's')
            opt.size = atoi(optarg);
        else if (c == 'n')
            opt.iterations = atoi(optarg);
        else if (c == 'e')
            opt.events = 1;
        else
            return usage();
    }
    opt.server = optind + 1 < argc ? argv[optind + 1] : NULL;
    return opt.size > 0 && opt.iterations > 0 ? 0 : usage();
}

int main(int argc, char **argv)
{
    int bad = parse(argc, argv);
    if (bad)
        return bad;
    call_init(&call);
    call_init(&event);
    open_all();
    to_init();
    post_receives(DEPTH);
    exchange();
    play();
    close_all();
    call_free(&call);
    call_free(&event);
    return 0;
}
