// SPDX-License-Identifier: BSD-2-Clause
// Status values of the async verbs beyond those of Windows.
#ifndef _IBSTATUS_
#define _IBSTATUS_

#include "weft/wdm.h"

// The facility has the number of FILE_DEVICE_INFINIBAND; the values are errors with the customer
// bit.
#define FACILITY_INFINIBAND 0x3B

#define STATUS_IB_INSUFFICIENT_WR  ((NTSTATUS)0xE03B0001L) // the queue is full
#define STATUS_IB_INSUFFICIENT_SGE ((NTSTATUS)0xE03B0002L) // more SGEs than the queue was made for
#define STATUS_IB_INVALID_WR_TYPE  ((NTSTATUS)0xE03B0003L) // not a type that can be posted here
#define STATUS_IB_INVALID_STATE    ((NTSTATUS)0xE03B0004L) // the QP's state does not allow it
#define STATUS_IB_INVALID_PORT     ((NTSTATUS)0xE03B0005L) // returned by no verb

// Named by the RFC but no NTSTATUS; this is the one drivers use for the purpose (decision 8).
#define STATUS_INVALID_OPERATION STATUS_INVALID_DEVICE_REQUEST

#endif
