// SPDX-License-Identifier: BSD-2-Clause
// The public headers of the verbs library compile as C++.
#include <arbel/cqe.h>
#include <weft/weft.h>

static_assert(sizeof(arbel_cqe) == ARBEL_CQE_BYTES, "an entry has 32 bytes");
