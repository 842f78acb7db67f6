// SPDX-License-Identifier: BSD-2-Clause
// The counters that weft stat and weft top show, by mlx5's names.
#ifndef WF_CLI_COUNTERS_H
#define WF_CLI_COUNTERS_H

#include "cli/fabric.h"

struct cli_counter {
    const char *name, *help;
    uint64_t (*get)(const struct wf_hca *h);
};
extern const struct cli_counter cli_counters[]; // ends with name NULL

#endif
