/* SPDX-License-Identifier: BSD-2-Clause */
/* Placement of a job's ranks. Link with -lalpsutil. */
#ifndef WEFT_LIBALPSUTIL_H
#define WEFT_LIBALPSUTIL_H

#include <alps/alps.h>
#include <netinet/in.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Fills *layout and returns 1; 0 when there is no job. Each list pointer that is not null gets
 * null: the lists name nodes of a Cray's network, which do not exist.
 */
int alps_get_placement_info(uint64_t apid, alpsAppLayout_t *layout, int **placementList,
                            int **targetNids, int **targetPes, int **targetLen,
                            struct in_addr **targetIps, int **startPe, int **totalPes,
                            int **nodePes, int **peCpus);

#ifdef __cplusplus
}
#endif
#endif
