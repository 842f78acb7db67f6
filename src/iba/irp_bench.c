// SPDX-License-Identifier: BSD-2-Clause
// The experiment of the RFC's discussion: one verb, QueryQp, with IRPs and with callbacks.
//
//     iba_irp_bench [calls [once]]
//
// Prints nanoseconds and user-space instructions for each call ("-" where the kernel does not
// count them), done at once and done by the engine's thread. docs/irp-or-callback.md discusses
// them.
#include "iba/native.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "iba/iba.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 15
#define BATCH  64

static struct wf_hca *hca;
static IB_VERBS_INTERFACE_STANDARD verbs;
static IB_QP *qp;
static IB_QP_ATTR attr;
static LONG volatile completions;
static KEVENT all_done;
static LONG expected;

static void completed(void)
{
    if (InterlockedIncrement(&completions) == expected)
        KeSetEvent(&all_done, IO_NO_INCREMENT, FALSE);
}

// ---- the ways -----------------------------------------------------------------------------------

static PIRP irps[BATCH];

static NTSTATUS irp_done(PDEVICE_OBJECT device, PIRP irp, PVOID context)
{
    if (!NT_SUCCESS(irp->IoStatus.Status))
        abort();
    completed();
    return STATUS_MORE_PROCESSING_REQUIRED;
}

static NTSTATUS irp_done_free(PDEVICE_OBJECT device, PIRP irp, PVOID context)
{
    IoFreeIrp(irp);
    completed();
    return STATUS_MORE_PROCESSING_REQUIRED;
}

static VOID callback_done(PVOID context, NTSTATUS status, ULONG_PTR info)
{
    if (!NT_SUCCESS(status))
        abort();
    completed();
}

static void engine_only(int i)
{
    wf_iba_read_qp(wf_iba_qp_of(qp), &attr);
    completed();
}

static void callback_native(int i)
{
    wf_iba_native_query_qp(qp, &attr, callback_done, NULL);
}

static void irp_reused(int i)
{
    IoReuseIrp(irps[i], STATUS_SUCCESS);
    IoSetCompletionRoutine(irps[i], irp_done, NULL, TRUE, TRUE, TRUE);
    verbs.QueryQp(qp, &attr, NULL, irps[i]);
}

static void irp_fresh(int i)
{
    PIRP irp = IoAllocateIrp(1, FALSE);
    IoSetCompletionRoutine(irp, irp_done_free, NULL, TRUE, TRUE, TRUE);
    verbs.QueryQp(qp, &attr, NULL, irp);
}

static void callback_over_irp(int i)
{
    weft_cb_query_qp(&verbs, qp, &attr, callback_done, NULL);
}

static const struct {
    const char *name;
    void (*call)(int i);
} ways[] = {
    {"engine alone", engine_only}, // nothing to defer there
    {"callback, native", callback_native},
    {"IRP, reused", irp_reused},
    {"IRP, allocated for each call", irp_fresh},
    {"callback wrapper over IRP", callback_over_irp},
};

// ---- measuring ----------------------------------------------------------------------------------

static int open_counter(void)
{
    struct perf_event_attr pe = {.type = PERF_TYPE_HARDWARE,
                                 .size = sizeof(pe),
                                 .config = PERF_COUNT_HW_INSTRUCTIONS,
                                 .exclude_kernel = 1,
                                 .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &pe, 0, -1, -1, 0);
}

static uint64_t count_of(int fd)
{
    uint64_t n = 0;
    return fd >= 0 && read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

struct cost {
    double ns, instructions;
};

// Calls in batches that complete before the next begins: in a batch of one each call waits.
static struct cost run(void (*call)(int i), int calls, int batch, int counter)
{
    uint64_t insns = count_of(counter), start = wf_clock_ns();
    for (int n = 0; n < calls; n += batch) {
        completions = 0;
        expected = batch;
        KeClearEvent(&all_done);
        for (int i = 0; i < batch; i++)
            call(i);
        KeWaitForSingleObject(&all_done, Executive, KernelMode, FALSE, NULL);
    }
    struct cost c = {(double)(wf_clock_ns() - start) / calls,
                     (double)(count_of(counter) - insns) / calls};
    return c;
}

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void keep_least(struct cost *best, struct cost c)
{
    best->ns = c.ns < best->ns ? c.ns : best->ns;
    best->instructions = c.instructions < best->instructions ? c.instructions : best->instructions;
}

// The ways take turns, so that what else the machine does meets all of them.
static void report(const char *title, int calls, int batch, bool deferred, int counter)
{
    struct cost best[WAYS];
    for (int r = 0; r < ROUNDS; r++) {
        for (size_t i = deferred ? 1 : 0; i < WAYS; i++) {
            struct cost c = run(ways[i].call, calls, batch, counter);
            if (r)
                keep_least(&best[i], c);
            else
                best[i] = c;
        }
    }
    printf("%s\n", title);
    for (size_t i = deferred ? 1 : 0; i < WAYS; i++) {
        printf("  %-30s %9.1f ns", ways[i].name, best[i].ns);
        // The counter is of this thread, so it tells what the caller spends.
        if (counter >= 0)
            printf(" %9.1f instructions\n", best[i].instructions);
        else
            printf("         - instructions\n");
    }
}

// ---- setting up ---------------------------------------------------------------------------------

static void started(PVOID context, NTSTATUS status, ULONG_PTR info)
{
    if (!NT_SUCCESS(status))
        abort();
    *(ULONG_PTR *)context = info;
}

static void open_all(void)
{
    struct wf_gid_table gids = {.port_active = 1, .node_guid = 1};
    struct wf_hca_parts parts = {.slot = 1, .gids = &gids};
    ULONG_PTR ca, pd, cq, q;
    if (wf_loop_link_create(&parts.loop) || wf_hca_create(&parts, &hca) || wf_thread_start(hca))
        abort();
    wf_iba_device_inject(hca);
    weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 1, (PINTERFACE)&verbs);
    weft_cb_open_ca(&verbs, NULL, NULL, started, &ca);
    weft_cb_create_pd(&verbs, (IB_CA *)ca, started, &pd);
    weft_cb_create_cq(&verbs, (IB_CA *)ca, 16, NULL, NULL, NULL, started, &cq);
    IB_QP_CREATE c = {.SqDepth = 1, .RqDepth = 1};
    c.pSendCq = c.pRecvCq = (IB_CQ *)cq;
    weft_cb_create_qp(&verbs, (IB_PD *)pd, &c, NULL, NULL, started, &q);
    qp = (IB_QP *)q;
    for (int i = 0; i < BATCH; i++)
        irps[i] = IoAllocateIrp(1, FALSE);
}

static void close_all(void)
{
    ULONG_PTR none;
    IB_CQ *cq = qp->pSendCq;
    IB_PD *pd = qp->pPd;
    IB_CA *ca = pd->pCa;
    for (int i = 0; i < BATCH; i++)
        IoFreeIrp(irps[i]);
    weft_cb_destroy_qp(&verbs, qp, started, &none);
    weft_cb_destroy_cq(&verbs, cq, started, &none);
    weft_cb_destroy_pd(&verbs, pd, started, &none);
    weft_cb_close_ca(&verbs, ca, started, &none);
    verbs.InterfaceDereference(verbs.Context);
    wf_iba_device_inject(NULL);
    wf_thread_stop(hca);
    wf_hca_destroy(hca);
}

static void report_deferred(int calls, int counter)
{
    weft_iba_set_policy(WEFT_IBA_ALWAYS_PEND);
    report("done by the engine's thread, 64 outstanding", calls / 4 / BATCH * BATCH + BATCH, BATCH,
           true, counter);
    report("done by the engine's thread, each waited for", calls / 20 + 1, 1, true, counter);
    weft_iba_set_policy(WEFT_IBA_BY_IRQL);
}

int main(int argc, char **argv)
{
    int calls = argc > 1 ? atoi(argv[1]) : 100000;
    calls = calls < BATCH ? BATCH : calls / BATCH * BATCH;
    int counter = open_counter();
    KeInitializeEvent(&all_done, NotificationEvent, FALSE);
    open_all();
    printf("bytes: IRP with one location %zu, callback wrapper's call %zu\n",
           (size_t)IoSizeOfIrp(1), sizeof(WEFT_IBA_WAIT));
    report("done at once", calls, BATCH, false, counter);
    if (argc <= 2)
        report_deferred(calls, counter);
    close_all();
    return 0;
}
