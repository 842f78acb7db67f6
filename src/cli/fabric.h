// SPDX-License-Identifier: BSD-2-Clause
// How commands look at a fabric: weftd tells who there is, and what a process is doing is read from
// its memory (process_vm_readv): nothing runs in it, so programs that are stopped in a debugger or
// hang can be looked at as well. All that is read is checked before it is used.
#ifndef WF_CLI_FABRIC_H
#define WF_CLI_FABRIC_H

#include "base/notes.h"
#include "engine/engine.h"
#include "link/control.h"

struct cli_process {
    uint32_t slot;
    int32_t pid;
    char name[32];
    const struct wf_region *region; // mapped, read only
    bool readable;                  // its memory can be read, and its build is ours
    struct wf_hca hca;              // a copy
};

struct cli_fabric {
    int sock, shared_fd;
    struct wf_gid_table gids;
    unsigned n;
    struct cli_process *processes[WF_SLOTS];
};

// 0 or an exit status; says itself what is wrong.
int cli_fabric_open(const char *command, struct cli_fabric *f);
void cli_fabric_close(struct cli_fabric *f);
int cli_fabric_faults(struct cli_fabric *f, const char *text, size_t len);
int cli_fabric_capture(struct cli_fabric *f, const char *path, uint64_t ring, uint32_t snaplen);
// The process of this id; or NULL, a message, and the exit status.
struct cli_process *cli_process_find(const char *command, struct cli_fabric *f, const char *pid,
                                     int *status);

// Copy from the process: false when it is not there.
bool cli_peek(const struct cli_process *p, const void *address, void *to, size_t len);
bool cli_refresh(struct cli_process *p); // hca again

// Walk the lists of objects. fn gets copies; returns how many there were.
struct cli_path_text {
    char text[64]; // "shm pid 123", "udp 10.0.0.2"
};
unsigned cli_each_qp(const struct cli_process *p,
                     void (*fn)(const struct cli_process *p, const struct wf_qp *qp, void *arg),
                     void *arg);
unsigned cli_each_cq(const struct cli_process *p,
                     void (*fn)(const struct cli_process *p, const struct wf_cq *cq, void *arg),
                     void *arg);
unsigned cli_each_mr(const struct cli_process *p,
                     void (*fn)(const struct cli_process *p, const struct wf_mr *mr, void *arg),
                     void *arg);
void cli_path_name(const struct cli_process *p, const struct wf_qp *qp, char *buf, size_t len);
const char *cli_qp_type(const struct wf_qp *qp);
const char *cli_qp_state(enum ibv_qp_state s);
void cli_gid_text(const union ibv_gid *gid, char *buf, size_t len);

#endif
