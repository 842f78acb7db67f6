// SPDX-License-Identifier: BSD-2-Clause
// Include before the header that uses DEFINE_GUID, in one source file, to make its GUIDs.
#ifndef INITGUID
#define INITGUID
#endif
