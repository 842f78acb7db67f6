// SPDX-License-Identifier: BSD-2-Clause
// What the udp link alone can do over loopback: udp_bench [window KiB] [payload] [seconds].
// A stream with a window that the receiver opens again with ACKs, then an 8-byte ping-pong.
#include "base/clock.h"
#include "link/udp.h"
#include "link/udp_testing.h"
#include "wire/opcode.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACK_EVERY 16

static struct udp_testing net;
static atomic_bool stop;
static uint32_t window_packets = 64, payload = 4096, seconds = 2;
static _Atomic uint32_t acked; // written by the sender's own thread, from its poll
static uint32_t expected, unacked;
static uint64_t received, gaps;
static uint8_t data[16 << 20], sink[65536];

static struct wf_pkt packet(uint8_t opcode, uint32_t psn)
{
    return (struct wf_pkt){
        .opcode = opcode, .pkey = 0xffff, .dqpn = 0x010007, .psn = psn & 0xffffff};
}

static void send_ack(uint32_t psn)
{
    struct wf_pkt ack = packet(WF_OP_ACK, psn);
    ack.syndrome = 0x1f;
    net.b->ops->send(net.b, &net.to_a, &ack);
    unacked = 0;
}

static void on_data(void *arg, const struct wf_pkt *pkt)
{
    memcpy(sink, pkt->iov[0].iov_base, pkt->len); // as an engine places the data
    received += pkt->len;
    gaps += pkt->psn != expected;
    expected = (pkt->psn + 1) & 0xffffff;
    if (++unacked == ACK_EVERY)
        send_ack(pkt->psn);
}

static void on_ack(void *arg, const struct wf_pkt *pkt)
{
    acked = pkt->psn + 1;
}

static void *receiver(void *arg)
{
    while (!stop) {
        if (net.b->ops->poll(net.b, 64) == 0)
            sched_yield();
        net.b->ops->flush(net.b);
    }
    return NULL;
}

static void stream(void)
{
    pthread_t thread;
    net.a->deliver = on_ack;
    net.b->deliver = on_data;
    pthread_create(&thread, NULL, receiver, NULL);
    uint64_t begin = wf_clock_ns(), end = begin + seconds * WF_NSEC_PER_SEC, now = begin;
    uint64_t last_progress = begin;
    uint32_t psn = 0, seen = 0;
    while (now < end) {
        uint32_t room = window_packets - (uint32_t)wf_psn_diff(psn, acked);
        if (room >= window_packets / 4)
            for (; room; room--, psn = (psn + 1) & 0xffffff) {
                struct iovec iov = {data + (size_t)(psn % 256) * payload, payload};
                struct wf_pkt pkt = packet(WF_OP_WRITE_MIDDLE, psn);
                pkt.iov = &iov;
                pkt.niov = 1;
                pkt.len = payload;
                net.a->ops->send(net.a, &net.to_b, &pkt);
            }
        net.a->ops->flush(net.a);
        if (net.a->ops->poll(net.a, 64) == 0)
            sched_yield();
        now = wf_clock_ns();
        if (seen != acked) {
            seen = acked;
            last_progress = now;
        } else if (now - last_progress > WF_NSEC_PER_SEC / 100) {
            acked = psn; // packets were lost: open the window again
            last_progress = now;
        }
    }
    stop = true;
    pthread_join(thread, NULL);
    const struct wf_udp_counters *tx = wf_udp_link_counters(net.a),
                                 *rx = wf_udp_link_counters(net.b);
    printf("stream: %.2f GB/s, %u bytes a packet, %.1f packets a send, %.1f a receive, %llu gaps, "
           "%llu bad\n",
           (double)received / (double)(now - begin), payload,
           (double)tx->tx_packets / (double)tx->tx_batches,
           (double)rx->rx_packets / (double)rx->rx_batches, (unsigned long long)gaps,
           (unsigned long long)(rx->rx_bad_icrc + rx->rx_malformed));
}

static atomic_uint pongs;

static void on_ping(void *arg, const struct wf_pkt *pkt)
{
    struct wf_pkt pong = packet(WF_OP_SEND_ONLY, pkt->psn);
    struct iovec iov = {data, 8};
    pong.iov = &iov;
    pong.niov = 1;
    pong.len = 8;
    net.b->ops->send(net.b, &net.to_a, &pong);
    net.b->ops->flush(net.b);
}

static void on_pong(void *arg, const struct wf_pkt *pkt)
{
    pongs++;
}

static void *ponger(void *arg)
{
    while (!stop)
        if (net.b->ops->poll(net.b, 64) == 0)
            sched_yield();
    return NULL;
}

// Half a second, not a number of rounds: on a busy machine a round may take milliseconds.
static void ping_pong(void)
{
    pthread_t thread;
    stop = false;
    net.a->deliver = on_pong;
    net.b->deliver = on_ping;
    pthread_create(&thread, NULL, ponger, NULL);
    uint64_t begin = wf_clock_ns(), now = begin;
    uint32_t rounds = 0;
    for (; now - begin < WF_NSEC_PER_SEC / 2; rounds++) {
        struct iovec iov = {data, 8};
        struct wf_pkt ping = packet(WF_OP_SEND_ONLY, rounds);
        ping.iov = &iov;
        ping.niov = 1;
        ping.len = 8;
        net.a->ops->send(net.a, &net.to_b, &ping);
        net.a->ops->flush(net.a);
        while (pongs <= rounds && now - begin < WF_NSEC_PER_SEC) {
            if (net.a->ops->poll(net.a, 64) == 0)
                sched_yield();
            now = wf_clock_ns();
        }
    }
    printf("ping-pong, 8 bytes: %.2f us one way\n", (double)(now - begin) / rounds / 2 / 1000);
    stop = true;
    pthread_join(thread, NULL);
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * WF_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

// Processor time of either side, in one thread: says more than the stream when others compute too.
static void costs(void)
{
    enum { ROUNDS = 3000 };
    uint64_t send = 0, receive = 0, packets = 0;
    net.b->deliver = on_data;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t t0 = cpu_ns();
        for (uint32_t k = 0; k < window_packets; k++) {
            struct iovec iov = {data + (size_t)((i * window_packets + k) % 256) * payload, payload};
            struct wf_pkt pkt = packet(WF_OP_WRITE_MIDDLE, expected + k);
            pkt.iov = &iov;
            pkt.niov = 1;
            pkt.len = payload;
            net.a->ops->send(net.a, &net.to_b, &pkt);
        }
        net.a->ops->flush(net.a);
        uint64_t t1 = cpu_ns();
        unacked = 0;
        packets += (uint64_t)net.b->ops->poll(net.b, (int)window_packets);
        send += t1 - t0;
        receive += cpu_ns() - t1;
        net.b->ops->flush(net.b);
        net.a->ops->poll(net.a, 64);
    }
    printf("processor time: send %.0f ns a packet, receive %.0f ns: at most %.2f GB/s\n",
           (double)send / (double)packets, (double)receive / (double)packets,
           (double)payload * (double)packets / (double)(send > receive ? send : receive));
}

int main(int argc, char **argv)
{
    uint32_t kib = argc > 1 ? (uint32_t)atoi(argv[1]) : 256;
    payload = argc > 2 ? (uint32_t)atoi(argv[2]) : 4096;
    seconds = argc > 3 ? (uint32_t)atoi(argv[3]) : 2;
    if (payload < 1 || payload > 60000 || kib < 1 || seconds < 1) {
        fprintf(stderr, "usage: udp_bench [window KiB] [payload] [seconds]\n");
        return 2;
    }
    window_packets = kib * 1024 / payload > ACK_EVERY ? kib * 1024 / payload : ACK_EVERY;
    int rc = udp_testing_open(&net, false);
    if (rc) {
        fprintf(stderr, "udp_bench: %s\n", strerror(-rc));
        return 1;
    }
    stream();
    ping_pong();
    costs();
    udp_testing_close(&net);
    return 0;
}
