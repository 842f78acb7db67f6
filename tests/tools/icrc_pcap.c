// SPDX-License-Identifier: BSD-2-Clause
// icrc_pcap FILE: checks the invariant CRC of each RoCEv2 packet of a capture (classic pcap or what
// libpcap reads). Written from the specification and apart from src/wire, so that a mistake there
// is not made twice. Prints the number of packets; status 1 when a CRC is wrong or there is no
// packet.
#include <isa-l.h>
#include <net/ethernet.h>
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROCE_PORT 4791
#define BTH_BYTES 12
#define MAX_FRAME 65536

struct counts {
    unsigned long right, wrong, others;
};

static unsigned be16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

// RoCEv2 annex A17.3.3: fields that a router may change count as all ones. Returns the length of
// the IP header, 0 when this is no UDP packet; `end` is where the IP packet ends.
static size_t mask_ip(uint8_t *ip, size_t len, size_t *end)
{
    if (len >= 20 && ip[0] >> 4 == 4 && ip[9] == 17) {
        *end = be16(ip + 2);
        ip[1] = 0xff;           // type of service
        ip[8] = 0xff;           // time to live
        ip[10] = ip[11] = 0xff; // header checksum
        return (ip[0] & 15) * 4u;
    }
    if (len >= 40 && ip[0] >> 4 == 6 && ip[6] == 17) {
        *end = 40 + be16(ip + 4);
        ip[0] |= 0x0f; // traffic class, flow label
        ip[1] = ip[2] = ip[3] = 0xff;
        ip[7] = 0xff; // hop limit
        return 40;
    }
    return 0;
}

static void check(const uint8_t *frame, size_t len, size_t link_header, struct counts *n)
{
    static uint8_t buf[8 + MAX_FRAME];
    size_t end = 0;
    if (len < link_header || len - link_header > MAX_FRAME) {
        n->others++;
        return;
    }
    len -= link_header;
    // Eight bytes of ones stand for the local route header that Ethernet does not have.
    memset(buf, 0xff, 8);
    uint8_t *ip = buf + 8;
    memcpy(ip, frame + link_header, len);
    size_t udp = mask_ip(ip, len, &end);
    if (!udp || len < udp + 8 || be16(ip + udp + 2) != ROCE_PORT) {
        n->others++;
        return;
    }
    if (end > len || end < udp + 8 + BTH_BYTES + 4) {
        printf("short packet: %zu of %zu bytes\n", len, end);
        n->wrong++;
        return;
    }
    ip[udp + 6] = ip[udp + 7] = 0xff; // UDP checksum
    ip[udp + 8 + 4] = 0xff;           // BTH: FECN, BECN, reserved
    uint32_t want = crc32_gzip_refl(0, buf, 8 + end - 4);
    const uint8_t *got = ip + end - 4;
    if (got[0] == (uint8_t)want && got[1] == (uint8_t)(want >> 8) &&
        got[2] == (uint8_t)(want >> 16) && got[3] == (uint8_t)(want >> 24)) {
        n->right++;
    } else {
        n->wrong++;
        if (n->wrong <= 5)
            printf("wrong ICRC in packet %lu: opcode 0x%02x, %zu bytes\n",
                   n->right + n->wrong + n->others, ip[udp + 8], end);
    }
}

static size_t link_header_of(pcap_t *p)
{
    switch (pcap_datalink(p)) {
    case DLT_EN10MB:
        return 14;
    case DLT_LINUX_SLL:
        return 16;
    case DLT_RAW:
        return 0;
    default:
        fprintf(stderr, "icrc_pcap: unknown link type %d\n", pcap_datalink(p));
        exit(2);
    }
}

int main(int argc, char **argv)
{
    char err[PCAP_ERRBUF_SIZE];
    struct pcap_pkthdr *h;
    const uint8_t *data;
    struct counts n = {0};
    pcap_t *p = argc == 2 ? pcap_open_offline(argv[1], err) : NULL;
    if (!p) {
        fprintf(stderr, "icrc_pcap: %s\n", argc == 2 ? err : "usage: icrc_pcap FILE");
        return 2;
    }
    size_t link_header = link_header_of(p);
    while (pcap_next_ex(p, &h, &data) == 1)
        check(data, h->caplen, link_header, &n);
    pcap_close(p);
    printf("%lu RoCEv2 packets, %lu with a wrong ICRC\n", n.right + n.wrong, n.wrong);
    return n.wrong || !n.right;
}
