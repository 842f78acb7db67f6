// SPDX-License-Identifier: BSD-2-Clause
// fork(): registered memory is ordinary memory that nothing pins, so nothing has to be prepared.
#include "verbs/face.h"

WF_EXPORT int ibv_dontfork_range(void *base, size_t size);
WF_EXPORT int ibv_dofork_range(void *base, size_t size);

int ibv_fork_init(void)
{
    return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
    return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
    return 0;
}
