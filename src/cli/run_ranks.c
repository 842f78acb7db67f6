// SPDX-License-Identifier: BSD-2-Clause
// weft run -n N: starts N local ranks and answers their PMI requests (pmi/ranks.h). A rank that
// dies does not take the others with it: what waits for it fails, so that programs can be tested
// for that. The exit status is that of the first rank that failed.
#include "base/gnijob.h"
#include "cli/cli.h"
#include "pmi/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct rank {
    pid_t pid; // 0: it ended
    int fd;    // -1: closed
    struct wf_ranks_msg head;
    char *body;
    size_t got;     // of header and body together
    uint32_t waits; // op it waits in: BARRIER or GATHER, else 0
    bool left;      // it said LEAVE
};

struct pair {
    struct pair *next;
    char *key, *value;
};

static struct {
    struct rank *rank;
    int size;
    struct pair *pairs;
    int status; // of the first that failed
    bool aborting;
} job;

static void kill_all(int sig)
{
    for (int i = 0; i < job.size; i++)
        if (job.rank[i].pid > 0)
            kill(job.rank[i].pid, sig);
}

// ---- answering ----------------------------------------------------------------------------------

// A rank reads its answer at once; one that does not is stopped, and then so is this.
static void put_bytes(struct rank *r, const void *data, size_t len)
{
    for (const char *p = data; len && r->fd >= 0;) {
        ssize_t n = send(r->fd, p, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            close(r->fd);
            r->fd = -1;
            return;
        }
        p += n;
        len -= (size_t)n;
    }
}

static void answer(struct rank *r, enum wf_ranks_op op, const void *data, size_t len)
{
    struct wf_ranks_msg m = {op, (uint32_t)len, 0, 0};
    put_bytes(r, &m, sizeof(m));
    put_bytes(r, data, len);
}

static bool hopeless(void)
{
    for (int i = 0; i < job.size; i++)
        if (job.rank[i].fd < 0 || job.rank[i].left)
            return true;
    return false;
}

static void release(enum wf_ranks_op op, const void *data, size_t len)
{
    for (int i = 0; i < job.size; i++)
        if (job.rank[i].waits) {
            answer(&job.rank[i], op, data, len);
            job.rank[i].waits = 0;
            free(job.rank[i].body);
            job.rank[i].body = NULL;
        }
}

// All wait in the same call with the same length: hand everybody's data to everybody.
static void complete_collective(void)
{
    const struct wf_ranks_msg *first = &job.rank[0].head;
    for (int i = 0; i < job.size; i++) {
        const struct rank *r = &job.rank[i];
        if (!r->waits)
            return;
        if (r->head.op != first->op || r->head.len != first->len) {
            release(WF_RANKS_FAILED, NULL, 0);
            return;
        }
    }
    size_t len = first->len, all = len * (size_t)job.size;
    char *data = malloc(all ? all : 1);
    for (int i = 0; data && i < job.size; i++)
        if (len)
            memcpy(data + (size_t)i * len, job.rank[i].body, len);
    release(data ? WF_RANKS_DONE : WF_RANKS_FAILED, data, data ? all : 0);
    free(data);
}

static void put_pair(const char *body, size_t len)
{
    const char *end = memchr(body, 0, len);
    struct pair *p = end ? calloc(1, sizeof(*p)) : NULL;
    if (!p)
        return;
    p->key = strdup(body);
    p->value = strndup(end + 1, len - (size_t)(end + 1 - body));
    p->next = job.pairs;
    job.pairs = p;
}

static void get_pair(struct rank *r)
{
    char *key = strndup(r->body ? r->body : "", r->head.len);
    struct pair *p = job.pairs;
    while (p && key && strcmp(p->key, key) != 0)
        p = p->next;
    if (p && key)
        answer(r, WF_RANKS_DONE, p->value, strlen(p->value) + 1);
    else
        answer(r, WF_RANKS_FAILED, NULL, 0);
    free(key);
}

static void abort_job(const struct rank *r)
{
    fprintf(stderr, "weft run: rank %d aborts the job: %.*s\n", (int)(r - job.rank),
            (int)r->head.len, r->body ? r->body : "");
    job.status = r->head.arg & 0xff;
    job.aborting = true;
    kill_all(SIGTERM);
}

static void serve(struct rank *r)
{
    switch ((enum wf_ranks_op)r->head.op) {
    case WF_RANKS_BARRIER:
    case WF_RANKS_GATHER:
        r->waits = r->head.op;
        if (hopeless())
            release(WF_RANKS_FAILED, NULL, 0);
        else
            complete_collective();
        return; // the body is kept until then
    case WF_RANKS_PUT:
        if (r->body)
            put_pair(r->body, r->head.len);
        answer(r, WF_RANKS_DONE, NULL, 0);
        break;
    case WF_RANKS_GET:
        get_pair(r);
        break;
    case WF_RANKS_ABORT:
        abort_job(r);
        break;
    case WF_RANKS_LEAVE:
        r->left = true;
        answer(r, WF_RANKS_DONE, NULL, 0);
        if (hopeless())
            release(WF_RANKS_FAILED, NULL, 0);
        break;
    default:
        answer(r, WF_RANKS_FAILED, NULL, 0);
    }
    free(r->body);
    r->body = NULL;
}

// ---- reading ------------------------------------------------------------------------------------

static void lost(struct rank *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
    r->waits = 0;
    if (!r->left) // those that wait for it would wait for ever
        release(WF_RANKS_FAILED, NULL, 0);
}

// One step: header, then body. False when the rank is gone or talks nonsense.
static bool read_some(struct rank *r)
{
    char *to = (char *)&r->head + r->got;
    size_t want = sizeof(r->head) - r->got;
    if (r->got >= sizeof(r->head)) {
        size_t in_body = r->got - sizeof(r->head);
        to = r->body + in_body;
        want = r->head.len - in_body;
    }
    ssize_t n = recv(r->fd, to, want, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    r->got += (size_t)n;
    if (r->got == sizeof(r->head) && r->head.len) {
        free(r->body);
        r->body = r->head.len <= WF_RANKS_BYTES ? malloc(r->head.len) : NULL;
        return r->body != NULL;
    }
    if (r->got >= sizeof(r->head) && r->got == sizeof(r->head) + r->head.len) {
        r->got = 0;
        serve(r);
    }
    return true;
}

// ---- starting and ending ------------------------------------------------------------------------

static void set_number(const char *name, int n)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", n);
    setenv(name, text, 1);
}

static int start(int i, char **program)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return -errno;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (!pid) {
        fcntl(pair[1], F_SETFD, 0);
        set_number(WF_RANKS_FD, pair[1]);
        set_number(WF_RANKS_RANK, i);
        execvp(program[0], program);
        fprintf(stderr, "weft run: %s: %s\n", program[0], strerror(errno));
        _exit(errno == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT);
    }
    close(pair[1]);
    job.rank[i] = (struct rank){.pid = pid, .fd = pair[0]};
    return 0;
}

static void set_job(int ppn)
{
    struct timespec ts;
    char name[64];
    clock_gettime(CLOCK_REALTIME, &ts);
    snprintf(name, sizeof(name), "weft-%d-%lx%lx", (int)getpid(), (long)ts.tv_sec, ts.tv_nsec);
    setenv(WF_RANKS_JOB, name, 1);
    set_number(WF_RANKS_SIZE, job.size);
    set_number(WF_RANKS_PPN, ppn);
    unsetenv("PMI_GNI_COOKIE"); // of an outer job
    unsetenv("PMI_GNI_PTAG");
    unsetenv("PMI_GNI_LOC_ADDR");
    unsetenv("PMI_GNI_DEV_ID");
    wf_gni_job_export(wf_gni_job_cookie(name));
}

static void ended(pid_t pid, int wait_status)
{
    int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
    for (int i = 0; i < job.size; i++) {
        if (job.rank[i].pid != pid)
            continue;
        job.rank[i].pid = 0;
        if (code && !job.status)
            job.status = code;
        if (WIFSIGNALED(wait_status) && !(job.aborting && WTERMSIG(wait_status) == SIGTERM))
            fprintf(stderr, "weft run: rank %d: %s\n", i, strsignal(WTERMSIG(wait_status)));
    }
}

static bool running(void)
{
    for (int i = 0; i < job.size; i++)
        if (job.rank[i].pid > 0)
            return true;
    return false;
}

static void no_op(int sig)
{
    (void)sig;
}

static void pass_on(int sig)
{
    kill_all(sig);
}

static void watch(void)
{
    struct pollfd *p = calloc((size_t)job.size, sizeof(*p));
    sigset_t chld, old;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, &old); // seen only inside ppoll()
    while (p && running()) {
        pid_t pid;
        int status;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            ended(pid, status);
        if (!running())
            break;
        for (int i = 0; i < job.size; i++)
            p[i] = (struct pollfd){job.rank[i].fd, POLLIN, 0};
        if (ppoll(p, (nfds_t)job.size, NULL, &old) < 0)
            continue;
        for (int i = 0; i < job.size; i++)
            if (p[i].revents && job.rank[i].fd >= 0 && !read_some(&job.rank[i]))
                lost(&job.rank[i]);
    }
    free(p);
}

int cli_run_ranks(int n, int ppn, char **program)
{
    struct sigaction chld = {.sa_handler = no_op}, pass = {.sa_handler = pass_on};
    job.size = n;
    job.rank = calloc((size_t)n, sizeof(*job.rank));
    if (!job.rank)
        return cli_fail(CLI_CANNOT, "run", "out of memory");
    sigaction(SIGCHLD, &chld, NULL);
    sigaction(SIGINT, &pass, NULL);
    sigaction(SIGTERM, &pass, NULL);
    set_job(ppn);
    for (int i = 0; i < n; i++) {
        int err = start(i, program);
        if (err) {
            kill_all(SIGTERM);
            return cli_fail(CLI_CANNOT, "run", "rank %d: %s", i, strerror(-err));
        }
    }
    watch();
    return job.status;
}
