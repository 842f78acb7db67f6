/* SPDX-License-Identifier: BSD-2-Clause */
/* The type alone, for clients that name it in structures although they are built without xpmem. */
#ifndef WEFT_XPMEM_H
#define WEFT_XPMEM_H
typedef long long xpmem_segid_t;
#endif
