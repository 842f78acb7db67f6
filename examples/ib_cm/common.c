/* SPDX-License-Identifier: BSD-2-Clause */
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEPT 16

static struct note notes[KEPT];
static unsigned arrived, taken;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;

void die(const char *what, int error)
{
    fprintf(stderr, "%s: %s\n", what, strerror(error ? abs(error) : errno));
    exit(1);
}

void open_side(struct side *s, enum ibv_qp_type type)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_qp_init_attr init = {
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type,
        .sq_sig_all = 1,
    };
    if (!list || !list[0] || !(s->context = ibv_open_device(list[0])))
        die("no RDMA device", ENODEV);
    ibv_free_device_list(list);
    s->device = weft_ib_device(s->context);
    s->pd = ibv_alloc_pd(s->context);
    s->cq = ibv_create_cq(s->context, 8, NULL, NULL, 0);
    if (!s->device || !s->pd || !s->cq)
        die("set-up", 0);
    init.send_cq = init.recv_cq = s->cq;
    s->qp = ibv_create_qp(s->pd, &init);
    s->mr = ibv_reg_mr(s->pd, s->buf, sizeof(s->buf), IBV_ACCESS_LOCAL_WRITE);
    if (!s->qp || !s->mr)
        die("set-up", 0);
}

static void copy_params(struct note *n, const struct ib_cm_event *e)
{
    switch (e->event) {
    case IB_CM_REQ_RECEIVED:
        n->req = e->param.req_rcvd;
        break;
    case IB_CM_REP_RECEIVED:
        n->rep = e->param.rep_rcvd;
        break;
    case IB_CM_REJ_RECEIVED:
        n->reason = e->param.rej_rcvd.reason;
        break;
    case IB_CM_LAP_RECEIVED:
        n->path = *e->param.lap_rcvd.alternate_path;
        break;
    case IB_CM_APR_RECEIVED:
        n->ap_status = e->param.apr_rcvd.ap_status;
        break;
    case IB_CM_SIDR_REP_RECEIVED:
        n->sidr = e->param.sidr_rep_rcvd;
        break;
    default:
        break;
    }
}

int keep(struct ib_cm_id *id, struct ib_cm_event *event)
{
    pthread_mutex_lock(&lock);
    struct note *n = &notes[arrived++ % KEPT];
    memset(n, 0, sizeof(*n));
    n->event = event->event;
    n->id = id;
    copy_params(n, event);
    if (event->private_data)
        memcpy(n->data, event->private_data, IB_CM_REQ_PRIVATE_DATA_SIZE);
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&lock);
    return 0;
}

struct note expect(enum ib_cm_event_type event)
{
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&lock);
    while (arrived == taken && rc == 0)
        rc = pthread_cond_timedwait(&more, &lock, &until);
    if (rc)
        die("waiting for an event", rc);
    struct note n = notes[taken++ % KEPT];
    pthread_mutex_unlock(&lock);
    if (n.event == IB_CM_REJ_RECEIVED && event != IB_CM_REJ_RECEIVED)
        fprintf(stderr, "rejected: reason %d\n", n.reason);
    if (n.event != event) {
        fprintf(stderr, "event %d came, %d was expected\n", (int)n.event, (int)event);
        exit(1);
    }
    return n;
}

void move(struct side *s, struct ib_cm_id *id, enum ib_qp_state to)
{
    struct ib_qp_attr attr;
    int mask;
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = to;
    int rc = ib_cm_init_qp_attr(id, &attr, &mask);
    if (rc == 0)
        rc = weft_ib_modify_qp(s->qp, &attr, mask);
    if (rc)
        die("moving the QP", rc);
}

struct ib_sa_path_rec path_to(struct side *s, const char *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr *dst = (struct sockaddr *)&v4;
    struct ib_sa_path_rec path;
    if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1)
        dst = (struct sockaddr *)&v6;
    else if (inet_pton(AF_INET, address, &v4.sin_addr) != 1)
        die(address, EINVAL);
    int rc = weft_ib_path(s->context, NULL, dst, &path);
    if (rc)
        die(address, rc);
    return path;
}

void receive(struct side *s)
{
    struct ibv_sge sge = {(uintptr_t)s->buf, sizeof(s->buf), s->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(s->qp, &wr, &bad))
        die("ibv_post_recv", 0);
}

void send_text(struct side *s, const char *text)
{
    struct ibv_sge sge = {(uintptr_t)s->buf, sizeof(s->buf), s->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    snprintf(s->buf, sizeof(s->buf), "%s", text);
    if (ibv_post_send(s->qp, &wr, &bad))
        die("ibv_post_send", 0);
}

void complete(struct side *s)
{
    struct ibv_wc wc;
    int n;
    do
        n = ibv_poll_cq(s->cq, 1, &wc);
    while (n == 0);
    if (n < 0 || wc.status != IBV_WC_SUCCESS)
        die(n < 0 ? "ibv_poll_cq" : ibv_wc_status_str(wc.status), EIO);
}
