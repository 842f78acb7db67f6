// SPDX-License-Identifier: BSD-2-Clause
#include "base/guard.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

// The thread sanitizer puts its own handler in front, which blocks every signal: jumping out of it
// has to put the mask back. Otherwise that system call on each copy is saved.
#ifdef __SANITIZE_THREAD__
#define SAVE_MASK 1
#else
#define SAVE_MASK 0
#endif

struct guard {
    sigjmp_buf out;
    struct guard *outer;
};

// initial-exec: the handler must not allocate a thread's storage.
static _Thread_local struct guard *volatile current __attribute__((tls_model("initial-exec")));

static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before[2]; // SIGSEGV, SIGBUS

static void pass_on(int sig, siginfo_t *info, void *context)
{
    struct sigaction *old = &before[sig == SIGBUS];
    if (old->sa_flags & SA_SIGINFO)
        old->sa_sigaction(sig, info, context);
    else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
        old->sa_handler(sig);
    else if (info->si_code > 0)
        sigaction(sig, old, NULL); // the instruction runs again and gets what it deserves
    else if (old->sa_handler == SIG_DFL) {
        sigaction(sig, old, NULL);
        raise(sig);
    }
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    struct guard *g = current;
    if (g && info->si_code > 0) // from the kernel, not from kill()
        siglongjmp(g->out, 1);
    pass_on(sig, info, context);
}

static void install_one(int sig, struct sigaction *old)
{
    // SA_NODEFER: jumping out must not leave the signal blocked.
    struct sigaction ours = {.sa_sigaction = on_fault,
                             .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK},
                     now;
    if (sigaction(sig, NULL, &now) || ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault))
        return;
    *old = now;
    sigaction(sig, &ours, NULL);
}

void wf_guard_install(void)
{
    pthread_mutex_lock(&install_lock);
    install_one(SIGSEGV, &before[0]);
    install_one(SIGBUS, &before[1]);
    pthread_mutex_unlock(&install_lock);
}

int wf_guard_run(void (*fn)(void *arg), void *arg)
{
    struct guard g;
    g.outer = current;
    if (sigsetjmp(g.out, SAVE_MASK)) {
        current = g.outer;
        return -EFAULT;
    }
    current = &g;
    fn(arg);
    current = g.outer;
    return 0;
}

struct copy {
    void *dst;
    const void *src;
    size_t len;
};

static void run_copy(void *arg)
{
    const struct copy *c = arg;
    memcpy(c->dst, c->src, c->len);
}

int wf_guard_copy(void *dst, const void *src, size_t len)
{
    struct copy c = {dst, src, len};
    return wf_guard_run(run_copy, &c);
}
