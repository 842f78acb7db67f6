// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/rc.h"
#include "base/clock.h"

#include <errno.h>

int wf_gni_rc_connect(struct wf_gni_peer *peer)
{
    (void)peer;
    return -EOPNOTSUPP;
}

void wf_gni_rc_poll(void)
{
}

uint64_t wf_gni_rc_next(void)
{
    return WF_NEVER;
}
