// SPDX-License-Identifier: BSD-2-Clause
// The GID table follows the host's addresses.
#include "link/fabric_impl.h"
#include "testing.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const union ibv_gid no_gid;

static int find_gid(struct wf_fabric *f, const char *addr, struct wf_gid_slot *out)
{
    struct wf_gid_table t;
    union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};
    if (inet_pton(AF_INET, addr, gid.raw + 12) != 1)
        inet_pton(AF_INET6, addr, gid.raw);
    wf_fabric_gids(f, &t);
    for (int i = 0; i < WF_GIDS; i++) {
        if (memcmp(t.gids[i].gid.raw, gid.raw, 16) == 0) {
            if (out)
                *out = t.gids[i];
            return i;
        }
    }
    return -1;
}

static int wait_gid(struct wf_fabric *f, const char *addr, bool there, int ms)
{
    uint64_t end = test_now_ms() + (uint64_t)ms;
    int i;
    while (((i = find_gid(f, addr, NULL)) >= 0) != there)
        if (test_now_ms() > end)
            fail_msg("%s did not %s", addr, there ? "come" : "go");
    return i;
}

static struct wf_fabric *join_with_veth(void)
{
    struct wf_fabric *f;
    wait_daemon_gone(3000);
    run("ip link add wa type veth peer name wb");
    run("ip addr add 10.1.2.3/24 dev wa");
    run("ip link set wa up mtu 4300 && ip link set wb up");
    run("ip -6 addr add fd01::5/64 dev wa nodad");
    assert_int_equal(wf_fabric_join(&f), 0);
    return f;
}

static void leave_with_veth(struct wf_fabric *f)
{
    wf_fabric_leave(f);
    run("ip link del wa");
}

static void test_gids_ordered_link_local_then_ipv4_then_ipv6(void **state)
{
    struct wf_fabric *f = join_with_veth();
    struct wf_gid_table t;
    struct wf_gid_slot g;
    wf_fabric_gids(f, &t);
    assert_int_equal(t.gids[0].gid.raw[0], 0xfe);
    assert_int_equal(t.gids[0].gid.raw[1], 0x80);
    int v4 = find_gid(f, "10.1.2.3", &g);
    assert_int_equal(v4, 1);
    assert_string_equal(g.ifname, "wa");
    assert_int_equal(g.up, 1);
    assert_int_equal(g.ifmtu, 4300);
    assert_true(find_gid(f, "fd01::5", NULL) > v4);
    assert_int_equal(find_gid(f, "127.0.0.1", NULL), -1);
    assert_int_equal(t.port_active, 1);
    int used = 0;
    for (int i = 0; i < WF_GIDS; i++)
        used += memcmp(&t.gids[i].gid, &no_gid, 16) != 0;
    assert_true(used < WF_GIDS);
    leave_with_veth(f);
}

static void test_address_removed_leaves_hole_and_added_fills_one(void **state)
{
    struct wf_fabric *f = join_with_veth();
    struct wf_fabric_event ev;
    struct wf_gid_table t;
    int v6 = find_gid(f, "fd01::5", NULL);
    run("ip addr del 10.1.2.3/24 dev wa");
    expect_event(f, WF_FABRIC_GID_CHANGE, 1000, &ev);
    assert_int_equal(ev.gid_index, 1);
    wf_fabric_gids(f, &t);
    assert_memory_equal(&t.gids[1].gid, &no_gid, 16);
    assert_int_equal(find_gid(f, "fd01::5", NULL), v6);
    run("ip addr add 10.1.9.9/24 dev wa");
    assert_int_equal(wait_gid(f, "10.1.9.9", true, 1000), 1);
    assert_true(event_within(f, WF_FABRIC_GID_CHANGE, 1000));
    leave_with_veth(f);
}

static void test_link_down_and_up_raises_port_events(void **state)
{
    struct wf_fabric *f = join_with_veth();
    struct wf_fabric_event ev;
    struct wf_gid_table t;
    run("ip link set wb down && ip link set wa down");
    expect_event(f, WF_FABRIC_PORT_ERR, 1000, &ev);
    wf_fabric_gids(f, &t);
    assert_int_equal(t.port_active, 0);
    assert_int_equal(find_gid(f, "10.1.2.3", NULL), 1);
    run("ip link set wa up && ip link set wb up");
    expect_event(f, WF_FABRIC_PORT_ACTIVE, 1000, &ev);
    leave_with_veth(f);
}

static void test_many_addresses_leave_some_indexes_free(void **state)
{
    struct wf_fabric *f = join_with_veth();
    struct wf_gid_table t;
    for (int i = 1; i <= 40; i++)
        run("ip addr add 10.2.%d.1/24 dev wa", i);
    wait_gid(f, "10.2.10.1", true, 1000);
    wf_fabric_gids(f, &t);
    for (int i = WF_GIDS - 4; i < WF_GIDS; i++)
        assert_memory_equal(&t.gids[i].gid, &no_gid, 16);
    leave_with_veth(f);
}

static void test_no_interface_at_all_still_has_a_gid(void **state)
{
    struct wf_fabric *f;
    struct wf_gid_table t, again;
    wait_daemon_gone(3000);
    run("ip link set lo down");
    assert_int_equal(wf_fabric_join(&f), 0);
    wf_fabric_gids(f, &t);
    assert_memory_not_equal(&t.gids[0].gid, &no_gid, 16);
    assert_int_equal(t.port_active, 1);
    wf_fabric_leave(f);
    wait_daemon_gone(3000);
    assert_int_equal(wf_fabric_join(&f), 0);
    wf_fabric_gids(f, &again);
    assert_true(again.node_guid == t.node_guid);
    assert_memory_equal(&t.gids[0].gid, &again.gids[0].gid, 16);
    wf_fabric_leave(f);
    run("ip link set lo up");
}

static void test_ipv6_disabled_join_works(void **state)
{
    struct wf_fabric *f;
    wait_daemon_gone(3000);
    run("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
    assert_int_equal(wf_fabric_join(&f), 0);
    assert_true(wf_fabric_udp_fd(f, AF_INET) >= 0);
    assert_int_equal(find_gid(f, "127.0.0.1", NULL), 1);
    wf_fabric_leave(f);
    run("echo 0 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
}

static void test_table_given_to_clients_cannot_be_written(void **state)
{
    struct wf_fabric *f;
    assert_int_equal(wf_fabric_join(&f), 0);
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f->gid_fd, 0),
                     MAP_FAILED);
    assert_int_equal(pwrite(f->gid_fd, "x", 1, 0), -1);
    wf_fabric_leave(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gids_ordered_link_local_then_ipv4_then_ipv6),
        cmocka_unit_test(test_address_removed_leaves_hole_and_added_fills_one),
        cmocka_unit_test(test_link_down_and_up_raises_port_events),
        cmocka_unit_test(test_many_addresses_leave_some_indexes_free),
        cmocka_unit_test(test_no_interface_at_all_still_has_a_gid),
        cmocka_unit_test(test_ipv6_disabled_join_works),
        cmocka_unit_test(test_table_given_to_clients_cannot_be_written),
    };
    own_network("0.2");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
