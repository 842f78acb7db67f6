// SPDX-License-Identifier: BSD-2-Clause
// weft doctor: what this host lets Weft do, what to change, and what that would bring.
#include "cli/cli.h"
#include "link/fabric_proto.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#define GOOD_BUFFER (4 << 20)

enum grade { GOOD, FAIR, BAD };

static int faults_found;

static void tell(enum grade g, const char *what, const char *found, const char *todo)
{
    static const char *const marks[] = {"ok  ", "note", "BAD "};
    printf("%s  %-24s %s\n", marks[g], what, found);
    if (g != GOOD && todo)
        printf("      %-24s -> %s\n", "", todo);
    faults_found += g == BAD;
}

static long read_number(const char *path)
{
    long v = -1;
    FILE *in = fopen(path, "re");
    if (!in)
        return -1;
    if (fscanf(in, "%ld", &v) != 1)
        v = -1;
    fclose(in);
    return v;
}

// A child stands for the peer process: two programs of one user, neither the other's parent's.
static bool copy_works(void)
{
    static volatile uint64_t mine = 0x77656674;
    int ready[2];
    if (pipe(ready))
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        uint64_t got = 0;
        struct iovec l = {&got, sizeof(got)}, r = {(void *)&mine, sizeof(got)};
        // Of the parent: what Yama forbids first.
        bool ok = process_vm_readv(getppid(), &l, 1, &r, 1, 0) == sizeof(got) && got == mine;
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    if (pid > 0)
        waitpid(pid, &status, 0);
    close(ready[0]);
    close(ready[1]);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void check_copy(void)
{
    long yama = read_number("/proc/sys/kernel/yama/ptrace_scope");
    char found[80];
    if (yama == 3 || (yama <= 0 && !copy_works())) {
        tell(BAD, "cross-process copy", "forbidden: data within the host is copied twice",
             "allow ptrace in the container (--cap-add SYS_PTRACE, or a seccomp profile with "
             "process_vm_readv): large messages become 2 to 3 times faster");
        return;
    }
    snprintf(found, sizeof(found), "works%s",
             yama == 1   ? " (Yama 1: programs allow it to each other)"
             : yama == 2 ? " only for root (Yama 2)"
                         : "");
    tell(yama == 2 && geteuid() ? BAD : GOOD, "cross-process copy", found,
         "sysctl kernel.yama.ptrace_scope=1");
}

static void check_port(void)
{
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(WF_ROCE_PORT)};
    int one = 1;
    bool free = s >= 0 && bind(s, (struct sockaddr *)&sa, sizeof(sa)) == 0;
    if (free) {
        tell(GOOD, "UDP port 4791", "free", NULL);
    } else {
        int again = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        setsockopt(again, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
        bool ours = bind(again, (struct sockaddr *)&sa, sizeof(sa)) == 0;
        tell(ours ? GOOD : BAD, "UDP port 4791",
             ours ? "used by weftd of this user" : "belongs to somebody else (rxe, another user?)",
             "free it (rdma link delete rxe0; stop the other user's programs), or use a network "
             "namespace: without it other hosts cannot be reached, this host can");
        close(again);
    }
    if (s >= 0)
        close(s);
}

static void check_offloads(void)
{
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), v = 1024, one = 1;
    bool gso = setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &v, sizeof(v)) == 0;
    bool gro = setsockopt(s, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)) == 0;
    tell(gso && gro ? GOOD : FAIR, "UDP segmentation offload",
         gso && gro ? "send and receive"
         : gso      ? "send only"
                    : "missing",
         "a kernel of 5.0 or newer: up to 10 times the bandwidth to other hosts");
    close(s);
}

static void check_buffers(void)
{
    char found[96];
    long r = read_number("/proc/sys/net/core/rmem_max"),
         w = read_number("/proc/sys/net/core/wmem_max");
    snprintf(found, sizeof(found), "receive %ld KiB, send %ld KiB at most", r / 1024, w / 1024);
    tell(r >= GOOD_BUFFER && w >= GOOD_BUFFER ? GOOD : FAIR, "socket buffers", found,
         "sysctl net.core.rmem_max=8388608 net.core.wmem_max=8388608: fewer losses to other hosts, "
         "a larger window");
}

static void check_memory(void)
{
    char found[96];
    long pages = read_number("/proc/sys/vm/nr_hugepages");
    snprintf(found, sizeof(found), "%ld reserved", pages);
    tell(pages > 0 ? GOOD : FAIR, "huge pages", found,
         "only programs that ask for them (IBV_ACCESS_HUGETLB, UCX) gain");
    int fd = memfd_create("weft-doctor", MFD_CLOEXEC);
    tell(fd >= 0 ? GOOD : BAD, "shared memory files", fd >= 0 ? "work" : strerror(errno),
         "the sandbox forbids memfd_create: Weft cannot work without");
    if (fd >= 0)
        close(fd);
}

static void check_namespaces(void)
{
    pid_t pid = fork();
    int status = 1;
    if (pid == 0)
        _exit(unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET) == 0 ? 0 : 1);
    if (pid > 0)
        waitpid(pid, &status, 0);
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    tell(ok ? GOOD : FAIR, "network namespaces", ok ? "can be made" : "forbidden",
         "tests that play two hosts on one need them (unshare -rn)");
}

static void check_cpus(void)
{
    char found[64];
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(found, sizeof(found), "%ld", n);
    tell(n >= 4 ? GOOD : FAIR, "processors", found,
         "each polling thread wants one of its own; with fewer, latencies grow");
}

static void check_library(void)
{
    char dir[PATH_MAX];
    bool ok = cli_libdir(dir) == 0;
    tell(ok ? GOOD : BAD, "libibverbs.so.1 of Weft", dir, "build or install all of Weft");
}

int cli_doctor(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        puts("usage: weft doctor\n\nWhat this host lets Weft do, what to change, and what it "
             "brings.\n"
             "Exit status 1 when something Weft needs is missing.");
        return CLI_OK;
    }
    if (argc != 1)
        return cli_fail(CLI_USAGE, "doctor", "unknown word \"%s\"", argv[1]);
    check_library();
    check_copy();
    check_port();
    check_offloads();
    check_buffers();
    check_memory();
    check_namespaces();
    check_cpus();
    return faults_found ? CLI_FAILED : CLI_OK;
}
