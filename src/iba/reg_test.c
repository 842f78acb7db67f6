// SPDX-License-Identifier: BSD-2-Clause
// Registration from MDL lists and scatter/gather lists: which shapes are taken, what comes back.
#include "iba/rig.h"

#include <stdlib.h>
#include <string.h>

static struct rig rig;
static struct rig_set set;
static char *mem; // eight pages

static int setup(void **state)
{
    rig_open(&rig);
    rig_make(&rig, &set);
    mem = aligned_alloc(PAGE_SIZE, 8 * PAGE_SIZE);
    memset(mem, 0, 8 * PAGE_SIZE);
    return 0;
}

static int teardown(void **state)
{
    rig_unmake(&rig, &set);
    rig_close(&rig);
    free(mem);
    return 0;
}

// ---- MDL lists ----------------------------------------------------------------------------------

struct piece {
    ULONG offset, length; // in `mem`; length 0 ends
};

static PMDL make_list(const struct piece *p)
{
    PMDL first = NULL, *link = &first;
    for (; p->length; p++) {
        *link = IoAllocateMdl(mem + p->offset, p->length, FALSE, FALSE, NULL);
        MmBuildMdlForNonPagedPool(*link);
        link = &(*link)->Next;
    }
    return first;
}

static void free_list(PMDL list)
{
    while (list) {
        PMDL next = list->Next;
        IoFreeMdl(list);
        list = next;
    }
}

static NTSTATUS reg(PMDL list, IB_MR **mr)
{
    struct rig_call c;
    PIRP irp = rig_begin(&rig, &c);
    NTSTATUS s = rig_done(&rig, &c, rig.v->RegMdl(set.pd, list, IB_AC_LOCAL_WRITE, irp));
    *mr = (IB_MR *)c.info;
    return s;
}

static void test_mdl_lists_of_good_shape_register(void **state)
{
    static const struct piece good[][4] = {
        {{0, 1}},
        {{100, 50}},
        {{0, 8 * PAGE_SIZE}},
        {{100, PAGE_SIZE - 100}, {PAGE_SIZE, 10}},
        {{0, PAGE_SIZE}, {PAGE_SIZE, PAGE_SIZE}, {2 * PAGE_SIZE, PAGE_SIZE}},
        {{4000, 96 + PAGE_SIZE}, {2 * PAGE_SIZE, 2 * PAGE_SIZE}, {4 * PAGE_SIZE, 4095}},
    };
    for (int mode = 0; mode < RIG_MODES; mode++) {
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
            IB_MR *mr;
            struct rig_call c;
            ULONG len = 0;
            rig.mode = (enum rig_mode)mode;
            for (const struct piece *p = good[i]; p->length; p++)
                len += p->length;
            PMDL list = make_list(good[i]);
            assert_int_equal(reg(list, &mr), STATUS_SUCCESS);
            assert_ptr_equal(mr->pPd, set.pd);
            assert_ptr_equal(mr->pMdlList, list);
            assert_ptr_equal(mr->pLocalStart, mem + good[i][0].offset);
            assert_ptr_equal(mr->pLocalEnd, mem + good[i][0].offset + len);
            assert_ptr_equal(mr->pRemoteStart, mr->pLocalStart);
            assert_ptr_equal(mr->pRemoteEnd, mr->pLocalEnd);
            assert_int_equal(mr->AccessMask, IB_AC_LOCAL_WRITE);
            assert_true(mr->LKey);
            PIRP irp = rig_begin(&rig, &c);
            rig_ok(&rig, &c, rig.v->DeregMr(mr, irp));
            assert_int_equal(c.info, (ULONG_PTR)list); // the list comes back
            free_list(list);
        }
    }
}

static void test_mdl_lists_of_bad_shape_are_refused(void **state)
{
    static const struct piece bad[][4] = {
        {{0, 100}, {100, 100}},                                // begins inside a page
        {{0, 100}, {PAGE_SIZE, 100}},                          // ends inside a page, a gap
        {{0, PAGE_SIZE}, {2 * PAGE_SIZE, PAGE_SIZE}},          // a gap
        {{PAGE_SIZE, PAGE_SIZE}, {0, PAGE_SIZE}},              // backwards
        {{0, PAGE_SIZE}, {0, PAGE_SIZE}},                      // twice
        {{0, PAGE_SIZE}, {PAGE_SIZE, 5}, {PAGE_SIZE + 5, 10}}, // partial in the middle
    };
    IB_MR *mr;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        PMDL list = make_list(bad[i]);
        assert_int_equal(reg(list, &mr), STATUS_INVALID_PARAMETER);
        assert_null(mr);
        free_list(list);
    }
}

static void test_mdl_not_locked_not_filled_or_damaged_is_refused(void **state)
{
    IB_MR *mr;
    PMDL mdl = IoAllocateMdl(mem + 8, 2 * PAGE_SIZE, FALSE, FALSE, NULL);
    assert_int_equal(reg(mdl, &mr), STATUS_INVALID_PARAMETER); // not locked
    mdl->MdlFlags |= MDL_PAGES_LOCKED;
    assert_int_equal(reg(mdl, &mr), STATUS_INVALID_PARAMETER); // page numbers are not filled
    MmBuildMdlForNonPagedPool(mdl);
    MmGetMdlPfnArray(mdl)[1]++;
    assert_int_equal(reg(mdl, &mr), STATUS_INVALID_PARAMETER);
    MmGetMdlPfnArray(mdl)[1]--;
    mdl->ByteCount = 0;
    assert_int_equal(reg(mdl, &mr), STATUS_INVALID_PARAMETER);
    mdl->ByteCount = 100 * PAGE_SIZE; // longer than its page numbers
    assert_int_equal(reg(mdl, &mr), STATUS_INVALID_PARAMETER);
    mdl->ByteCount = 2 * PAGE_SIZE;
    mdl->ByteOffset = PAGE_SIZE;
    assert_int_equal(reg(mdl, &mr), STATUS_INVALID_PARAMETER);
    mdl->ByteOffset = 8;
    mdl->StartVa = mem + 1;
    assert_int_equal(reg(mdl, &mr), STATUS_INVALID_PARAMETER);
    mdl->StartVa = mem;
    assert_int_equal(reg(mdl, &mr), STATUS_SUCCESS);
    rig_dereg(&rig, mr);
}

// ---- scatter/gather lists -----------------------------------------------------------------------

static NTSTATUS reg_sg(const struct piece *p, IB_MR **mr)
{
    struct rig_call c;
    SCATTER_GATHER_LIST *sg = calloc(1, sizeof(*sg) + 4 * sizeof(sg->Elements[0]));
    for (; p->length; p++) {
        sg->Elements[sg->NumberOfElements].Address = MmGetPhysicalAddress(mem + p->offset);
        sg->Elements[sg->NumberOfElements++].Length = p->length;
    }
    PIRP irp = rig_begin(&rig, &c);
    NTSTATUS s = rig_done(&rig, &c, rig.v->RegScatterGather(set.pd, sg, IB_AC_LOCAL_WRITE, irp));
    *mr = (IB_MR *)c.info;
    free(sg);
    return s;
}

static void test_sg_lists_of_good_shape_start_at_address_0(void **state)
{
    static const struct piece good[][5] = {
        {{0, 1}},
        {{100, 50}},
        {{100, PAGE_SIZE - 100}, {PAGE_SIZE, 10}},
        {{5, PAGE_SIZE - 5}, {PAGE_SIZE, 2 * PAGE_SIZE}, {3 * PAGE_SIZE, 4095}},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        IB_MR *mr;
        struct rig_call c;
        ULONG len = 0;
        for (const struct piece *p = good[i]; p->length; p++)
            len += p->length;
        assert_int_equal(reg_sg(good[i], &mr), STATUS_SUCCESS);
        assert_int_equal(mr->IoVa.QuadPart, 0);
        assert_ptr_equal(mr->pLocalStart, NULL);
        assert_int_equal((ULONG_PTR)mr->pLocalEnd, len);
        PIRP irp = rig_begin(&rig, &c);
        rig_ok(&rig, &c, rig.v->DeregMr(mr, irp));
        assert_int_equal(c.info, 0);
    }
}

static void test_sg_lists_of_bad_shape_are_refused(void **state)
{
    static const struct {
        struct piece p[5];
        NTSTATUS status;
    } bad[] = {
        {{{0, 0}}, STATUS_INVALID_PARAMETER},                     // empty
        {{{0, 100}, {PAGE_SIZE, 100}}, STATUS_INVALID_PARAMETER}, // first ends inside a page
        {{{0, PAGE_SIZE}, {PAGE_SIZE + 8, 8}}, STATUS_INVALID_PARAMETER}, // last begins inside
        {{{0, PAGE_SIZE}, {PAGE_SIZE, 100}, {2 * PAGE_SIZE, 8}}, STATUS_INVALID_PARAMETER},
    };
    IB_MR *mr;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(reg_sg(bad[i].p, &mr), bad[i].status);
        assert_null(mr);
    }
}

static void test_sg_element_that_wraps_around_is_refused(void **state)
{
    struct rig_call c;
    SCATTER_GATHER_LIST *sg = calloc(1, sizeof(*sg) + sizeof(sg->Elements[0]));
    sg->NumberOfElements = 1;
    sg->Elements[0].Address.QuadPart = -8;
    sg->Elements[0].Length = 16;
    PIRP irp = rig_begin(&rig, &c);
    assert_int_equal(rig_done(&rig, &c, rig.v->RegScatterGather(set.pd, sg, 0, irp)),
                     STATUS_INVALID_PARAMETER);
    sg->Elements[0].Address = MmGetPhysicalAddress(mem);
    sg->Elements[0].Length = 0;
    irp = rig_begin(&rig, &c);
    assert_int_equal(rig_done(&rig, &c, rig.v->RegScatterGather(set.pd, sg, 0, irp)),
                     STATUS_INVALID_PARAMETER);
    free(sg);
}

// ---- the region of all memory, the literal READ bit ---------------------------------------------

static void test_dma_region_covers_all_memory(void **state)
{
    struct rig_call c;
    PIRP irp = rig_begin(&rig, &c);
    IB_MR *mr = (IB_MR *)rig_ok(&rig, &c, rig.v->GetDmaMr(set.pd, IB_AC_LOCAL_WRITE, irp));
    assert_null(mr->pLocalStart);
    assert_true(mr->pLocalEnd > (UINT8 *)mem);
    irp = rig_begin(&rig, &c);
    rig_ok(&rig, &c, rig.v->DeregMr(mr, irp));
    assert_int_equal(c.info, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_mdl_lists_of_good_shape_register, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mdl_lists_of_bad_shape_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mdl_not_locked_not_filled_or_damaged_is_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_sg_lists_of_good_shape_start_at_address_0, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_sg_lists_of_bad_shape_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sg_element_that_wraps_around_is_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_dma_region_covers_all_memory, setup, teardown),
    };
    return cmocka_run_group_tests_name("iba_reg", tests, NULL, NULL);
}
