/* SPDX-License-Identifier: BSD-2-Clause */
/* Cray's placement service, as far as uGNI clients ask it. See libalpslli.h, libalpsutil.h. */
#ifndef WEFT_ALPS_H
#define WEFT_ALPS_H

#include <stdint.h>

/* Credentials of a job. */
typedef struct {
    uint8_t ptag;
    uint32_t cookie;
} alpsAppGni_t;

/* Answer to ALPS_APP_LLI_ALPS_REQ_GNI. */
typedef struct {
    int index;
    int count; /* of credentials; 1 */
    union {
        alpsAppGni_t buf[1];
    } u;
} alpsAppLLIGni_t;

/* Where the ranks of a job are, seen from one of its nodes. */
typedef struct {
    int firstPe;    /* lowest rank on this node */
    int numPesHere; /* ranks on this node */
    int peDepth;
    int numPes; /* ranks of the job */
    int numNodes;
} alpsAppLayout_t;

#endif
