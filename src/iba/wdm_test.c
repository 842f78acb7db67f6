// SPDX-License-Identifier: BSD-2-Clause
#include "weft/wdm.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/mman.h>

#define TAG 0x74736554 // "Test"

// ---- a driver with one queue of cancellable IRPs ------------------------------------------------

static KSPIN_LOCK queue_lock;
static LIST_ENTRY queue;

static void finish(PIRP irp, NTSTATUS status)
{
    irp->IoStatus.Status = status;
    irp->IoStatus.Information = 7;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
}

static VOID cancel(PDEVICE_OBJECT device, PIRP irp)
{
    KIRQL irql;
    IoReleaseCancelSpinLock(irp->CancelIrql);
    KeAcquireSpinLock(&queue_lock, &irql);
    RemoveEntryList(&irp->Tail.Overlay.ListEntry);
    KeReleaseSpinLock(&queue_lock, irql);
    finish(irp, STATUS_CANCELLED);
}

static NTSTATUS dispatch(PDEVICE_OBJECT device, PIRP irp)
{
    KIRQL irql;
    if (IoGetCurrentIrpStackLocation(irp)->MinorFunction == 1) {
        finish(irp, STATUS_UNSUCCESSFUL);
        return STATUS_UNSUCCESSFUL;
    }
    KeAcquireSpinLock(&queue_lock, &irql);
    IoMarkIrpPending(irp);
    InsertTailList(&queue, &irp->Tail.Overlay.ListEntry);
    IoSetCancelRoutine(irp, cancel);
    KeReleaseSpinLock(&queue_lock, irql);
    return STATUS_PENDING;
}

static void serve_one(void)
{
    KIRQL irql;
    PIRP irp = NULL;
    KeAcquireSpinLock(&queue_lock, &irql);
    while (!irp && !IsListEmpty(&queue)) {
        PLIST_ENTRY e = RemoveHeadList(&queue);
        InitializeListHead(e);
        irp = CONTAINING_RECORD(e, IRP, Tail.Overlay.ListEntry);
        if (!IoSetCancelRoutine(irp, NULL))
            irp = NULL; // the cancel routine has it
    }
    KeReleaseSpinLock(&queue_lock, irql);
    if (irp)
        finish(irp, STATUS_SUCCESS);
}

static DRIVER_OBJECT driver = {.MajorFunction = {[IRP_MJ_INTERNAL_DEVICE_CONTROL] = dispatch}};
static DEVICE_OBJECT device = {.DriverObject = &driver, .StackSize = 1};

static int setup(void **state)
{
    InitializeListHead(&queue);
    KeInitializeSpinLock(&queue_lock);
    return 0;
}

// ---- IRPs ---------------------------------------------------------------------------------------

struct seen {
    KEVENT done;
    LONG volatile calls;
    NTSTATUS status, answer;
    BOOLEAN pending;
};

static NTSTATUS on_complete(PDEVICE_OBJECT d, PIRP irp, PVOID context)
{
    struct seen *s = context;
    s->status = irp->IoStatus.Status;
    s->pending = irp->PendingReturned;
    InterlockedIncrement(&s->calls);
    NTSTATUS answer = s->answer;
    KeSetEvent(&s->done, 0, FALSE);
    return answer;
}

static PIRP make_irp(struct seen *s, UCHAR minor)
{
    memset(s, 0, sizeof(*s));
    KeInitializeEvent(&s->done, NotificationEvent, FALSE);
    s->answer = STATUS_MORE_PROCESSING_REQUIRED;
    PIRP irp = IoAllocateIrp(1, FALSE);
    assert_non_null(irp);
    IoGetNextIrpStackLocation(irp)->MajorFunction = IRP_MJ_INTERNAL_DEVICE_CONTROL;
    IoGetNextIrpStackLocation(irp)->MinorFunction = minor;
    IoSetCompletionRoutine(irp, on_complete, s, TRUE, TRUE, TRUE);
    return irp;
}

static void test_irp_completed_at_once_runs_routine_once(void **state)
{
    struct seen s;
    PIRP irp = make_irp(&s, 1);
    assert_int_equal(IoCallDriver(&device, irp), STATUS_UNSUCCESSFUL);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.status, STATUS_UNSUCCESSFUL);
    assert_false(s.pending);
    assert_int_equal(irp->IoStatus.Information, 7);
    PIO_STACK_LOCATION kept = IoGetNextIrpStackLocation(irp);
    assert_int_equal(kept->MajorFunction, IRP_MJ_INTERNAL_DEVICE_CONTROL);
    assert_int_equal(kept->MinorFunction, 1);
    IoFreeIrp(irp);
}

static void test_irp_pending_then_served_tells_pending(void **state)
{
    struct seen s;
    PIRP irp = make_irp(&s, 0);
    assert_int_equal(IoCallDriver(&device, irp), STATUS_PENDING);
    assert_int_equal(s.calls, 0);
    serve_one();
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.status, STATUS_SUCCESS);
    assert_true(s.pending);
    IoFreeIrp(irp);
}

static void test_irp_in_flight_submitted_again_is_refused(void **state)
{
    struct seen s;
    PIRP irp = make_irp(&s, 0);
    assert_int_equal(IoCallDriver(&device, irp), STATUS_PENDING);
    assert_int_equal(IoCallDriver(&device, irp), STATUS_INVALID_PARAMETER);
    assert_true(IoCancelIrp(irp));
    assert_int_equal(s.calls, 1);
    IoFreeIrp(irp);
}

static void test_irp_reused_runs_again(void **state)
{
    struct seen s;
    PIRP irp = make_irp(&s, 1);
    IoCallDriver(&device, irp);
    IoReuseIrp(irp, STATUS_SUCCESS);
    IoGetNextIrpStackLocation(irp)->MajorFunction = IRP_MJ_INTERNAL_DEVICE_CONTROL;
    IoSetCompletionRoutine(irp, on_complete, &s, TRUE, TRUE, TRUE);
    assert_int_equal(IoCallDriver(&device, irp), STATUS_PENDING);
    serve_one();
    assert_int_equal(s.calls, 2);
    IoFreeIrp(irp);
}

static void test_irp_unknown_major_is_invalid_device_request(void **state)
{
    struct seen s;
    for (unsigned major = 0x10; major < 0x100; major += 0x20) {
        PIRP irp = make_irp(&s, 0);
        IoGetNextIrpStackLocation(irp)->MajorFunction = (UCHAR)major;
        assert_int_equal(IoCallDriver(&device, irp), STATUS_INVALID_DEVICE_REQUEST);
        assert_int_equal(s.calls, 1);
        IoFreeIrp(irp);
    }
}

static void test_irp_without_routine_ends_as_the_io_manager_does(void **state)
{
    IO_STATUS_BLOCK iosb = {{0}, 0};
    KEVENT event;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    PIRP irp = IoAllocateIrp(1, FALSE);
    irp->UserIosb = &iosb;
    irp->UserEvent = &event;
    IoGetNextIrpStackLocation(irp)->MajorFunction = IRP_MJ_INTERNAL_DEVICE_CONTROL;
    IoGetNextIrpStackLocation(irp)->MinorFunction = 1;
    IoCallDriver(&device, irp); // frees the IRP: the leak checker looks on
    assert_int_equal(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL), 0);
    assert_int_equal(iosb.Status, STATUS_UNSUCCESSFUL);
    assert_int_equal(iosb.Information, 7);
}

static void test_completion_routine_is_called_for_outcomes_asked_for_only(void **state)
{
    static const struct {
        BOOLEAN on_success, on_error, on_cancel;
        UCHAR minor;
        BOOLEAN cancel;
        LONG calls;
    } rows[] = {
        {TRUE, FALSE, FALSE, 0, FALSE, 1}, {TRUE, FALSE, FALSE, 1, FALSE, 0},
        {FALSE, TRUE, FALSE, 0, FALSE, 0}, {FALSE, TRUE, FALSE, 1, FALSE, 1},
        {FALSE, FALSE, TRUE, 0, FALSE, 0}, {FALSE, FALSE, TRUE, 0, TRUE, 1},
        {TRUE, FALSE, FALSE, 0, TRUE, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct seen s;
        PIRP irp = make_irp(&s, rows[i].minor);
        s.answer = STATUS_CONTINUE_COMPLETION;
        IoSetCompletionRoutine(irp, on_complete, &s, rows[i].on_success, rows[i].on_error,
                               rows[i].on_cancel);
        IoCallDriver(&device, irp);
        if (rows[i].cancel)
            IoCancelIrp(irp);
        else
            serve_one();
        assert_int_equal(s.calls, rows[i].calls);
    }
}

// Two drivers: the upper one's routine runs with its own device, above the lower one's.
static NTSTATUS upper_done(PDEVICE_OBJECT d, PIRP irp, PVOID context)
{
    *(PDEVICE_OBJECT *)context = d;
    if (irp->PendingReturned)
        IoMarkIrpPending(irp);
    return STATUS_CONTINUE_COMPLETION;
}

static PDEVICE_OBJECT upper_saw;

static NTSTATUS pass_down(PDEVICE_OBJECT d, PIRP irp)
{
    IoCopyCurrentIrpStackLocationToNext(irp);
    IoSetCompletionRoutine(irp, upper_done, &upper_saw, TRUE, TRUE, TRUE);
    return IoCallDriver(&device, irp);
}

static void test_irp_through_two_drivers_completes_upwards(void **state)
{
    DRIVER_OBJECT upper_driver = {.MajorFunction = {[IRP_MJ_INTERNAL_DEVICE_CONTROL] = pass_down}};
    DEVICE_OBJECT upper = {.DriverObject = &upper_driver, .StackSize = 2};
    struct seen s;
    memset(&s, 0, sizeof(s));
    s.answer = STATUS_MORE_PROCESSING_REQUIRED;
    PIRP irp = IoAllocateIrp(2, FALSE);
    IoGetNextIrpStackLocation(irp)->MajorFunction = IRP_MJ_INTERNAL_DEVICE_CONTROL;
    IoSetCompletionRoutine(irp, on_complete, &s, TRUE, TRUE, TRUE);
    assert_int_equal(IoCallDriver(&upper, irp), STATUS_PENDING);
    serve_one();
    assert_ptr_equal(upper_saw, &upper);
    assert_int_equal(s.calls, 1);
    assert_true(s.pending);
    IoFreeIrp(irp);
}

static void test_allocate_irp_with_bad_stack_size_is_null(void **state)
{
    assert_null(IoAllocateIrp(0, FALSE));
    assert_null(IoAllocateIrp(-1, FALSE));
    assert_null(IoAllocateIrp(101, FALSE));
}

// ---- cancelling ---------------------------------------------------------------------------------

static void test_cancel_without_routine_only_marks(void **state)
{
    PIRP irp = IoAllocateIrp(1, FALSE);
    assert_false(IoCancelIrp(irp));
    assert_true(irp->Cancel);
    IoFreeIrp(irp);
}

static void *cancel_thread(void *arg)
{
    IoCancelIrp(arg);
    return NULL;
}

static void *serve_thread(void *arg)
{
    serve_one();
    return NULL;
}

static void test_cancel_racing_completion_completes_once(void **state)
{
    int cancelled = 0;
    for (int i = 0; i < 500; i++) {
        struct seen s;
        pthread_t a, b;
        PIRP irp = make_irp(&s, 0);
        IoCallDriver(&device, irp);
        pthread_create(&a, NULL, cancel_thread, irp);
        pthread_create(&b, NULL, serve_thread, NULL);
        pthread_join(a, NULL);
        pthread_join(b, NULL);
        assert_int_equal(s.calls, 1);
        cancelled += s.status == STATUS_CANCELLED;
        IoFreeIrp(irp);
    }
    print_message("%d of 500 cancelled\n", cancelled);
    assert_int_equal(weft_wdm_irql_violations(), 0);
}

// ---- events, IRQL, pool -------------------------------------------------------------------------

static void test_synchronization_event_wakes_one_wait(void **state)
{
    KEVENT e;
    LARGE_INTEGER zero = {.QuadPart = 0}, soon = {.QuadPart = -10000}, past = {.QuadPart = 1};
    KeInitializeEvent(&e, SynchronizationEvent, TRUE);
    assert_int_equal(KeWaitForSingleObject(&e, Executive, KernelMode, FALSE, &zero), 0);
    assert_int_equal(KeWaitForSingleObject(&e, Executive, KernelMode, FALSE, &zero),
                     STATUS_TIMEOUT);
    assert_int_equal(KeWaitForSingleObject(&e, Executive, KernelMode, FALSE, &soon),
                     STATUS_TIMEOUT);
    assert_int_equal(KeWaitForSingleObject(&e, Executive, KernelMode, FALSE, &past),
                     STATUS_TIMEOUT);
    assert_int_equal(KeSetEvent(&e, 0, FALSE), 0);
    assert_int_equal(KeSetEvent(&e, 0, FALSE), 1);
    assert_int_equal(KeReadStateEvent(&e), 1);
    KeClearEvent(&e);
    assert_int_equal(KeReadStateEvent(&e), 0);
}

static KEVENT turn[2];

static void *take_turns(void *arg)
{
    for (int i = 0; i < 500; i++) {
        KeWaitForSingleObject(&turn[0], Executive, KernelMode, FALSE, NULL);
        KeSetEvent(&turn[1], 0, FALSE);
    }
    return NULL;
}

// Three threads sleep on one synchronization event; every set lets exactly one of them go on.
static void test_synchronization_event_loses_no_sleeper(void **state)
{
    pthread_t t[3];
    KeInitializeEvent(&turn[0], SynchronizationEvent, FALSE);
    KeInitializeEvent(&turn[1], SynchronizationEvent, FALSE);
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, take_turns, NULL);
    for (int i = 0; i < 1500; i++) {
        KeSetEvent(&turn[0], 0, FALSE);
        KeWaitForSingleObject(&turn[1], Executive, KernelMode, FALSE, NULL);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(KeReadStateEvent(&turn[0]), 0);
}

static void test_notification_event_stays_set(void **state)
{
    KEVENT e;
    KeInitializeEvent(&e, NotificationEvent, TRUE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(KeWaitForSingleObject(&e, Executive, KernelMode, FALSE, NULL), 0);
}

static void test_blocking_at_dispatch_is_a_violation(void **state)
{
    KEVENT e;
    KIRQL old;
    LARGE_INTEGER zero = {.QuadPart = 0};
    ULONG before = weft_wdm_irql_violations();
    KeInitializeEvent(&e, NotificationEvent, TRUE);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    assert_int_equal(old, PASSIVE_LEVEL);
    KeWaitForSingleObject(&e, Executive, KernelMode, FALSE, &zero);
    ExFreePool(ExAllocatePoolWithTag(NonPagedPool, 10, TAG));
    assert_int_equal(weft_wdm_irql_violations(), before);
    KeWaitForSingleObject(&e, Executive, KernelMode, FALSE, NULL);
    PAGED_CODE();
    PVOID p = ExAllocatePoolWithTag(PagedPool, 10, TAG);
    assert_int_equal(weft_wdm_irql_violations(), before + 3);
    KeLowerIrql(old);
    ExFreePoolWithTag(p, TAG);
    KeLowerIrql(DISPATCH_LEVEL); // to a higher level
    KeRaiseIrql(PASSIVE_LEVEL, &old);
    assert_int_equal(weft_wdm_irql_violations(), before + 5);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
}

static LONG locked_count;
static KSPIN_LOCK count_lock;

static void *count_up(void *arg)
{
    for (int i = 0; i < 5000; i++) {
        KIRQL irql;
        KeAcquireSpinLock(&count_lock, &irql);
        locked_count++;
        KeReleaseSpinLock(&count_lock, irql);
    }
    return NULL;
}

static void test_spin_lock_excludes_threads(void **state)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, count_up, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(locked_count, 20000);
}

// ---- MDLs ---------------------------------------------------------------------------------------

static void test_mdl_describes_pages_of_a_buffer(void **state)
{
    char *mem = aligned_alloc(PAGE_SIZE, 4 * PAGE_SIZE);
    memset(mem, 0, 4 * PAGE_SIZE);
    PMDL mdl = IoAllocateMdl(mem + 100, 2 * PAGE_SIZE, FALSE, FALSE, NULL);
    assert_non_null(mdl);
    assert_ptr_equal(mdl->StartVa, mem);
    assert_int_equal(mdl->ByteOffset, 100);
    assert_int_equal(mdl->Size, sizeof(MDL) + 3 * sizeof(PFN_NUMBER));
    MmBuildMdlForNonPagedPool(mdl);
    for (ULONG_PTR i = 0; i < 3; i++)
        assert_int_equal(MmGetMdlPfnArray(mdl)[i], ((ULONG_PTR)mem >> PAGE_SHIFT) + i);
    PMDL part = IoAllocateMdl(mem + PAGE_SIZE + 5, 10, FALSE, FALSE, NULL);
    IoBuildPartialMdl(mdl, part, mem + PAGE_SIZE + 5, 10);
    assert_int_equal(part->ByteCount, 10);
    assert_int_equal(MmGetMdlPfnArray(part)[0], ((ULONG_PTR)mem >> PAGE_SHIFT) + 1);
    assert_true(part->MdlFlags & MDL_PARTIAL);
    IoFreeMdl(part);
    IoFreeMdl(mdl);
    free(mem);
}

static void test_mdl_too_long_or_empty_is_null(void **state)
{
    char *base = (char *)0x10000000;
    assert_null(IoAllocateMdl(base, 0, FALSE, FALSE, NULL));
    assert_null(IoAllocateMdl(base, (ULONG)(MDL_MAX_PAGES * PAGE_SIZE + 1), FALSE, FALSE, NULL));
    assert_null(IoAllocateMdl((PVOID)(UINTPTR_MAX - 10), 100, FALSE, FALSE, NULL));
    PMDL mdl = IoAllocateMdl(base, (ULONG)(MDL_MAX_PAGES * PAGE_SIZE), FALSE, FALSE, NULL);
    assert_non_null(mdl);
    assert_true(mdl->Size > 0);
    IoFreeMdl(mdl);
}

static void test_mdl_chains_to_its_irp(void **state)
{
    char mem[64];
    PIRP irp = IoAllocateIrp(1, FALSE);
    PMDL a = IoAllocateMdl(mem, 16, FALSE, FALSE, irp);
    PMDL b = IoAllocateMdl(mem + 16, 16, TRUE, FALSE, irp);
    assert_ptr_equal(irp->MdlAddress, a);
    assert_ptr_equal(a->Next, b);
    IoFreeMdl(a);
    IoFreeMdl(b);
    IoFreeIrp(irp);
}

static void test_probe_of_unmapped_pages_does_not_lock(void **state)
{
    char *mem =
        mmap(NULL, 3 * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PMDL mdl = IoAllocateMdl(mem + 10, 2 * PAGE_SIZE, FALSE, FALSE, NULL);
    MmProbeAndLockPages(mdl, KernelMode, IoWriteAccess);
    assert_true(mdl->MdlFlags & MDL_PAGES_LOCKED);
    MmUnlockPages(mdl);
    assert_false(mdl->MdlFlags & MDL_PAGES_LOCKED);
    munmap(mem + 2 * PAGE_SIZE, PAGE_SIZE);
    MmProbeAndLockPages(mdl, KernelMode, IoWriteAccess);
    assert_false(mdl->MdlFlags & MDL_PAGES_LOCKED);
    munmap(mem, 2 * PAGE_SIZE);
    IoFreeMdl(mdl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_irp_completed_at_once_runs_routine_once, setup),
        cmocka_unit_test_setup(test_irp_pending_then_served_tells_pending, setup),
        cmocka_unit_test_setup(test_irp_in_flight_submitted_again_is_refused, setup),
        cmocka_unit_test_setup(test_irp_reused_runs_again, setup),
        cmocka_unit_test_setup(test_irp_unknown_major_is_invalid_device_request, setup),
        cmocka_unit_test_setup(test_irp_without_routine_ends_as_the_io_manager_does, setup),
        cmocka_unit_test_setup(test_completion_routine_is_called_for_outcomes_asked_for_only,
                               setup),
        cmocka_unit_test_setup(test_irp_through_two_drivers_completes_upwards, setup),
        cmocka_unit_test(test_allocate_irp_with_bad_stack_size_is_null),
        cmocka_unit_test_setup(test_cancel_without_routine_only_marks, setup),
        cmocka_unit_test_setup(test_cancel_racing_completion_completes_once, setup),
        cmocka_unit_test(test_synchronization_event_wakes_one_wait),
        cmocka_unit_test(test_synchronization_event_loses_no_sleeper),
        cmocka_unit_test(test_notification_event_stays_set),
        cmocka_unit_test(test_blocking_at_dispatch_is_a_violation),
        cmocka_unit_test(test_spin_lock_excludes_threads),
        cmocka_unit_test(test_mdl_describes_pages_of_a_buffer),
        cmocka_unit_test(test_mdl_too_long_or_empty_is_null),
        cmocka_unit_test(test_mdl_chains_to_its_irp),
        cmocka_unit_test(test_probe_of_unmapped_pages_does_not_lock),
    };
    return cmocka_run_group_tests_name("wdm", tests, NULL, NULL);
}
