// SPDX-License-Identifier: BSD-2-Clause
// Who may share a port, by the kernel's rules.
#include "rdmacm/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct rcm_id ids[4];

static int set_up(void **state)
{
    memset(ids, 0, sizeof(ids));
    rcm_ports_reset();
    for (int i = 0; i < 4; i++) {
        ids[i].ps = RDMA_PS_TCP;
        ids[i].state = RCM_ADDR_BOUND;
    }
    return 0;
}

static int bind_to(struct rcm_id *id, const char *address, uint16_t port)
{
    struct sockaddr_in *four = (struct sockaddr_in *)&id->src;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&id->src;
    memset(&id->src, 0, sizeof(id->src));
    if (strchr(address, ':')) {
        six->sin6_family = AF_INET6;
        inet_pton(AF_INET6, address, &six->sin6_addr);
    } else {
        four->sin_family = AF_INET;
        id->afonly = true;
        inet_pton(AF_INET, address, &four->sin_addr);
    }
    rcm_addr_set_port(&id->src, port);
    return rcm_port_bind(id);
}

static void test_port_same_address_is_taken(void **state)
{
    assert_int_equal(bind_to(&ids[0], "10.0.0.1", 7471), 0);
    assert_int_equal(bind_to(&ids[1], "10.0.0.1", 7471), -EADDRINUSE);
    assert_int_equal(bind_to(&ids[1], "10.0.0.2", 7471), 0);
    assert_int_equal(bind_to(&ids[2], "10.0.0.1", 7472), 0);
}

static void test_port_wildcard_conflicts_with_every_address(void **state)
{
    assert_int_equal(bind_to(&ids[0], "10.0.0.1", 7471), 0);
    assert_int_equal(bind_to(&ids[1], "0.0.0.0", 7471), -EADDRNOTAVAIL);
    rcm_port_release(&ids[0]);
    assert_int_equal(bind_to(&ids[1], "0.0.0.0", 7471), 0);
    assert_int_equal(bind_to(&ids[0], "10.0.0.1", 7471), -EADDRNOTAVAIL);
}

static void test_port_spaces_are_apart(void **state)
{
    ids[1].ps = RDMA_PS_UDP;
    assert_int_equal(bind_to(&ids[0], "10.0.0.1", 7471), 0);
    assert_int_equal(bind_to(&ids[1], "10.0.0.1", 7471), 0);
}

static void test_port_families_share_when_both_are_told_to(void **state)
{
    assert_int_equal(bind_to(&ids[0], "0.0.0.0", 7471), 0);
    assert_int_equal(bind_to(&ids[1], "::", 7471), -EADDRNOTAVAIL);
    ids[1].afonly = true;
    assert_int_equal(bind_to(&ids[1], "::", 7471), 0);
}

static void test_port_reuse_needs_both_and_no_listener(void **state)
{
    ids[1].reuseaddr = true;
    assert_int_equal(bind_to(&ids[0], "10.0.0.1", 7471), 0);
    assert_int_equal(bind_to(&ids[1], "10.0.0.1", 7471), -EADDRINUSE);
    ids[0].reuseaddr = true;
    assert_int_equal(bind_to(&ids[1], "10.0.0.1", 7471), 0);
    // Only one of them may listen, and nobody joins a listener.
    rcm_port_release(&ids[1]);
    assert_int_equal(rcm_port_listen(&ids[0]), 0);
    ids[0].state = RCM_LISTENING;
    assert_int_equal(bind_to(&ids[1], "10.0.0.1", 7471), -EADDRINUSE);
}

static void test_port_listen_beside_a_sharer_is_refused(void **state)
{
    ids[0].reuseaddr = ids[1].reuseaddr = true;
    assert_int_equal(bind_to(&ids[0], "10.0.0.1", 7471), 0);
    assert_int_equal(bind_to(&ids[1], "10.0.0.1", 7471), 0);
    assert_int_equal(rcm_port_listen(&ids[0]), -EADDRINUSE);
}

static void test_port_zero_picks_a_free_one(void **state)
{
    assert_int_equal(bind_to(&ids[0], "10.0.0.1", 0), 0);
    assert_int_equal(bind_to(&ids[1], "10.0.0.1", 0), 0);
    assert_true(rcm_addr_port(&ids[0].src) >= 1024);
    assert_int_not_equal(rcm_addr_port(&ids[0].src), rcm_addr_port(&ids[1].src));
}

#define T(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_port_same_address_is_taken),
        T(test_port_wildcard_conflicts_with_every_address),
        T(test_port_spaces_are_apart),
        T(test_port_families_share_when_both_are_told_to),
        T(test_port_reuse_needs_both_and_no_listener),
        T(test_port_listen_beside_a_sharer_is_refused),
        T(test_port_zero_picks_a_free_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
