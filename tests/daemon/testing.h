// SPDX-License-Identifier: BSD-2-Clause
// What the tests of weftd share: a network namespace and a daemon of their own, and members in
// child processes that are told what to do through a pipe.
#ifndef WF_TESTS_DAEMON_TESTING_H
#define WF_TESTS_DAEMON_TESTING_H

#include "link/fabric.h"
#include "link/fabric_proto.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

// Before any test: leave the network of the host (exit 77 where that is not allowed) and name a
// daemon that nobody else uses.
void own_network(const char *linger);

// ip(8) and the like; fails the test when it fails.
void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

pid_t daemon_pid(void); // 0: none is there
void kill_daemon(void); // -9, and wait until it is gone
void wait_daemon_gone(int ms);

uint64_t test_now_ms(void);

// Wait up to `ms` for an event of that type; fails the test when none comes.
void expect_event(struct wf_fabric *f, enum wf_fabric_event_type type, int ms,
                  struct wf_fabric_event *ev);
// Wait until no event is there; true when one of that type came within `ms`.
bool event_within(struct wf_fabric *f, enum wf_fabric_event_type type, int ms);

// A member in a child process. `body` runs in the child; member_sync() there and member_step() here
// meet, and pass one number from the child.
struct member_proc {
    pid_t pid;
    int to, from;
};
struct member_proc member_start(void (*body)(struct member_proc *self, void *arg), void *arg);
uint64_t member_step(struct member_proc *m);                // parent: take the child's next number
void member_go(struct member_proc *m);                      // parent: let it go on
void member_sync(struct member_proc *self, uint64_t value); // child: report, then wait for go
void member_kill(struct member_proc *m);                    // -9, reaped
int member_wait(struct member_proc *m);                     // its exit status
void body_join(struct member_proc *self, void *arg);        // join, report the slot, wait, leave

#endif
