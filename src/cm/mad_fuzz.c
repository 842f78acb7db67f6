// SPDX-License-Identifier: BSD-2-Clause
#include "cm/mad.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Whatever decodes must encode to something that decodes to the same.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t mad[WF_MAD_SIZE] = {0}, again[WF_MAD_SIZE];
    struct wf_cm_msg a, b;
    memcpy(mad, data, size < sizeof(mad) ? size : sizeof(mad));
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    if (wf_cm_decode(mad, &a))
        return 0;
    wf_cm_encode(&a, again);
    if (wf_cm_decode(again, &b) || memcmp(&a, &b, sizeof(a)) != 0)
        abort();
    return 0;
}
