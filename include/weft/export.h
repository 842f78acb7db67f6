// SPDX-License-Identifier: BSD-2-Clause
// Marks what libweft.so.0 exports.
#ifndef WEFT_EXPORT_H
#define WEFT_EXPORT_H

#define WEFT_API __attribute__((visibility("default")))

#endif
