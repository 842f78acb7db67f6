/* SPDX-License-Identifier: BSD-2-Clause */
/* For the examples of <rdma/ib_cm.h>: a QP of verbs, and events of handlers brought to main(). */
#ifndef EXAMPLE_COMMON_H
#define EXAMPLE_COMMON_H

#include <rdma/ib_cm.h>
#include <weft/ib.h>

#define SERVICE 0x1000000000cafe00ULL /* an id of our own; other examples add to it */

/* What a handler was told, kept for main(). */
struct note {
    enum ib_cm_event_type event;
    struct ib_cm_id *id;
    union {
        struct ib_cm_req_event_param req;
        struct ib_cm_rep_event_param rep;
        int reason, ap_status;
        struct ib_cm_sidr_rep_event_param sidr;
    };
    struct ib_sa_path_rec path; /* alternate path of a LAP */
    char data[256];
};

struct side {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct ib_device *device;
    char buf[64];
};

void die(const char *what, int error); /* error: -errno, or 0 to read errno */
void open_side(struct side *s, enum ibv_qp_type type);

int keep(struct ib_cm_id *id, struct ib_cm_event *event); /* the handler of all ids */
struct note expect(enum ib_cm_event_type event);          /* waits for it, 20 seconds at most */

/* Move the QP along with the connection. */
void move(struct side *s, struct ib_cm_id *id, enum ib_qp_state to);
struct ib_sa_path_rec path_to(struct side *s, const char *address);

void receive(struct side *s);
void send_text(struct side *s, const char *text);
void complete(struct side *s);

#endif
