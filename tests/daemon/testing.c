// SPDX-License-Identifier: BSD-2-Clause
#include "testing.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

// An ordinary user gets a network by becoming root of a user namespace.
static void leave_network(void)
{
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWNET) == 0)
        return;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
        fputs("no network namespace may be made here\n", stderr);
        exit(77);
    }
    put_file("/proc/self/setgroups", "deny");
    snprintf(map, sizeof(map), "0 %u 1", uid);
    put_file("/proc/self/uid_map", map);
    snprintf(map, sizeof(map), "0 %u 1", gid);
    put_file("/proc/self/gid_map", map);
}

void own_network(const char *linger)
{
    char name[64];
    leave_network();
    snprintf(name, sizeof(name), "weft-test-%d", getpid());
    setenv("WEFT_SOCKET", name, 1);
    setenv("WEFT_LINGER", linger, 1);
    setenv("WEFT_DAEMON", WEFTD, 1);
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    ioctl(s, SIOCSIFFLAGS, &r);
    close(s);
}

void run(const char *fmt, ...)
{
    char cmd[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(cmd, sizeof(cmd), fmt, ap);
    va_end(ap);
    assert_int_equal(system(cmd), 0);
}

uint64_t test_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

pid_t daemon_pid(void)
{
    struct sockaddr_un sa;
    struct ucred cred = {0};
    socklen_t clen = sizeof(cred), len = wf_fabric_address(getenv("WEFT_SOCKET"), &sa);
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(s, (struct sockaddr *)&sa, len) == 0)
        getsockopt(s, SOL_SOCKET, SO_PEERCRED, &cred, &clen);
    close(s);
    return cred.pid;
}

static void wait_for(bool (*done)(void *arg), void *arg, int ms)
{
    uint64_t end = test_now_ms() + (uint64_t)ms;
    while (!done(arg)) {
        assert_true(test_now_ms() < end);
        poll(NULL, 0, 1);
    }
}

static bool no_daemon(void *arg)
{
    return daemon_pid() == 0;
}

static bool pid_gone(void *arg)
{
    char path[64], state = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", *(pid_t *)arg);
    FILE *f = fopen(path, "r");
    if (!f)
        return true;
    if (fscanf(f, "%*d %*s %c", &state) != 1)
        state = 'Z';
    fclose(f);
    return state == 'Z' || state == 'X';
}

void wait_daemon_gone(int ms)
{
    wait_for(no_daemon, NULL, ms);
}

void kill_daemon(void)
{
    pid_t pid = daemon_pid();
    assert_true(pid > 1);
    kill(pid, SIGKILL);
    wait_for(pid_gone, &pid, 2000);
}

bool event_within(struct wf_fabric *f, enum wf_fabric_event_type type, int ms)
{
    struct wf_fabric_event ev;
    uint64_t end = test_now_ms() + (uint64_t)ms;
    do {
        while (wf_fabric_next_event(f, &ev) == 0)
            if (ev.type == type)
                return true;
        struct pollfd p = {.fd = wf_fabric_fd(f), .events = POLLIN};
        poll(&p, 1, 10);
    } while (test_now_ms() < end);
    return false;
}

void expect_event(struct wf_fabric *f, enum wf_fabric_event_type type, int ms,
                  struct wf_fabric_event *ev)
{
    uint64_t end = test_now_ms() + (uint64_t)ms;
    for (;;) {
        while (wf_fabric_next_event(f, ev) == 0)
            if (ev->type == type)
                return;
        if (test_now_ms() >= end)
            fail_msg("no event of type %d within %d ms", type, ms);
        struct pollfd p = {.fd = wf_fabric_fd(f), .events = POLLIN};
        poll(&p, 1, 10);
    }
}

struct member_proc member_start(void (*body)(struct member_proc *self, void *arg), void *arg)
{
    int down[2], up[2];
    assert_int_equal(pipe(down), 0);
    assert_int_equal(pipe(up), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct member_proc self = {.pid = getpid(), .to = up[1], .from = down[0]};
        close(down[1]);
        close(up[0]);
        body(&self, arg);
        _exit(0);
    }
    close(down[0]);
    close(up[1]);
    return (struct member_proc){.pid = pid, .to = down[1], .from = up[0]};
}

uint64_t member_step(struct member_proc *m)
{
    uint64_t v = 0;
    if (read(m->from, &v, sizeof(v)) != sizeof(v))
        fail_msg("member %d ended early", m->pid);
    return v;
}

void member_go(struct member_proc *m)
{
    assert_int_equal(write(m->to, "g", 1), 1);
}

void member_sync(struct member_proc *self, uint64_t value)
{
    char c;
    if (write(self->to, &value, sizeof(value)) != sizeof(value) || read(self->from, &c, 1) != 1)
        _exit(9);
}

static void forget(struct member_proc *m)
{
    close(m->to);
    close(m->from);
}

void member_kill(struct member_proc *m)
{
    kill(m->pid, SIGKILL);
    waitpid(m->pid, NULL, 0);
    forget(m);
}

int member_wait(struct member_proc *m)
{
    int status = 0;
    waitpid(m->pid, &status, 0);
    forget(m);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

void body_join(struct member_proc *self, void *arg)
{
    struct wf_fabric *f;
    if (wf_fabric_join(&f))
        _exit(1);
    member_sync(self, wf_fabric_slot(f));
    wf_fabric_leave(f);
}
