// SPDX-License-Identifier: BSD-2-Clause
// JSON lines of WEFT_EXPLAIN_FILE; the format is in weft-explain(5).
#ifndef WF_BASE_EXPLAIN_JSON_H
#define WF_BASE_EXPLAIN_JSON_H

#include "base/notes.h"

#include <stdbool.h>

bool wf_explain_json_open(void); // false: no file asked for, or it cannot be written
void wf_explain_json(const struct wf_note *n, bool repeated);

#endif
