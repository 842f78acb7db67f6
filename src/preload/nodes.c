// SPDX-License-Identifier: BSD-2-Clause
#include "preload/preload.h"

#include <string.h>

const struct preload_node preload_nodes[] = {
    {"/dev/infiniband/uverbs0", NULL},
    {"/dev/infiniband/rdma_cm", preload_rdmacm_open},
    {NULL, NULL},
};

const struct preload_node *preload_node_of(const char *path)
{
    for (const struct preload_node *n = preload_nodes; n->path; n++)
        if (strcmp(n->path, path) == 0)
            return n;
    return NULL;
}
