// SPDX-License-Identifier: BSD-2-Clause
// Commands that are RDMA programs themselves (weft perf, weft devinfo): a helper beside our
// libibverbs.so.1, run as weft run would, so that `weft` itself loads nothing.
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_helper(int argc, char **argv)
{
    char dir[PATH_MAX], path[PATH_MAX + 32];
    if (cli_libdir(dir) != 0)
        return cli_fail(CLI_FAILED, argv[0],
                        "%s/libibverbs.so.1 is missing: build or install all of Weft", dir);
    snprintf(path, sizeof(path), "%s/weft-verbs", dir);
    setenv("LD_LIBRARY_PATH", dir, 1);
    execv(path, argv);
    return cli_fail(CLI_FAILED, argv[0], "%s: %s", path, strerror(errno));
}
