// SPDX-License-Identifier: BSD-2-Clause
// Spin locks, events and pool memory of the WDM layer.
#include "weft/wdm.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// ---- spin locks ---------------------------------------------------------------------------------

VOID KeInitializeSpinLock(PKSPIN_LOCK SpinLock)
{
    __atomic_store_n(SpinLock, 0, __ATOMIC_RELAXED);
}

// The holder may have been preempted, as user threads are: give the processor away soon.
VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock)
{
    for (unsigned spins = 0; __atomic_exchange_n(SpinLock, 1, __ATOMIC_ACQUIRE); spins++)
        while (__atomic_load_n(SpinLock, __ATOMIC_RELAXED))
            if (++spins > 100)
                sched_yield();
}

VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock)
{
    __atomic_store_n(SpinLock, 0, __ATOMIC_RELEASE);
}

VOID KeAcquireSpinLock(PKSPIN_LOCK SpinLock, PKIRQL OldIrql)
{
    *OldIrql = KeRaiseIrqlToDpcLevel();
    KeAcquireSpinLockAtDpcLevel(SpinLock);
}

VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql)
{
    KeReleaseSpinLockFromDpcLevel(SpinLock);
    KeLowerIrql(NewIrql);
}

// ---- events -------------------------------------------------------------------------------------

static long futex(UINT32 *word, int op, UINT32 value, const struct timespec *until)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, until, NULL,
                   FUTEX_BITSET_MATCH_ANY);
}

// An event's word: whoever is about to sleep leaves ASLEEP in it, so that setting an event for
// which nobody sleeps needs no system call. A thread that slept and then takes the event leaves
// ASLEEP again, as others may sleep still.
enum { CLEAR = 0, SIGNALLED = 1, ASLEEP = 2 };

static bool swap(UINT32 *word, UINT32 from, UINT32 to)
{
    return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

VOID KeInitializeEvent(PKEVENT Event, EVENT_TYPE Type, BOOLEAN State)
{
    Event->Type = Type;
    __atomic_store_n(&Event->State, State ? SIGNALLED : CLEAR, __ATOMIC_RELEASE);
}

LONG KeSetEvent(PKEVENT Event, KPRIORITY Increment, BOOLEAN Wait)
{
    // The waiter may free the event as soon as it sees the new state, so nothing reads it later; a
    // wake-up on memory that is gone meanwhile is harmless.
    int wake = Event->Type == SynchronizationEvent ? 1 : INT32_MAX;
    UINT32 *word = &Event->State;
    UINT32 old = __atomic_exchange_n(word, SIGNALLED, __ATOMIC_ACQ_REL);
    if (old == ASLEEP)
        futex(word, FUTEX_WAKE, (UINT32)wake, NULL);
    return old == SIGNALLED;
}

LONG KeResetEvent(PKEVENT Event)
{
    return swap(&Event->State, SIGNALLED, CLEAR);
}

VOID KeClearEvent(PKEVENT Event)
{
    KeResetEvent(Event);
}

LONG KeReadStateEvent(PKEVENT Event)
{
    return __atomic_load_n(&Event->State, __ATOMIC_ACQUIRE) == SIGNALLED;
}

static bool take(PKEVENT event, bool slept)
{
    if (event->Type == NotificationEvent)
        return KeReadStateEvent(event) != 0;
    return swap(&event->State, SIGNALLED, slept ? ASLEEP : CLEAR);
}

#define TICKS_PER_SEC   10000000ll    // of 100 ns
#define UNIX_EPOCH_SECS 11644473600ll // 1970 counted from 1601

// Both kinds of timeout become a moment on CLOCK_MONOTONIC.
static struct timespec moment(LONGLONG ticks)
{
    struct timespec now, real;
    clock_gettime(CLOCK_MONOTONIC, &now);
    LONGLONG left = -ticks;
    if (ticks > 0) {
        clock_gettime(CLOCK_REALTIME, &real);
        left = ticks - (real.tv_sec + UNIX_EPOCH_SECS) * TICKS_PER_SEC - real.tv_nsec / 100;
        left = left > 0 ? left : 0;
    }
    now.tv_sec += left / TICKS_PER_SEC;
    now.tv_nsec += left % TICKS_PER_SEC * 100;
    if (now.tv_nsec >= 1000000000) {
        now.tv_sec++;
        now.tv_nsec -= 1000000000;
    }
    return now;
}

NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                               BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    PKEVENT event = Object;
    struct timespec until;
    if (!Timeout || Timeout->QuadPart)
        weft_wdm_may_block("KeWaitForSingleObject");
    if (Timeout)
        until = moment(Timeout->QuadPart);
    for (bool slept = false; !take(event, slept); slept = true) {
        if (Timeout && !Timeout->QuadPart)
            return STATUS_TIMEOUT;
        swap(&event->State, CLEAR, ASLEEP);
        if (futex(&event->State, FUTEX_WAIT_BITSET, ASLEEP, Timeout ? &until : NULL) < 0 &&
            errno == ETIMEDOUT)
            return take(event, true) ? STATUS_SUCCESS : STATUS_TIMEOUT;
    }
    return STATUS_SUCCESS;
}

// ---- pool ---------------------------------------------------------------------------------------

// The kind of pool is remembered in front of the block, so that freeing can be checked too.
struct pool_block {
    _Alignas(16) POOL_TYPE type;
};

PVOID ExAllocatePoolWithTag(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    if (PoolType == PagedPool)
        weft_wdm_may_block("ExAllocatePoolWithTag(PagedPool)");
    if (NumberOfBytes > SIZE_MAX - sizeof(struct pool_block))
        return NULL;
    struct pool_block *b = malloc(sizeof(*b) + NumberOfBytes);
    if (!b)
        return NULL;
    b->type = PoolType;
    return b + 1;
}

VOID ExFreePool(PVOID P)
{
    struct pool_block *b = (struct pool_block *)P - 1;
    if (b->type == PagedPool)
        weft_wdm_may_block("ExFreePool(PagedPool)");
    free(b);
}

VOID ExFreePoolWithTag(PVOID P, ULONG Tag)
{
    ExFreePool(P);
}
