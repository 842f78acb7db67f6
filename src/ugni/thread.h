// SPDX-License-Identifier: BSD-2-Clause
// The two threads of a process that uses uGNI. One answers peers that connect. The other serves
// messages while no call of the program does, keeps timers, runs callbacks, and notices death.
#ifndef WF_UGNI_THREAD_H
#define WF_UGNI_THREAD_H

#include <stdbool.h>
#include <stdint.h>

int wf_gni_thread_start(void);
// A call of the program looks for results: leave the messages to it for a while.
void wf_gni_thread_polled(void);
// Nobody will look any more: the thread serves from now on.
void wf_gni_thread_arm(void);
// Have the thread run its timers and callbacks soon.
void wf_gni_thread_kick(void);

#endif
