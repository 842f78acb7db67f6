// SPDX-License-Identifier: BSD-2-Clause
// Which paths are looked up in the private tree.
#include "preload/preload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// A prefix stands for itself and all below it. /dev/infiniband is not hidden as a whole: a listing
// shows our nodes, but nodes of real devices can still be named.
static const char *const roots[] = {
    "/sys/class/infiniband",
    "/sys/class/infiniband_verbs",
    "/sys/devices/virtual/weft",
};

static bool is_below(const char *path, const char *root)
{
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && (path[n] == 0 || path[n] == '/');
}

static bool is_ours(const char *path)
{
    if (strncmp(path, "/sys/", 5) != 0 && strncmp(path, "/dev/", 5) != 0)
        return false;
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
        if (is_below(path, roots[i]))
            return true;
    return strcmp(path, "/dev/infiniband") == 0 || strcmp(path, "/dev/infiniband/") == 0 ||
           preload_node_of(path) != NULL;
}

const char *preload_redirect(const char *path, char buf[PATH_MAX])
{
    if (!path || path[0] != '/' || (path[1] != 's' && path[1] != 'd') || !is_ours(path))
        return path;
    int saved = errno;
    const char *tree = preload_tree();
    int n = *tree ? snprintf(buf, PATH_MAX, "%s%s", tree, path) : -1;
    errno = saved;
    return n > 0 && n < PATH_MAX ? buf : path;
}

void preload_unredirect(char *path)
{
    const char *tree = preload_tree_peek();
    size_t n = strlen(tree);
    if (n && is_below(path, tree) && path[n] == '/')
        memmove(path, path + n, strlen(path + n) + 1);
}
