// SPDX-License-Identifier: BSD-2-Clause
// The one adapter of the process, its lock, and who runs where.
#include "iba/iba.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct wf_iba_device wf_iba_device = {.ah_lock = PTHREAD_RWLOCK_INITIALIZER};

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER; // taken below DISPATCH_LEVEL only
static _Thread_local bool engine_thread;
static atomic_int policy, mtu_limit;

static const struct wf_iba_ifc interfaces[2][2] = {{{1, false}, {1, true}},
                                                   {{2, false}, {2, true}}};

const struct wf_iba_ifc *wf_iba_ifc_of(const void *context)
{
    for (int v = 0; v < 2; v++)
        for (int l = 0; l < 2; l++)
            if (context == &interfaces[v][l])
                return &interfaces[v][l];
    return NULL;
}

const struct wf_iba_ifc *wf_iba_ifc(USHORT version, bool literal)
{
    return version == 1 || version == 2 ? &interfaces[version - 1][literal] : NULL;
}

KIRQL wf_iba_lock(void)
{
    KIRQL irql;
    KeAcquireSpinLock(&wf_iba_device.lock, &irql);
    return irql;
}

void wf_iba_unlock(KIRQL irql)
{
    KeReleaseSpinLock(&wf_iba_device.lock, irql);
}

static void read_environment(void)
{
    static const IB_MTU of[] = {IB_MTU_256, IB_MTU_512, IB_MTU_1024, IB_MTU_2048, IB_MTU_4096};
    const char *p = getenv("WEFT_IBA_POLICY"), *m = getenv("WEFT_IBA_MTU");
    if (p && strcmp(p, "pend") == 0)
        atomic_store(&policy, WEFT_IBA_ALWAYS_PEND);
    for (int i = 0; m && i < 5; i++)
        if (atoi(m) == 256 << i)
            atomic_store(&mtu_limit, (int)of[i]);
}

static void init_device(struct wf_iba_device *d, struct wf_hca *hca)
{
    struct ibv_device_attr attr;
    d->hca = hca;
    wf_hca_query_device(hca, &attr);
    d->system_image_guid = attr.sys_image_guid;
    InitializeListHead(&d->zombies);
    d->retry = (struct wf_hca_timer){.deadline = WF_NEVER};
    read_environment();
}

static NTSTATUS start_device(struct wf_iba_device *d)
{
    struct wf_hca *hca;
    int rc = wf_hca_get(&hca);
    if (rc) {
        wf_explain(WF_R_IBA_NOT_READY, "wf_hca_get: %s", strerror(-rc));
        return STATUS_DEVICE_NOT_READY;
    }
    init_device(d, hca);
    return STATUS_SUCCESS;
}

void wf_iba_device_inject(struct wf_hca *hca)
{
    wf_iba_device.injected = hca != NULL;
    if (hca)
        init_device(&wf_iba_device, hca);
    else
        wf_iba_device.hca = NULL;
}

NTSTATUS wf_iba_device_get(void)
{
    struct wf_iba_device *d = &wf_iba_device;
    NTSTATUS status = STATUS_SUCCESS;
    weft_wdm_may_block("starting the adapter");
    pthread_mutex_lock(&start_lock);
    if (!d->hca)
        status = start_device(d);
    if (NT_SUCCESS(status))
        InterlockedIncrement(&d->refs);
    pthread_mutex_unlock(&start_lock);
    return status;
}

// The engine cannot be left from its own thread, nor at DISPATCH_LEVEL; then it stays, idle, for
// the next client.
void wf_iba_device_put(void)
{
    struct wf_iba_device *d = &wf_iba_device;
    if (InterlockedDecrement(&d->refs) > 0 || engine_thread || KeGetCurrentIrql() >= DISPATCH_LEVEL)
        return;
    pthread_mutex_lock(&start_lock);
    if (d->hca && !d->injected && InterlockedExchangeAdd(&d->refs, 0) == 0) {
        wf_hca_put(d->hca);
        d->hca = NULL;
    }
    pthread_mutex_unlock(&start_lock);
}

bool wf_iba_may_run_here(void)
{
    if (KeGetCurrentIrql() >= DISPATCH_LEVEL)
        return false;
    return engine_thread || atomic_load(&policy) == WEFT_IBA_BY_IRQL;
}

void wf_iba_enter_engine_thread(void)
{
    engine_thread = true;
}

void wf_iba_leave_engine_thread(void)
{
    engine_thread = false;
}

bool wf_iba_in_engine_thread(void)
{
    return engine_thread;
}

VOID weft_iba_set_policy(WEFT_IBA_POLICY Policy)
{
    atomic_store(&policy, Policy);
}

VOID weft_iba_set_path_mtu(IB_MTU Mtu)
{
    atomic_store(&mtu_limit, (int)Mtu);
}

IB_MTU wf_iba_path_mtu(IB_MTU active)
{
    int limit = atomic_load(&mtu_limit);
    return limit && limit < (int)active ? (IB_MTU)limit : active;
}
