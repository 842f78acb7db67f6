// SPDX-License-Identifier: BSD-2-Clause
#include "base/guard.h"
#include "link/fabric_impl.h"
#include "link/shm_ring.h"
#include "wire/opcode.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define SELF 3u // slot of the sender

struct world {
    struct wf_region *sender, *receiver;
    int fd[2];
    struct wf_ring_tx tx;
    struct wf_ring_rx rx;
};

static struct {
    unsigned count;
    struct wf_pkt pkt;
    uint8_t data[WF_SHM_COPY_MAX];
    struct wf_remote_payload remote;
    union ibv_gid sgid, dgid;
} got;

static void deliver(void *arg, const struct wf_pkt *pkt)
{
    got.count++;
    got.pkt = *pkt;
    size_t n = 0;
    for (int i = 0; i < pkt->niov; i++) {
        memcpy(got.data + n, pkt->iov[i].iov_base, pkt->iov[i].iov_len);
        n += pkt->iov[i].iov_len;
    }
    if (pkt->remote)
        got.remote = *pkt->remote;
    if (pkt->sgid) {
        got.sgid = *pkt->sgid;
        got.dgid = *pkt->dgid;
    }
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_int_equal(wf_region_create(&w->sender, &w->fd[0]), 0);
    assert_int_equal(wf_region_create(&w->receiver, &w->fd[1]), 0);
    wf_ring_tx_init(&w->tx, w->receiver, SELF, 0x500000007ull, w->sender);
    // The second region made the value that both are probed for.
    w->receiver->rings[SELF].probe_value = w->receiver->probe_value;
    wf_ring_rx_init(&w->rx, w->receiver, SELF);
    memset(&got, 0, sizeof(got));
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    wf_region_unmap(w->sender);
    wf_region_unmap(w->receiver);
    close(w->fd[0]);
    close(w->fd[1]);
    free(w);
    return 0;
}

static struct wf_pkt packet(uint8_t op, struct iovec *iov, void *data, uint32_t len)
{
    *iov = (struct iovec){data, len};
    return (struct wf_pkt){.opcode = WF_OPCODE(WF_SVC_RC, op),
                           .flags = WF_PKT_ACK_REQ,
                           .pkey = 0xffff,
                           .dqpn = 0x050001,
                           .sqpn = 0x030002,
                           .psn = 0xfffffe,
                           .npsn = 1,
                           .len = len,
                           .niov = len ? 1 : 0,
                           .iov = iov};
}

static int poll_all(struct world *w)
{
    return wf_ring_poll(&w->rx, 1 << 20, deliver, NULL);
}

static void test_send_small_arrives_in_the_cell(void **state)
{
    struct world *w = *state;
    struct iovec iov;
    char text[] = "small enough to fit here";
    struct wf_pkt p = packet(WF_OP_SEND_ONLY_IMM, &iov, text, 24);
    p.imm = 0x11223344;
    assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
    assert_int_equal(w->receiver->rings[SELF].cells[0].kind, WF_CELL_HERE);
    assert_int_equal(poll_all(w), 1);
    assert_int_equal(got.pkt.opcode, p.opcode);
    assert_int_equal(got.pkt.flags, WF_PKT_ACK_REQ);
    assert_int_equal(got.pkt.dqpn, p.dqpn);
    assert_int_equal(got.pkt.sqpn, p.sqpn);
    assert_int_equal(got.pkt.psn, p.psn);
    assert_int_equal(got.pkt.imm, p.imm);
    assert_int_equal(got.pkt.pkey, 0xffff);
    assert_int_equal(got.pkt.len, 24);
    assert_memory_equal(got.data, text, 24);
    assert_int_equal(poll_all(w), 0);
}

static void test_write_eight_bytes_arrives_in_the_cell_with_reth(void **state)
{
    struct world *w = *state;
    struct iovec iov;
    struct wf_pkt p = packet(WF_OP_WRITE_ONLY, &iov, "12345678", 8);
    p.va = 0x1122334455667788;
    p.rkey = 0xabc00;
    p.dma_len = 8;
    assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
    assert_int_equal(w->receiver->rings[SELF].cells[0].kind, WF_CELL_HERE);
    assert_int_equal(poll_all(w), 1);
    assert_true(got.pkt.va == p.va && got.pkt.rkey == p.rkey && got.pkt.dma_len == 8);
    assert_memory_equal(got.data, "12345678", 8);
}

static void test_ack_and_atomic_fields_arrive(void **state)
{
    struct world *w = *state;
    struct wf_pkt p = {.opcode = WF_OPCODE(WF_SVC_RC, WF_OP_ATOMIC_ACK),
                       .pkey = 0xffff,
                       .npsn = 1,
                       .syndrome = 0x1f,
                       .msn = 0xabcdef,
                       .atomic_orig = 42};
    assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
    assert_int_equal(poll_all(w), 1);
    assert_int_equal(got.pkt.syndrome, 0x1f);
    assert_int_equal(got.pkt.msn, 0xabcdef);
    assert_true(got.pkt.atomic_orig == 42);
    p = (struct wf_pkt){.opcode = WF_OPCODE(WF_SVC_RC, WF_OP_CMP_SWAP),
                        .pkey = 0xffff,
                        .npsn = 1,
                        .va = 8,
                        .rkey = 1,
                        .swap_add = 2,
                        .compare = 3};
    assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
    assert_int_equal(poll_all(w), 1);
    assert_true(got.pkt.va == 8 && got.pkt.rkey == 1 && got.pkt.swap_add == 2 &&
                got.pkt.compare == 3);
}

static void test_datagram_carries_qkey_and_addresses(void **state)
{
    struct world *w = *state;
    struct iovec iov;
    struct wf_path path = {.sgid.raw = {1}, .dgid.raw = {2}, .tclass = 3, .hop_limit = 4};
    struct wf_pkt p = packet(WF_OP_SEND_ONLY, &iov, "x", 1);
    p.opcode = WF_OPCODE(WF_SVC_UD, WF_OP_SEND_ONLY);
    p.qkey = 0x11111111;
    assert_int_equal(wf_ring_send(&w->tx, &p, &path), 0);
    assert_int_equal(poll_all(w), 1);
    assert_int_equal(got.pkt.qkey, p.qkey);
    assert_memory_equal(&got.sgid, &path.sgid, 16);
    assert_memory_equal(&got.dgid, &path.dgid, 16);
    assert_int_equal(got.pkt.tclass, 3);
    assert_int_equal(got.pkt.hop_limit, 4);
}

static void test_send_large_stays_with_sender_until_copied(void **state)
{
    struct world *w = *state;
    static uint8_t big[100000], out[100000];
    struct iovec iov[2] = {{big, 30000}, {big + 30000, 70000}};
    struct wf_pkt p = packet(WF_OP_SEND_ONLY, iov, big, 30000);
    p.niov = 2;
    p.len = sizeof(big);
    for (size_t i = 0; i < sizeof(big); i++)
        big[i] = (uint8_t)(i * 7 >> 3);
    assert_int_equal(wf_ring_send(&w->tx, &p, NULL), -EMSGSIZE); // not known yet whether it may
    poll_all(w);
    assert_true(wf_ring_remote_ok(&w->tx));
    assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
    assert_int_equal(poll_all(w), 1);
    assert_non_null(got.pkt.remote);
    assert_int_equal(got.remote.len, sizeof(big));
    struct iovec dst[2] = {{out, 12345}, {out + 12345, sizeof(out) - 12345}};
    assert_int_equal(wf_remote_copy(&got.remote, 0, dst, 2), 0);
    assert_memory_equal(out, big, sizeof(big));
    memset(out, 0, sizeof(out));
    struct iovec mid = {out, 50000};
    assert_int_equal(wf_remote_copy(&got.remote, 29990, &mid, 1), 0);
    assert_memory_equal(out, big + 29990, 50000);
    assert_int_equal(wf_remote_copy(&got.remote, 60000, &mid, 1), -ERANGE);
    got.remote.iov[0].iov_base = (void *)4096;
    assert_int_equal(wf_remote_copy(&got.remote, 0, &mid, 1), -EFAULT);
    // Datagrams and UC have nobody who keeps their payload.
    p.opcode = WF_OPCODE(WF_SVC_UC, WF_OP_SEND_ONLY);
    assert_int_equal(wf_ring_send(&w->tx, &p, NULL), -EMSGSIZE);
}

static void test_send_of_memory_that_is_gone_is_refused_and_the_ring_goes_on(void **state)
{
    struct world *w = *state;
    struct iovec iov;
    wf_guard_install();
    void *gone = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (uint32_t len = 8; len <= 4096; len *= 8) {
        struct wf_pkt pkt = packet(WF_OP_SEND_ONLY, &iov, gone, len);
        uint32_t area = w->tx.area_pos;
        assert_int_equal(wf_ring_send(&w->tx, &pkt, NULL), -EFAULT);
        assert_int_equal(w->tx.area_pos, area);
    }
    assert_int_equal(wf_ring_poll(&w->rx, 10, deliver, NULL), 0);
    char data[100] = "still there";
    struct wf_pkt pkt = packet(WF_OP_SEND_ONLY, &iov, data, sizeof(data));
    assert_int_equal(wf_ring_send(&w->tx, &pkt, NULL), 0);
    assert_int_equal(wf_ring_poll(&w->rx, 10, deliver, NULL), 1);
    assert_memory_equal(got.data, data, sizeof(data));
    munmap(gone, 8192);
}

static void test_ring_full_then_drained_wraps_many_times(void **state)
{
    struct world *w = *state;
    uint32_t sent = 0, taken = 0;
    uint8_t data[4096];
    struct iovec iov;
    for (int round = 0; round < 40; round++) {
        for (;;) {
            uint32_t len = sent * 37 % sizeof(data);
            memset(data, (int)sent, len);
            struct wf_pkt p = packet(WF_OP_SEND_ONLY, &iov, data, len);
            p.psn = sent & 0xffffff;
            int ret = wf_ring_send(&w->tx, &p, NULL);
            if (ret == -EAGAIN)
                break;
            assert_int_equal(ret, 0);
            sent++;
        }
        for (int k = round % 7 * 9 + 1; k && taken < sent; k--, taken++) {
            assert_int_equal(wf_ring_poll(&w->rx, 1, deliver, NULL), 1);
            uint32_t len = taken * 37 % sizeof(data);
            assert_int_equal(got.pkt.psn, taken);
            assert_int_equal(got.pkt.len, len);
            for (uint32_t i = 0; i < len; i++)
                assert_int_equal(got.data[i], (uint8_t)taken);
        }
        if (round % 5 == 4)
            taken += (uint32_t)poll_all(w);
    }
    assert_int_equal(w->rx.dropped, 0);
    assert_true(sent > 1000);
}

static void test_cells_only_fill_exactly_the_ring(void **state)
{
    struct world *w = *state;
    struct iovec iov;
    struct wf_pkt p = packet(WF_OP_SEND_ONLY, &iov, "y", 1);
    for (unsigned i = 0; i < WF_RING_CELLS; i++)
        assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
    assert_int_equal(wf_ring_send(&w->tx, &p, NULL), -EAGAIN);
    assert_int_equal(poll_all(w), WF_RING_CELLS);
    assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
}

static void test_positions_wrap_at_32_bits(void **state)
{
    struct world *w = *state;
    struct iovec iov;
    uint8_t data[200] = {5};
    struct wf_pkt p = packet(WF_OP_SEND_ONLY, &iov, data, sizeof(data));
    poll_all(w);
    w->tx.pos = w->tx.consumed = w->rx.pos = UINT32_MAX - 100;
    w->tx.area_pos = w->tx.area_consumed = w->rx.area_pos = UINT32_MAX - 1023;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
        assert_int_equal(poll_all(w), 1);
        assert_int_equal(got.data[0], 5);
    }
    assert_int_equal(w->rx.area_pos, w->tx.area_pos);
}

static void test_new_generation_restarts_and_drops_what_was_left(void **state)
{
    struct world *w = *state;
    struct iovec iov;
    struct wf_pkt p = packet(WF_OP_SEND_ONLY, &iov, "old", 3);
    for (int i = 0; i < 100; i++)
        assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
    assert_int_equal(wf_ring_poll(&w->rx, 10, deliver, NULL), 10);
    wf_ring_tx_init(&w->tx, w->receiver, SELF, 8, w->receiver);
    p = packet(WF_OP_SEND_ONLY, &iov, "new", 3);
    assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
    assert_int_equal(poll_all(w), 1);
    assert_memory_equal(got.data, "new", 3);
    for (unsigned i = 1; i < 3 * WF_RING_CELLS; i++) {
        assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
        assert_int_equal(poll_all(w), 1);
    }
}

static void test_sender_that_cannot_be_read_gets_no_remote(void **state)
{
    struct world *w = *state;
    w->receiver->rings[SELF].probe_value++;
    struct wf_cell *c = &w->receiver->rings[SELF].cells[0];
    poll_all(w);
    assert_false(wf_ring_remote_ok(&w->tx));
    // Sent all the same, it is dropped.
    *c = (struct wf_cell){
        .opcode = WF_OP_SEND_ONLY, .kind = WF_CELL_REMOTE, .niov = 1, .npsn = 1, .len = 1};
    ((struct iovec *)(w->receiver->rings[SELF].area + sizeof(struct wf_cell_ext)))->iov_len = 1;
    atomic_store(&c->seq, 7ull << 32 | 1);
    assert_int_equal(poll_all(w), 1);
    assert_int_equal(got.count, 0);
    assert_int_equal(w->rx.dropped, 1);
}

static void test_cells_hostile_are_refused(void **state)
{
    struct world *w = *state;
    const uint8_t *area = w->receiver->rings[SELF].area;
    const struct wf_cell good = {
        .opcode = WF_OP_SEND_ONLY, .kind = WF_CELL_AREA, .npsn = 1, .len = 64};
    struct wf_cell_parts parts;
    struct wf_pkt pkt;
    struct wf_cell c = good;
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), 0);
    c.off = WF_RING_BYTES - 64;
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), -EPROTO);
    c.off = WF_RING_BYTES;
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), -EPROTO);
    c.off = 8;
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), -EPROTO);
    c = good;
    c.len = WF_SHM_COPY_MAX + 1;
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), -EPROTO);
    c = good;
    c.npsn = 0;
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), -EPROTO);
    c = good;
    c.opcode = 0xff;
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), -EPROTO);
    c = good;
    c.opcode = WF_OP_ACK; // carries no payload
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), -EPROTO);
    c = good;
    c.kind = 9;
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), -EPROTO);
    c.kind = WF_CELL_HERE;
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), -EPROTO);
    c.len = 9;
    c.opcode = WF_OP_WRITE_ONLY;
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), -EPROTO);
    c = good;
    c.kind = WF_CELL_REMOTE;
    c.niov = WF_REMOTE_IOV + 1;
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), -EPROTO);
    c.niov = 1; // the list in the (zero) area has no bytes
    assert_int_equal(wf_cell_decode(&c, area, &parts, &pkt), -EPROTO);
}

static void test_notify_rings_only_a_sleeping_receiver_once(void **state)
{
    struct world *w = *state;
    struct iovec iov;
    struct wf_pkt p = packet(WF_OP_SEND_ONLY, &iov, "z", 1);
    int pipes[2];
    char buf[64];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
    wf_ring_notify(&w->tx, pipes[1]);
    atomic_store(&w->receiver->sleeping, 1);
    wf_ring_notify(&w->tx, pipes[1]); // nothing new
    assert_int_equal(atomic_load(&w->receiver->sleeping), 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wf_ring_send(&w->tx, &p, NULL), 0);
        wf_ring_notify(&w->tx, pipes[1]);
    }
    assert_int_equal(read(pipes[0], buf, sizeof(buf)), 8);
    assert_int_equal(atomic_load(&w->receiver->sleeping), 0);
    close(pipes[0]);
    close(pipes[1]);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_send_small_arrives_in_the_cell),
        WITH(test_write_eight_bytes_arrives_in_the_cell_with_reth),
        WITH(test_ack_and_atomic_fields_arrive),
        WITH(test_datagram_carries_qkey_and_addresses),
        WITH(test_send_large_stays_with_sender_until_copied),
        WITH(test_send_of_memory_that_is_gone_is_refused_and_the_ring_goes_on),
        WITH(test_ring_full_then_drained_wraps_many_times),
        WITH(test_cells_only_fill_exactly_the_ring),
        WITH(test_positions_wrap_at_32_bits),
        WITH(test_new_generation_restarts_and_drops_what_was_left),
        WITH(test_sender_that_cannot_be_read_gets_no_remote),
        WITH(test_cells_hostile_are_refused),
        WITH(test_notify_rings_only_a_sleeping_receiver_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
