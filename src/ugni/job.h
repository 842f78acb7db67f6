// SPDX-License-Identifier: BSD-2-Clause
// Jobs: limits, suspension, and what they use of the device.
#ifndef WF_UGNI_JOB_H
#define WF_UGNI_JOB_H

#include <stdbool.h>
#include <stdint.h>

bool wf_gni_job_may_attach(uint8_t ptag);
bool wf_gni_job_may_register(uint8_t ptag);
bool wf_gni_job_suspended(uint8_t ptag);
// The largest vmdh block of this process: these region numbers are kept for it.
uint32_t wf_gni_job_vmdh_entries(void);

#endif
