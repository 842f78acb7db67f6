// SPDX-License-Identifier: BSD-2-Clause
#include <alps/libalpsutil.h>

#include "pmi/ranks.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static int number(const char *name, int otherwise)
{
    const char *v = getenv(name);
    return v && atoi(v) > 0 ? atoi(v) : otherwise;
}

int alps_get_placement_info(uint64_t apid, alpsAppLayout_t *layout, int **placementList,
                            int **targetNids, int **targetPes, int **targetLen,
                            struct in_addr **targetIps, int **startPe, int **totalPes,
                            int **nodePes, int **peCpus)
{
    int **lists[] = {placementList, targetNids, targetPes, targetLen,
                     startPe,       totalPes,   nodePes,   peCpus};
    (void)apid;
    if (!layout)
        return 0;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (lists[i])
            *lists[i] = NULL;
    if (targetIps)
        *targetIps = NULL;
    // weft run says where the ranks are; under other launchers a rank counts as alone on its node.
    int size = number(WF_RANKS_SIZE, 1), ppn = number(WF_RANKS_PPN, 1);
    int rank = number(WF_RANKS_RANK, 0), first = rank / ppn * ppn;
    char text[16];
    snprintf(text, sizeof(text), "%d", rank);
    setenv("ALPS_APP_PE", text, 0); // ALPS gave it to every rank; clients read it next
    *layout = (alpsAppLayout_t){.firstPe = first,
                                .numPesHere = first + ppn > size ? size - first : ppn,
                                .peDepth = 1,
                                .numPes = size,
                                .numNodes = (size + ppn - 1) / ppn};
    return 1;
}
