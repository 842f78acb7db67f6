// SPDX-License-Identifier: BSD-2-Clause
#include "cli/cli.h"

int cli_explain_pid(const char *pid, bool json)
{
    return cli_fail(CLI_FAILED, "explain", "--pid is not supported yet");
}
