// SPDX-License-Identifier: BSD-2-Clause
// As files.c, for what asks about a path: stat() and its kin, links, canonical names.
#include "preload/preload.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

PRELOAD_EXPORT int fstatat(int dir, const char *path, struct stat *st, int flags)
{
    static int (*next)(int, const char *, struct stat *, int);
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("fstatat");
    return next(dir, preload_redirect(path, buf), st, flags);
}

PRELOAD_EXPORT int stat(const char *path, struct stat *st)
{
    return fstatat(AT_FDCWD, path, st, 0);
}

PRELOAD_EXPORT int lstat(const char *path, struct stat *st)
{
    return fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

PRELOAD_EXPORT int statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
    static int (*next)(int, const char *, int, unsigned, struct statx *);
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("statx");
    return next(dir, preload_redirect(path, buf), flags, mask, st);
}

// Programs built before glibc 2.33 call these.
PRELOAD_EXPORT int __xstat(int version, const char *path, struct stat *st)
{
    return fstatat(AT_FDCWD, path, st, 0);
}

PRELOAD_EXPORT int __lxstat(int version, const char *path, struct stat *st)
{
    return fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

PRELOAD_EXPORT int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags)
{
    return fstatat(dir, path, st, flags);
}

// `ls -l` asks for access lists and labels.
PRELOAD_EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
    static ssize_t (*next)(const char *, const char *, void *, size_t);
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("getxattr");
    return next(preload_redirect(path, buf), name, value, size);
}

PRELOAD_EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    static ssize_t (*next)(const char *, const char *, void *, size_t);
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("lgetxattr");
    return next(preload_redirect(path, buf), name, value, size);
}

PRELOAD_EXPORT ssize_t readlinkat(int dir, const char *path, char *out, size_t size)
{
    static ssize_t (*next)(int, const char *, char *, size_t);
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("readlinkat");
    return next(dir, preload_redirect(path, buf), out, size);
}

PRELOAD_EXPORT ssize_t readlink(const char *path, char *out, size_t size)
{
    return readlinkat(AT_FDCWD, path, out, size);
}

PRELOAD_EXPORT ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room)
{
    if (size > room)
        abort();
    return readlinkat(AT_FDCWD, path, out, size);
}

PRELOAD_EXPORT char *realpath(const char *path, char *out)
{
    static char *(*next)(const char *, char *);
    char buf[PATH_MAX];
    if (!next)
        next = preload_next("realpath");
    char *result = next(preload_redirect(path, buf), out);
    if (result)
        preload_unredirect(result);
    return result;
}

PRELOAD_EXPORT char *__realpath_chk(const char *path, char *out, size_t room)
{
    if (room < PATH_MAX)
        abort();
    return realpath(path, out);
}

PRELOAD_EXPORT char *canonicalize_file_name(const char *path)
{
    return realpath(path, NULL);
}
