// SPDX-License-Identifier: BSD-2-Clause
// Puts packets of all opcodes and sizes on the wire of lo, port 4791, alone and in batches, and
// sees them arrive. Prints how many. For tests that look at the wire.
#include "link/udp_testing.h"
#include "wire/codec.h"
#include "wire/icrc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int arrived;

static void on_packet(void *arg, const struct wf_pkt *pkt)
{
    arrived++;
}

static int send_one(struct udp_testing *t, uint8_t opcode, uint32_t psn, uint32_t len)
{
    static uint8_t data[4096];
    struct iovec iov = {data, len};
    struct wf_pkt pkt = {.opcode = opcode, .pkey = 0xffff, .dqpn = 0x010203, .psn = psn};
    pkt.iov = &iov;
    pkt.niov = 1;
    pkt.len = len;
    pkt.syndrome = 0x1f;
    int rc = t->a->ops->send(t->a, &t->to_b, &pkt);
    return rc ? rc : 1;
}

// Each opcode with payload goes eight times in a row, which makes a batch, with a shorter last one.
static int send_all(struct udp_testing *t)
{
    int sent = 0;
    for (int op = 0; op < 256; op++) {
        const struct wf_opcode_info *info = wf_opcode_info((uint8_t)op);
        int n = info->flags & WF_F_PAYLOAD ? 8 : 1;
        for (int i = 0; info->name && i < n; i++) {
            // ATOMIC WRITE carries eight bytes, a CNP sixteen zeroes.
            uint32_t len = n == 1 ? 0 : i == 7 ? 5 : 1024;
            len = op == WF_OP_ATOMIC_WRITE ? 8 : op == WF_OPCODE_CNP ? 16 : len;
            if (send_one(t, (uint8_t)op, (uint32_t)sent++, len) != 1)
                return -EIO;
        }
        t->a->ops->flush(t->a);
        t->b->ops->poll(t->b, 64);
    }
    for (int i = 0; i < 1000 && arrived < sent; i++)
        t->b->ops->poll(t->b, 64);
    return arrived == sent ? sent : -EIO;
}

int main(void)
{
    int total = 0;
    for (int v6 = 0; v6 < 2; v6++) {
        struct udp_testing t;
        int rc = udp_testing_open_at(&t, v6, WF_ROCE_PORT);
        if (!rc) {
            t.b->deliver = on_packet;
            arrived = 0;
            rc = send_all(&t);
        }
        udp_testing_close(&t);
        if (rc < 0) {
            fprintf(stderr, "udp_sample: %s\n", strerror(-rc));
            return 1;
        }
        total += rc;
    }
    printf("%d\n", total);
    return 0;
}
