// SPDX-License-Identifier: BSD-2-Clause
// Where a job comes from. Every function returns a PMI code; init says PMI_FAIL when this is not
// the one.
#ifndef WF_PMI_BACKEND_H
#define WF_PMI_BACKEND_H

#include <stddef.h>

struct wf_pmi_job {
    int rank, size;
    int *clique; // ranks of this node, ascending; malloc'd
    int clique_size;
    char name[256];
};

struct wf_pmi_backend {
    int (*init)(struct wf_pmi_job *job);
    int (*finalize)(void);
    int (*barrier)(void);
    int (*gather)(const void *in, void *out, size_t len);
    void (*abort)(int code, const char *text);
    int (*put)(const char *key, const char *value);
    int (*get)(const char *key, char *value, size_t size);
};

extern const struct wf_pmi_backend wf_pmi_local; // weft run -n N
extern const struct wf_pmi_backend wf_pmi_pmix;  // PMIx
extern const struct wf_pmi_backend wf_pmi_alone; // a job of one

#endif
