// SPDX-License-Identifier: BSD-2-Clause
#include "cli/cli.h"

#include <stdio.h>

int cli_version(int argc, char **argv)
{
    printf("weft %s\n", WEFT_VERSION);
    return CLI_OK;
}
