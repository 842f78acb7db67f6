#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 60
# cases: arbel_ring unload
# What the verbs library answers, in one process: tests/verbs/CASE.c.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
run "$tools/verbs_$1"
