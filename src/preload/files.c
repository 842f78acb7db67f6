// SPDX-License-Identifier: BSD-2-Clause
// The C library's functions that take a path, with the paths of paths.c looked up elsewhere: each
// finds the next definition and calls it with the redirected path. Descriptors below a redirected
// folder are real, so relative paths need nothing.
#include "preload/preload.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void *preload_next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static bool has_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static int open_path(int dir, const char *path, int flags, mode_t mode)
{
    static int (*next)(int, const char *, int, ...);
    if (!next)
        next = preload_next("openat");
    const struct preload_node *node =
        path && strncmp(path, "/dev/", 5) == 0 ? preload_node_of(path) : NULL;
    if (node && node->open)
        return node->open(flags);
    char buf[PATH_MAX];
    return next(dir, preload_redirect(path, buf), flags, mode);
}

static mode_t mode_argument(int flags, va_list ap)
{
    return has_mode(flags) ? va_arg(ap, mode_t) : 0;
}

PRELOAD_EXPORT int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = mode_argument(flags, ap);
    va_end(ap);
    return open_path(AT_FDCWD, path, flags, mode);
}

PRELOAD_EXPORT int openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = mode_argument(flags, ap);
    va_end(ap);
    return open_path(dir, path, flags, mode);
}

// What fortified programs call when the flags are not constant.
PRELOAD_EXPORT int __open_2(const char *path, int flags)
{
    return open_path(AT_FDCWD, path, flags, 0);
}

PRELOAD_EXPORT int __openat_2(int dir, const char *path, int flags)
{
    return open_path(dir, path, flags, 0);
}

PRELOAD_EXPORT FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*next)(const char *, const char *);
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("fopen");
    return next(preload_redirect(path, buf), mode);
}

PRELOAD_EXPORT DIR *opendir(const char *path)
{
    static DIR *(*next)(const char *);
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("opendir");
    return next(preload_redirect(path, buf));
}

PRELOAD_EXPORT int scandir(const char *path, struct dirent ***list,
                           int (*filter)(const struct dirent *),
                           int (*order)(const struct dirent **, const struct dirent **))
{
    static int (*next)(const char *, struct dirent ***, int (*)(const struct dirent *),
                       int (*)(const struct dirent **, const struct dirent **));
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("scandir");
    return next(preload_redirect(path, buf), list, filter, order);
}

PRELOAD_EXPORT int chdir(const char *path)
{
    static int (*next)(const char *);
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("chdir");
    return next(preload_redirect(path, buf));
}

PRELOAD_EXPORT int access(const char *path, int mode)
{
    static int (*next)(const char *, int);
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("access");
    return next(preload_redirect(path, buf), mode);
}

PRELOAD_EXPORT int euidaccess(const char *path, int mode)
{
    static int (*next)(const char *, int);
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("euidaccess");
    return next(preload_redirect(path, buf), mode);
}

PRELOAD_EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
    static int (*next)(int, const char *, int, int);
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("faccessat");
    return next(dir, preload_redirect(path, buf), mode, flags);
}
