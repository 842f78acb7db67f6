// SPDX-License-Identifier: BSD-2-Clause
#include "cli/cli.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static bool exists(const char *dir, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);
    return n > 0 && n < (int)sizeof(path) && access(path, R_OK) == 0;
}

// Folder of the running binary.
static int own_dir(char dir[PATH_MAX])
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    // In a chroot without /proc: the name we were executed by.
    const char *name = (const char *)getauxval(AT_EXECFN);
    if (n < 0 && (!name || !realpath(name, exe)))
        return -errno;
    if (n >= 0)
        exe[n] = 0;
    snprintf(dir, PATH_MAX, "%s", dirname(exe));
    return 0;
}

int cli_libdir(char dir[PATH_MAX])
{
    // An installed libibverbs.so.1 of ours lies in a folder of its own, so that programs get it
    // from weft run only. Plain ../lib is a build tree's: elsewhere it may hold the system's own.
    static const char *const places[] = {"lib/weft", "lib/" WEFT_MULTIARCH "/weft", "lib64/weft"};
    char bin[PATH_MAX], up[PATH_MAX], place[PATH_MAX + 64];
    const char *env = getenv("WEFT_LIBDIR");
    if (env && *env) {
        snprintf(dir, PATH_MAX, "%s", env);
        return exists(dir, "libibverbs.so.1") ? 0 : -ENOENT;
    }
    if (own_dir(bin) != 0)
        strcpy(bin, ".");
    snprintf(up, sizeof(up), "%s", bin);
    char *slash = strrchr(up, '/');
    if (slash && slash != up)
        *slash = 0;
    bool build_tree = exists(up, "CMakeCache.txt");
    for (size_t i = 0; !build_tree && i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(place, sizeof(place), "%s/%s", up, places[i]);
        if (exists(place, "libibverbs.so.1")) {
            snprintf(dir, PATH_MAX, "%.*s", PATH_MAX - 1, place);
            return 0;
        }
    }
    snprintf(place, sizeof(place), "%s/%s", up, build_tree ? "lib" : places[0]);
    snprintf(dir, PATH_MAX, "%.*s", PATH_MAX - 1, place);
    return exists(dir, "libibverbs.so.1") ? 0 : -ENOENT;
}
