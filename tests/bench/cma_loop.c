// SPDX-License-Identifier: BSD-2-Clause
// cma_loop SIZE SECONDS: process_vm_writev into a child, again and again: what the kernel's
// cross-process copy gives with nothing around it. Prints MB/s (10^6).
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static char *memory(size_t size)
{
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exit(1);
    memset(p, 1, size);
    return p;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    size_t size = (size_t)atol(argv[1]);
    double seconds = atof(argv[2]);
    char *target = memory(size); // the child has it at the same address
    char *source = memory(size);
    int ready[2];
    if (pipe(ready) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        memset(target, 2, size); // its own pages
        if (write(ready[1], "r", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    char c;
    struct iovec from = {source, size}, to = {target, size};
    if (child < 0 || read(ready[0], &c, 1) != 1)
        return 1;
    unsigned long long bytes = 0;
    double start = now(), took;
    do {
        for (int i = 0; i < 64; i++) {
            if (process_vm_writev(child, &from, 1, &to, 1, 0) != (ssize_t)size)
                return perror("process_vm_writev"), kill(child, SIGKILL), 1;
            bytes += size;
        }
        took = now() - start;
    } while (took < seconds);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("%.1f\n", (double)bytes / took / 1e6);
    return 0;
}
