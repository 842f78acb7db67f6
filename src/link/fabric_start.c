// SPDX-License-Identifier: BSD-2-Clause
// Finding weftd, and starting it where there is none.
#include "base/reason.h"
#include "link/fabric_impl.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STARTER_STACK (64u << 10)

uint64_t wf_fabric_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static bool usable(const char *path)
{
    return access(path, X_OK) == 0;
}

static bool beside_library(char *path, size_t size)
{
    static const char *const where[] = {"../bin/weftd", "weftd", "../libexec/weftd",
                                        "../../bin/weftd"};
    Dl_info info;
    char dir[4096];
    if (!dladdr((void *)&beside_library, &info) || !info.dli_fname)
        return false;
    // The main program's name may be relative or a bare word found in PATH.
    ssize_t n = -1;
    if (!strchr(info.dli_fname, '/'))
        n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
    if (n >= 0)
        dir[n] = 0;
    else
        snprintf(dir, sizeof(dir), "%s", info.dli_fname);
    char *slash = strrchr(dir, '/');
    if (!slash)
        return false;
    *slash = 0;
    for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
        if ((size_t)snprintf(path, size, "%s/%s", dir, where[i]) < size && usable(path))
            return true;
    }
    return false;
}

static bool in_path(char *path, size_t size)
{
    const char *p = secure_getenv("PATH");
    if (!p)
        p = "/usr/local/bin:/usr/bin:/bin";
    while (*p) {
        size_t n = strcspn(p, ":");
        if (n && (size_t)snprintf(path, size, "%.*s/weftd", (int)n, p) < size && usable(path))
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

static bool find_daemon(char *path, size_t size)
{
    const char *v = secure_getenv("WEFT_DAEMON");
    if (v && *v) {
        snprintf(path, size, "%s", v);
        return usable(path);
    }
    return beside_library(path, size) || in_path(path, size);
}

struct starter {
    const char *path;
    char *const *argv;
    char *stack; // end of the second half, for exec_main
};

#if defined(__SANITIZE_THREAD__)
#define WHOLE_FORK 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WHOLE_FORK 1
#endif
#endif

// A process that borrows our memory: no page tables are copied, however large the program is.
static int branch(int (*fn)(void *arg), void *stack, int exit_signal, void *arg)
{
#ifdef WHOLE_FORK
    // The thread sanitizer takes part in clone() and must not be run by two processes.
    int pid = (int)syscall(SYS_clone, exit_signal, NULL, NULL, NULL, NULL);
    return pid ? pid : fn(arg);
#else
    return clone(fn, stack, CLONE_VM | CLONE_VFORK | exit_signal, arg);
#endif
}

static int exec_main(void *arg)
{
    static char *const no_env[] = {NULL};
    const struct starter *s = arg;
    syscall(SYS_execve, s->path, s->argv, no_env);
    syscall(SYS_exit, 127);
    return 127;
}

// Runs in the caller's memory on a stack of its own until execve: system calls only. Nothing of the
// program may be kept: descriptors (a caller's pipe would stay open), session, signals, directory.
static int starter_main(void *arg)
{
    struct starter *s = arg;
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    for (int sig = 1; sig < 32; sig++)
        sigaction(sig, &dfl, NULL);
    sigset_t none;
    sigemptyset(&none);
    syscall(SYS_setsid);
    int null = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
    for (int fd = 0; fd < 3; fd++) {
        if (null >= 0)
            syscall(SYS_dup3, null, fd, 0);
        else
            syscall(SYS_close, fd);
    }
    syscall(SYS_close_range, 3u, ~0u, 0u);
    syscall(SYS_chdir, "/");
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
    // A process that execs is an ordinary child again, so that one must be another's.
    int pid = branch(exec_main, s->stack, SIGCHLD, s);
    int status = 127 << 8;
    if (pid > 0)
        syscall(SYS_wait4, pid, &status, 0, NULL);
    syscall(SYS_exit, WIFEXITED(status) ? WEXITSTATUS(status) : 127);
    return 127;
}

// A clone without an exit signal: the program's own SIGCHLD handler and wait() never see it.
static int run_starter(struct starter *s)
{
    void *stack = mmap(NULL, STARTER_STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return -errno;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    s->stack = (char *)stack + STARTER_STACK / 2;
    int pid = branch(starter_main, (char *)stack + STARTER_STACK, 0, s);
    int err = errno, status = 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    munmap(stack, STARTER_STACK);
    if (pid < 0)
        return -err;
    while (waitpid(pid, &status, __WCLONE) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ENOENT;
}

int wf_fabric_spawn(void)
{
    char found[4096], path[PATH_MAX];
    // The starter changes directory first.
    if (!find_daemon(found, sizeof(found)) || !realpath(found, path))
        return wf_refuse(ENOENT, WF_R_NO_DAEMON, "no weftd beside the library nor in PATH");
    const char *name = secure_getenv("WEFT_SOCKET");
    const char *linger = secure_getenv("WEFT_LINGER");
    char *argv[6] = {path};
    int n = 1;
    if (name && *name) {
        argv[n++] = "--socket";
        argv[n++] = (char *)name;
    }
    if (linger && *linger) {
        argv[n++] = "--linger";
        argv[n++] = (char *)linger;
    }
    int ret = run_starter(&(struct starter){.path = path, .argv = argv});
    return ret ? wf_refuse(ENOENT, WF_R_NO_DAEMON, "%s did not start", path) : 0;
}

static int try_connect(void)
{
    struct sockaddr_un sa;
    const char *name = secure_getenv("WEFT_SOCKET");
    socklen_t len = wf_fabric_address(name && *name ? name : NULL, &sa);
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0)
        return -errno;
    int size = 1 << 20;
    setsockopt(s, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    int err = connect(s, (struct sockaddr *)&sa, len) ? errno : 0;
    struct ucred cred;
    socklen_t clen = sizeof(cred);
    if (!err && (getsockopt(s, SOL_SOCKET, SO_PEERCRED, &cred, &clen) || cred.uid != geteuid()))
        err = EACCES;
    if (!err)
        return s;
    close(s);
    if (err == EACCES)
        return wf_refuse(EACCES, WF_R_NO_DAEMON, "the socket @%s belongs to another user",
                         sa.sun_path + 1);
    return -err;
}

static void nap(long usec)
{
    struct timespec ts = {0, usec * 1000};
    nanosleep(&ts, NULL);
}

int wf_fabric_connect(uint64_t deadline_ms, bool jitter)
{
    int last = -ETIMEDOUT;
    // After weftd was killed all its clients come at once; most then find the one that was first.
    bool may_spawn = !jitter;
    do {
        int s = try_connect();
        if (s >= 0 || s == -EACCES || s == -EMFILE)
            return s;
        if (s == -ECONNREFUSED || s == -ENOENT) {
            if (may_spawn && (last = wf_fabric_spawn()) < 0)
                return last;
            if (!may_spawn)
                nap(1 + (getpid() * 2654435761u >> 7) % 20000);
            may_spawn = true;
        } else {
            last = s;
            nap(2000);
        }
    } while (wf_fabric_now_ms() < deadline_ms);
    return last < 0 ? last : -ETIMEDOUT;
}
