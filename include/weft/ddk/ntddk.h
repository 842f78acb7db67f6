// SPDX-License-Identifier: BSD-2-Clause
// Lets driver sources that include <ntddk.h> compile unchanged: add this folder to the include
// path.
#include "weft/wdm.h"
