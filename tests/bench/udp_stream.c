// SPDX-License-Identifier: BSD-2-Clause
// udp_stream [HOST] [-t SECONDS] [-s SEGMENT]: datagrams of SEGMENT bytes one way, batched by the
// kernel on both sides (UDP_SEGMENT, UDP_GRO), no acknowledgement: an upper bound for any protocol
// on UDP. The receiver prints MB/s (10^6) that arrived.
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT 17792

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO     104
#endif

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int receive_all(int fd)
{
    static char buf[65536];
    int on = 1;
    unsigned long long bytes = 0;
    double start = 0, last = 0;
    struct timeval quiet = {.tv_usec = 500000};
    setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
    for (;;) {
        ssize_t n = recv(fd, buf, sizeof(buf), 0);
        if (n < 0)
            break; // half a second of silence
        if (!start) {
            start = now();
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &quiet, sizeof(quiet));
        }
        last = now();
        bytes += (unsigned long long)n;
    }
    printf("%.1f\n", (double)bytes / (last - start) / 1e6);
    return 0;
}

int main(int argc, char **argv)
{
    static char buf[65536];
    double seconds = 2;
    int segment = 4096 + 16 + 12 + 4, c;
    while ((c = getopt(argc, argv, "t:s:")) != -1) {
        if (c == 't')
            seconds = atof(optarg);
        else if (c == 's')
            segment = atoi(optarg);
        else
            return 2;
    }
    const char *host = argv[optind];
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (!host) {
        sa.sin_addr.s_addr = htonl(INADDR_ANY);
        if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
            return perror("udp_stream"), 1;
        return receive_all(fd);
    }
    if (segment < 1 || segment > 60000 || inet_pton(AF_INET, host, &sa.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
        setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)) != 0)
        return perror("udp_stream"), 1;
    size_t batch = (size_t)(60000 / segment * segment);
    for (double end = now() + seconds; now() < end;)
        for (int i = 0; i < 16; i++)
            if (send(fd, buf, batch, 0) < 0)
                continue; // a full queue: that datagram is lost
    return 0;
}
