#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 180
# cases: rc uc ud xrc atomic sizes both events queues inline time
# perftest between two processes on one host.
. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/programs.sh"
isolate "$@"
address=localhost sgid=0 cgid=0
perftests "${1:-rc}"
