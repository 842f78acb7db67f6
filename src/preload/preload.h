// SPDX-License-Identifier: BSD-2-Clause
// libweft-preload.so shows programs the files and device nodes that the kernel would show for an
// RDMA device. Three tables say what there is; a face that needs more adds a row:
//   preload_nodes[] (nodes.c)  device nodes that a function of ours opens, e.g. rdma_cm's
//   roots[] (paths.c)          path prefixes that are looked up in the private tree instead
//   tree_fill.c                what the private tree holds
// The library is loaded into every child of `weft run`, most of which never touch RDMA: so it does
// nothing until one of these paths is named, needs no other library, and checks two bytes of every
// other path.
#ifndef WF_PRELOAD_PRELOAD_H
#define WF_PRELOAD_PRELOAD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define PRELOAD_EXPORT __attribute__((visibility("default")))

// A device node. open() is called in place of open(path, flags): a descriptor, or -1 with errno.
// NULL: the node can be seen (a character device, readable and writable) and opens as /dev/null.
struct preload_node {
    const char *path;
    int (*open)(int flags);
};
extern const struct preload_node preload_nodes[]; // ends with path NULL

int preload_rdmacm_open(int flags); // rdmacm.c

// The node of exactly this path, or NULL.
const struct preload_node *preload_node_of(const char *path);

// `path` itself, or where to look instead: written to buf. Builds or refreshes the private tree
// when it is concerned. Keeps errno.
const char *preload_redirect(const char *path, char buf[PATH_MAX]);

// The other way: a path inside the private tree becomes the one it stands for (in place).
void preload_unredirect(char *path);

// Folder of the private tree, made on first call; "" when there is nowhere to put it. Inside, paths
// stand as they would from "/". At most once a second it is brought up to date.
const char *preload_tree(void);

// The same without making or refreshing it.
const char *preload_tree_peek(void);

// Fill the tree at `root`, or bring it up to date (tree_fill.c).
void preload_tree_fill(const char *root);

// Write a file of the tree, with the folders above it; a link likewise. A reader sees the old or
// the new text, never half of it. Names are formats' results and must not leave the tree.
void preload_tree_file(const char *root, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void preload_tree_link(const char *root, const char *name, const char *target);
void preload_tree_remove(const char *root, const char *name);

// The next definition of a function behind this library (dlsym RTLD_NEXT).
void *preload_next(const char *name);

#endif
