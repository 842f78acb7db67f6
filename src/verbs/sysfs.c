// SPDX-License-Identifier: BSD-2-Clause
// Two old helpers that ibv_devinfo and librdmacm still call.
#include "verbs/face.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

WF_EXPORT const char *ibv_get_sysfs_path(void);
WF_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
WF_EXPORT int ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *device, const char *fmt, ...);

const char *ibv_get_sysfs_path(void)
{
    const char *path = secure_getenv("SYSFS_PATH");

    return path && *path ? path : "/sys";
}

// Bytes read without the newline, or -1.
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
    char path[512];
    ssize_t n;
    int fd;

    if (!size || snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
        return -1;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    n = read(fd, buf, size);
    close(fd);
    if (n < 0)
        return -1;
    if (n > 0 && buf[n - 1] == '\n')
        n--;
    if ((size_t)n == size)
        n--;
    buf[n] = '\0';
    return (int)n;
}

int ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *device, const char *fmt, ...)
{
    return -1;
}
