// SPDX-License-Identifier: BSD-2-Clause
#include "base/fault_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wf_fault_rules rules;
    char err[256];
    (void)wf_fault_parse((const char *)data, size, &rules, err, sizeof(err));
    return 0;
}
