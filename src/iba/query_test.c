// SPDX-License-Identifier: BSD-2-Clause
// QueryCa and QueryPort into buffers of every length from nothing to the whole and beyond.
#include "iba/rig.h"

#include <stdlib.h>
#include <string.h>

#define GUARD 0xa5

static struct rig rig;
static struct rig_set set;

static int setup(void **state)
{
    rig_open(&rig);
    rig_make(&rig, &set);
    return 0;
}

static int teardown(void **state)
{
    rig.mode = RIG_PASSIVE;
    rig_unmake(&rig, &set);
    rig_close(&rig);
    return 0;
}

static NTSTATUS query(bool ca, void *buf, SIZE_T size, ULONG_PTR *info)
{
    struct rig_call c;
    PIRP irp = rig_begin(&rig, &c);
    NTSTATUS s = ca ? rig.v->QueryCa(rig.v->Context, size, buf, irp)
                    : rig.v->QueryPort(rig.v->Context, 1, size, buf, irp);
    // MORE_ENTRIES is a success that a deferred call gives at the end; warnings come as PENDING
    // too.
    if (rig.mode == RIG_DISPATCH)
        KeLowerIrql(rig.irql);
    s = rig_end(&c, s);
    *info = c.info;
    return s;
}

static ULONG size_of(bool ca)
{
    ULONG size;
    ULONG_PTR info;
    query(ca, &size, sizeof(size), &info);
    assert_int_equal(info, 4);
    return size;
}

static void check_every_length(bool ca, NTSTATUS partial)
{
    ULONG full = size_of(ca);
    UCHAR *whole = calloc(1, full), *buf = malloc(full + 16);
    ULONG_PTR info;
    assert_int_equal(query(ca, whole, full, &info), STATUS_SUCCESS);
    assert_int_equal(info, full);
    assert_int_equal(*(ULONG *)whole, full);
    for (ULONG n = 0; n <= full + 8; n++) {
        memset(buf, GUARD, full + 16);
        NTSTATUS s = query(ca, buf, n, &info);
        NTSTATUS expect = n < 4 ? STATUS_BUFFER_TOO_SMALL : n < full ? partial : STATUS_SUCCESS;
        ULONG written = n < 4 ? 0 : n < full ? n : full;
        assert_int_equal(s, expect);
        assert_int_equal(info, written);
        assert_memory_equal(buf, whole, written);
        for (ULONG i = written; i < full + 16; i++)
            assert_int_equal(buf[i], GUARD);
    }
    free(whole);
    free(buf);
}

static void test_query_ca_of_every_length(void **state)
{
    for (int mode = 0; mode < RIG_MODES; mode++) {
        rig.mode = (enum rig_mode)mode;
        check_every_length(true, STATUS_BUFFER_OVERFLOW);
    }
}

static void test_query_port_of_every_length(void **state)
{
    for (int mode = 0; mode < RIG_MODES; mode++) {
        rig.mode = (enum rig_mode)mode;
        check_every_length(false, STATUS_MORE_ENTRIES);
    }
    assert_true(NT_SUCCESS(STATUS_MORE_ENTRIES));
    assert_false(NT_SUCCESS(STATUS_BUFFER_OVERFLOW));
}

static void test_query_ca_layout_follows_offsets(void **state)
{
    ULONG full = size_of(true), port_full = size_of(false);
    IB_CA_ATTR *ca = calloc(1, full);
    IB_PORT_ATTR *alone = calloc(1, port_full);
    struct ibv_device_attr dev;
    struct wf_gid_slot slot;
    ULONG_PTR info;
    query(true, ca, full, &info);
    query(false, alone, port_full, &info);
    wf_hca_query_device(rig.hca, &dev);
    assert_int_equal(ca->PortAttrOffset, sizeof(*ca));
    assert_int_equal(ca->NumPorts, 1);
    assert_int_equal(full, sizeof(*ca) + port_full);
    IB_PORT_ATTR *port = (IB_PORT_ATTR *)((char *)ca + ca->PortAttrOffset);
    assert_memory_equal(port, alone, port_full);
    assert_int_equal(port->Size, port_full);
    assert_int_equal(port->NextPortAttrOffset, 0);
    assert_int_equal(port->PortNum, 1);
    assert_int_equal(port->LinkState, IB_LINK_ACTIVE);
    assert_int_equal(port->Mtu, IB_MTU_1024);
    assert_int_equal(port->GidTblOffset % 8, 0);
    assert_true(port->PkeyTblOffset + port->NumPkeys * 2u <= port->Size);
    for (ULONG i = 0; i < port->NumGids; i++) {
        wf_hca_query_gid(rig.hca, 1, i, &slot);
        assert_memory_equal((char *)port + port->GidTblOffset + 16 * i, &slot.gid, 16);
    }
    assert_int_equal(*(USHORT *)((char *)port + port->PkeyTblOffset), 0xffff);
    assert_int_equal(ca->CaGuid, dev.node_guid);
    assert_int_equal(ca->CaGuid, rig.v->NodeGuid);
    assert_int_equal(ca->PageSizeSupport, dev.page_size_cap >> 1);
    assert_int_equal(ca->MaxQp, dev.max_qp);
    assert_int_equal(ca->MaxReadAtomic, 255);
    assert_int_equal((UINT32)ca->FwVersion, rig.v->FwVersion);
    assert_true(ca->CapabilitiesFlags & IB_CA_CAP_N_NOTIFY_CQ);
    free(ca);
    free(alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_query_ca_of_every_length, setup, teardown),
        cmocka_unit_test_setup_teardown(test_query_port_of_every_length, setup, teardown),
        cmocka_unit_test_setup_teardown(test_query_ca_layout_follows_offsets, setup, teardown),
    };
    return cmocka_run_group_tests_name("iba_query", tests, NULL, NULL);
}
