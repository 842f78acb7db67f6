// SPDX-License-Identifier: BSD-2-Clause
// udp_pingpong [HOST] [-n COUNT] [-s SIZE]: one datagram to and fro between two processes that both
// poll. What the kernel's UDP path costs without anything on top. Prints half a round in
// microseconds (median).
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT 17791

static double now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void receive(int fd, void *buf, size_t size)
{
    while (recv(fd, buf, size, MSG_DONTWAIT) < 0)
        continue;
}

int main(int argc, char **argv)
{
    long count = 100000;
    size_t size = 8;
    char buf[65536];
    int c;
    while ((c = getopt(argc, argv, "n:s:")) != -1) {
        if (c == 'n')
            count = atol(optarg);
        else if (c == 's')
            size = (size_t)atol(optarg) % sizeof(buf);
        else
            return 2;
    }
    const char *host = argv[optind];
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    socklen_t salen = sizeof(sa);
    memset(buf, 0, sizeof(buf));
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (!host) {
        sa.sin_addr.s_addr = htonl(INADDR_ANY);
        if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
            recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&sa, &salen) < 0 ||
            connect(fd, (struct sockaddr *)&sa, salen) != 0)
            return perror("udp_pingpong"), 1;
        for (;; receive(fd, buf, sizeof(buf))) {
            if (send(fd, buf, size, 0) < 0 || buf[0] == 'Q')
                return 0;
        }
    }
    if (inet_pton(AF_INET, host, &sa.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
        return perror("udp_pingpong"), 1;
    double *took = malloc((size_t)count * sizeof(*took));
    for (long i = 0; i < count; i++) {
        double start = now_us();
        if (send(fd, buf, size, 0) < 0)
            return perror("udp_pingpong"), 1;
        receive(fd, buf, sizeof(buf));
        took[i] = (now_us() - start) / 2;
    }
    buf[0] = 'Q';
    if (send(fd, buf, size, 0) < 0)
        return 1;
    qsort(took, (size_t)count, sizeof(*took), by_value);
    printf("%.3f\n", took[count / 2]);
    free(took);
    return 0;
}
