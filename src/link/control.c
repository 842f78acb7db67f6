// SPDX-License-Identifier: BSD-2-Clause
#include "link/control.h"

#include "link/fabric_impl.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

int wf_control_read(int fd, struct wf_control *out)
{
    for (int tries = 0; tries < 1000; tries++) {
        uint32_t after;
        if (pread(fd, out, sizeof(*out), WF_CONTROL_OFFSET) != sizeof(*out))
            return -EPROTO;
        uint32_t before = atomic_load(&out->seq);
        if (pread(fd, &after, sizeof(after), WF_CONTROL_OFFSET) != sizeof(after))
            return -EPROTO;
        if (before & 1 || before != after) {
            sched_yield();
            continue;
        }
        out->capture_path[sizeof(out->capture_path) - 1] = 0;
        return out->faults_len <= sizeof(out->faults) ? 0 : -EPROTO;
    }
    return -EAGAIN;
}

int wf_fabric_control(const struct wf_fabric *f, struct wf_control *out)
{
    return wf_control_read(f->gid_fd, out);
}
