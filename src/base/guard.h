// SPDX-License-Identifier: BSD-2-Clause
// Touching memory of the program that may be gone. A device answers a bad address with a completion
// in error, a plain load with SIGSEGV; a system call instead of the load would cost a sixth of the
// bandwidth. So faults inside a guarded function are caught, all others go to whoever had the
// signal before. If the program puts its own handler over ours later, guarding ends; nothing else
// changes.
#ifndef WF_BASE_GUARD_H
#define WF_BASE_GUARD_H

#include <stddef.h>

// Catch SIGSEGV and SIGBUS if we do not yet. Cheap enough for each link or engine that is created,
// not for each packet.
void wf_guard_install(void);

// fn(arg), and 0; or -EFAULT when it touched memory that is not there. It is left in the middle
// then, so it must hold nothing. About 10 ns. Guards nest.
int wf_guard_run(void (*fn)(void *arg), void *arg);

// memcpy(): 0 or -EFAULT.
int wf_guard_copy(void *dst, const void *src, size_t len);

#endif
