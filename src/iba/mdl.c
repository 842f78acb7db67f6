// SPDX-License-Identifier: BSD-2-Clause
// MDLs over the process's own memory: a "physical" page is a virtual one.
#include "weft/wdm.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

SIZE_T MmSizeOfMdl(PVOID Base, SIZE_T Length)
{
    return sizeof(MDL) + BYTES_TO_PAGES(BYTE_OFFSET(Base) + Length) * sizeof(PFN_NUMBER);
}

VOID MmInitializeMdl(PMDL Mdl, PVOID Base, SIZE_T Length)
{
    memset(Mdl, 0, sizeof(*Mdl));
    Mdl->Size = (CSHORT)MmSizeOfMdl(Base, Length);
    Mdl->StartVa = PAGE_ALIGN(Base);
    Mdl->ByteOffset = BYTE_OFFSET(Base);
    Mdl->ByteCount = (ULONG)Length;
}

static void attach(PIRP irp, PMDL mdl, BOOLEAN secondary)
{
    PMDL *link = &irp->MdlAddress;
    while (secondary && *link)
        link = &(*link)->Next;
    *link = mdl;
}

PMDL IoAllocateMdl(PVOID VirtualAddress, ULONG Length, BOOLEAN SecondaryBuffer, BOOLEAN ChargeQuota,
                   PIRP Irp)
{
    ULONG pages = ADDRESS_AND_SIZE_TO_SPAN_PAGES(VirtualAddress, Length);
    if (!Length || pages > MDL_MAX_PAGES || (ULONG_PTR)VirtualAddress + Length < Length)
        return NULL;
    PMDL mdl = calloc(1, MmSizeOfMdl(VirtualAddress, Length));
    if (!mdl)
        return NULL;
    MmInitializeMdl(mdl, VirtualAddress, Length);
    if (Irp)
        attach(Irp, mdl, SecondaryBuffer);
    return mdl;
}

VOID IoFreeMdl(PMDL Mdl)
{
    free(Mdl);
}

static void fill_pages(PMDL mdl)
{
    PPFN_NUMBER pfn = MmGetMdlPfnArray(mdl);
    ULONG pages = ADDRESS_AND_SIZE_TO_SPAN_PAGES(MmGetMdlVirtualAddress(mdl), mdl->ByteCount);
    for (ULONG i = 0; i < pages; i++)
        pfn[i] = ((ULONG_PTR)mdl->StartVa >> PAGE_SHIFT) + i;
}

VOID MmBuildMdlForNonPagedPool(PMDL Mdl)
{
    fill_pages(Mdl);
    Mdl->MdlFlags |= MDL_SOURCE_IS_NONPAGED_POOL;
    Mdl->MappedSystemVa = MmGetMdlVirtualAddress(Mdl);
}

// Reads one byte of each page through the kernel, which answers instead of faulting. Nothing short
// of a write tells whether a page is writable; that shows when data arrives.
static int mapped(PMDL mdl)
{
    char *first = MmGetMdlVirtualAddress(mdl), *end = first + mdl->ByteCount;
    for (char *p = first; p < end; p = (char *)PAGE_ALIGN(p) + PAGE_SIZE) {
        char byte;
        struct iovec here = {&byte, 1}, there = {p, 1};
        if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1)
            return 0;
    }
    return 1;
}

VOID MmProbeAndLockPages(PMDL Mdl, KPROCESSOR_MODE AccessMode, LOCK_OPERATION Op)
{
    if (!mapped(Mdl))
        return;
    fill_pages(Mdl);
    Mdl->MdlFlags |= MDL_PAGES_LOCKED;
}

VOID MmUnlockPages(PMDL Mdl)
{
    Mdl->MdlFlags &= (CSHORT)~MDL_PAGES_LOCKED;
}

VOID IoBuildPartialMdl(PMDL Source, PMDL Target, PVOID VirtualAddress, ULONG Length)
{
    ULONG_PTR skip = (ULONG_PTR)PAGE_ALIGN(VirtualAddress) - (ULONG_PTR)Source->StartVa;
    ULONG left = Source->ByteCount -
                 (ULONG)((ULONG_PTR)VirtualAddress - (ULONG_PTR)MmGetMdlVirtualAddress(Source));
    PMDL next = Target->Next;
    MmInitializeMdl(Target, VirtualAddress, Length ? Length : left);
    Target->Next = next;
    Target->MdlFlags = (CSHORT)(MDL_PARTIAL | (Source->MdlFlags &
                                               (MDL_PAGES_LOCKED | MDL_SOURCE_IS_NONPAGED_POOL)));
    ULONG pages = ADDRESS_AND_SIZE_TO_SPAN_PAGES(VirtualAddress, Target->ByteCount);
    memcpy(MmGetMdlPfnArray(Target), MmGetMdlPfnArray(Source) + (skip >> PAGE_SHIFT),
           pages * sizeof(PFN_NUMBER));
}

PHYSICAL_ADDRESS MmGetPhysicalAddress(PVOID BaseAddress)
{
    PHYSICAL_ADDRESS pa;
    pa.QuadPart = (LONGLONG)(ULONG_PTR)BaseAddress;
    return pa;
}
