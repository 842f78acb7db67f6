// SPDX-License-Identifier: BSD-2-Clause
// Prints the number of each event of port 1 as it comes, until it has seen two: for apps/iba.sh,
// which takes the interface down and up.
#include <weft/iba_cb.h>

#include <stdio.h>
#include <stdlib.h>

static IB_VERBS_INTERFACE_STANDARD verbs;
static KEVENT event;
static ULONG_PTR code;

static VOID done(PVOID context, NTSTATUS status, ULONG_PTR info)
{
    if (!NT_SUCCESS(status))
        exit(1);
    *(ULONG_PTR *)context = info;
    KeSetEvent(&event, 0, FALSE);
}

static ULONG_PTR wait(void)
{
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    return code;
}

int main(void)
{
    WEFT_IBA_WAIT w;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    if (weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 1, (PINTERFACE)&verbs))
        return 1;
    weft_cb_open_ca(&verbs, NULL, NULL, done, &code);
    IB_CA *ca = (IB_CA *)wait();
    printf("waiting\n");
    fflush(stdout);
    for (int seen = 0; seen < 2;) {
        weft_cb_wait_ca_port_event(&verbs, ca, 1, &w, done, &code);
        ULONG_PTR e = wait();
        printf("%s\n", e == IbAePortDown ? "down" : e == IbAePortActive ? "active" : "other");
        fflush(stdout);
        seen += e == IbAePortDown || e == IbAePortActive;
    }
    weft_cb_close_ca(&verbs, ca, done, &code);
    wait();
    verbs.InterfaceDereference(verbs.Context);
    return 0;
}
