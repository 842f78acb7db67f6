/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients include it; none uses a name of it. */
#ifndef WEFT_ALPS_TOOLASSIST_H
#define WEFT_ALPS_TOOLASSIST_H
#include <alps/alps.h>
#endif
