// SPDX-License-Identifier: BSD-2-Clause
// The private tree: a small folder of real files, one for each user and network namespace, so that
// every call on it and every descriptor from it is the kernel's own.
#include "preload/preload.h"

#include "base/clock.h"
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REFRESH_NS WF_NSEC_PER_SEC

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects all below
static char tree[PATH_MAX];                              // written once, before `made` is set
static _Atomic bool made;
static uint64_t filled_at;

// The thread that fills the tree may come back here through the libraries it calls.
static __thread bool filling;

// A folder that others could write to, or made, is not ours to trust.
static bool is_private(const char *dir)
{
    struct stat st;
    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0;
}

static bool try_base(const char *base, ino_t netns)
{
    if (!base || base[0] != '/')
        return false;
    int n = snprintf(tree, sizeof(tree), "%s/weft-%u-%lu", base, (unsigned)geteuid(),
                     (unsigned long)netns);
    if (n >= (int)sizeof(tree) - NAME_MAX)
        return false;
    return (mkdir(tree, 0700) == 0 || errno == EEXIST) && is_private(tree) &&
           access(tree, W_OK | X_OK) == 0;
}

static void make_tree(void)
{
    struct stat ns;
    ino_t netns = stat("/proc/self/ns/net", &ns) == 0 ? ns.st_ino : 0;
    if (!try_base(getenv("XDG_RUNTIME_DIR"), netns) && !try_base("/tmp", netns) &&
        !try_base("/dev/shm", netns) && !try_base(getenv("TMPDIR"), netns))
        tree[0] = 0;
    made = true;
}

const char *preload_tree_peek(void)
{
    return made ? tree : "";
}

const char *preload_tree(void)
{
    if (filling)
        return preload_tree_peek();
    pthread_mutex_lock(&lock);
    if (!made)
        make_tree();
    uint64_t now = wf_clock_ns();
    if (tree[0] && (!filled_at || now - filled_at > REFRESH_NS)) {
        filling = true;
        preload_tree_fill(tree);
        filling = false;
        filled_at = wf_clock_ns();
    }
    pthread_mutex_unlock(&lock);
    return tree;
}

static bool tree_path(char path[PATH_MAX], const char *root, const char *name)
{
    return snprintf(path, PATH_MAX, "%s/%s", root, name) < PATH_MAX;
}

static void make_parents(char *path, size_t root_len)
{
    for (char *p = path + root_len + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
}

static bool has_text(const char *path, const char *text, size_t len)
{
    char old[1024];
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    size_t n = fread(old, 1, sizeof(old), f);
    fclose(f);
    return n == len && memcmp(old, text, len) == 0;
}

void preload_tree_file(const char *root, const char *name, const char *fmt, ...)
{
    char path[PATH_MAX], fresh[PATH_MAX + 32], text[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0 || n >= (int)sizeof(text) || !tree_path(path, root, name) ||
        has_text(path, text, (size_t)n))
        return;
    make_parents(path, strlen(root));
    // Several processes may write the same file at once: each its own copy, the last one stays.
    snprintf(fresh, sizeof(fresh), "%s.%d", path, (int)getpid());
    FILE *f = fopen(fresh, "we");
    if (!f)
        return;
    bool ok = fwrite(text, 1, (size_t)n, f) == (size_t)n;
    if (fclose(f) != 0 || !ok || rename(fresh, path) != 0)
        unlink(fresh);
}

void preload_tree_link(const char *root, const char *name, const char *target)
{
    char path[PATH_MAX], old[PATH_MAX];
    if (!tree_path(path, root, name))
        return;
    ssize_t n = readlink(path, old, sizeof(old) - 1);
    if (n >= 0) {
        old[n] = 0;
        if (strcmp(old, target) == 0)
            return;
        unlink(path);
    }
    make_parents(path, strlen(root));
    if (symlink(target, path) != 0 && errno != EEXIST)
        return; // a full disk shows as a missing entry
}

void preload_tree_remove(const char *root, const char *name)
{
    char path[PATH_MAX];
    if (tree_path(path, root, name))
        unlink(path);
}
