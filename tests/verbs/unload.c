// SPDX-License-Identifier: BSD-2-Clause
// Programs that load the library when they need it and unload it again, with devices closed and
// with devices left open: its thread goes on, and nothing piles up.
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define must(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            printf("line %d: not true: %s\n", __LINE__, #cond);                                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct calls {
    struct ibv_device **(*list)(int *);
    void (*free)(struct ibv_device **);
    struct ibv_context *(*open)(struct ibv_device *);
    int (*close)(struct ibv_context *);
};

static void *load(struct calls *c)
{
    void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

    must(lib);
    *(void **)&c->list = dlsym(lib, "ibv_get_device_list");
    *(void **)&c->free = dlsym(lib, "ibv_free_device_list");
    *(void **)&c->open = dlsym(lib, "ibv_open_device");
    *(void **)&c->close = dlsym(lib, "ibv_close_device");
    must(c->list && c->free && c->open && c->close);
    return lib;
}

static void round_trip(bool leave_open)
{
    struct calls c;
    void *lib = load(&c);
    struct ibv_device **list = c.list(NULL);

    must(list && list[0]);
    struct ibv_context *ctx = c.open(list[0]);
    must(ctx);
    c.free(list);
    if (!leave_open)
        must(c.close(ctx) == 0);
    must(dlclose(lib) == 0);
}

static int descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

int main(void)
{
    round_trip(false);
    int before = descriptors();
    for (int i = 0; i < 20; i++)
        round_trip(false);
    must(descriptors() == before);
    for (int i = 0; i < 10; i++) {
        round_trip(true);
        usleep(20000); // lets the engine's thread run
    }
    printf("loaded and unloaded 31 times\n");
    return 0;
}
