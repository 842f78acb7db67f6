// SPDX-License-Identifier: BSD-2-Clause
// What <rdma/ib_cm.h> promises beyond the exchanges: both ends in one process, no QPs.
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/ib_cm.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weft/ib.h>

#define SERVICE cpu_to_be64(0x1000000000beef00ULL)

static struct ib_device *device;
static struct ib_sa_path_rec path;
static atomic_int events[32];
static _Atomic(struct ib_cm_id *) child;
static atomic_int slow, answer, nested;
static u32 next_qpn = 100;

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "line %d: %s\n", __LINE__, #x);                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void wait_event(enum ib_cm_event_type type)
{
    for (int i = 0; i < 10000 && !events[type]; i++)
        pause_ms(1);
    if (!events[type]) {
        fprintf(stderr, "event %d does not come\n", (int)type);
        exit(1);
    }
    events[type]--;
}

static int handler(struct ib_cm_id *id, struct ib_cm_event *event)
{
    if (event->event == IB_CM_REQ_RECEIVED) {
        CHECK(event->param.req_rcvd.listen_id && event->param.req_rcvd.listen_id != id);
        CHECK(id->context == event->param.req_rcvd.listen_id->context);
        CHECK(id->state == IB_CM_REQ_RCVD);
        child = id;
    }
    if (slow)
        pause_ms(slow);
    if (nested)
        ib_destroy_cm_id(id); // forbidden: taken for a non-zero return
    events[event->event]++;
    return event->event == IB_CM_REQ_RECEIVED ? answer : 0;
}

static struct ib_cm_id *new_id(void)
{
    struct ib_cm_id *id = ib_create_cm_id(device, handler, &events);
    CHECK(id);
    CHECK(id->state == IB_CM_IDLE && id->remote_cm_qpn == 1 && id->local_id);
    return id;
}

static struct ib_cm_id *ask(__be64 service, const char *data)
{
    struct ib_cm_id *id = new_id();
    struct ib_cm_req_param p = {
        .primary_path = &path,
        .service_id = service,
        .qp_num = next_qpn++,
        .qp_type = IB_QPT_RC,
        .private_data = data,
        .private_data_len = (u8)strlen(data),
        .remote_cm_response_timeout = 16,
        .local_cm_response_timeout = 16,
        .max_cm_retries = 7,
    };
    CHECK(ib_send_cm_req(id, &p) == 0);
    return id;
}

static void listeners(void)
{
    struct ib_cm_id *a = new_id(), *b = new_id(), *c = new_id();
    struct ib_cm_compare_data x = {.data = "x", .mask = {0xff}}, y = {.data = "y", .mask = {0xff}};
    CHECK(ib_cm_listen(a, SERVICE, 0, &x) == 0 && a->state == IB_CM_LISTEN);
    CHECK(ib_cm_listen(b, SERVICE, 0, &x) == -EBUSY);
    CHECK(ib_cm_listen(b, SERVICE, 0, NULL) == -EBUSY);
    CHECK(ib_cm_listen(b, SERVICE, 0, &y) == 0);
    CHECK(ib_cm_listen(b, SERVICE, 0, &y) == -EINVAL);
    CHECK(ib_cm_listen(c, cpu_to_be64(0x0200000000000005ULL), 0, NULL) == -EINVAL);
    CHECK(ib_cm_listen(c, IB_CM_ASSIGN_SERVICE_ID, 0, NULL) == 0);
    CHECK((c->service_id & IB_SERVICE_ID_AGN_MASK) == IB_CM_ASSIGN_SERVICE_ID);
    CHECK(c->service_id != IB_CM_ASSIGN_SERVICE_ID);
    ib_destroy_cm_id(a);
    ib_destroy_cm_id(b);
    ib_destroy_cm_id(c);
}

static void nonzero_destroys(struct ib_cm_id *listener)
{
    answer = 1;
    struct ib_cm_id *id = ask(listener->service_id, "no");
    wait_event(IB_CM_REQ_RECEIVED);
    answer = 0;
    wait_event(IB_CM_REJ_RECEIVED); // the new id was destroyed: reason 28
    CHECK(id->state == IB_CM_IDLE);
    ib_destroy_cm_id(id);
    // -ENOMEM: not a word, so the request comes again.
    answer = -ENOMEM;
    id = ask(listener->service_id, "again");
    wait_event(IB_CM_REQ_RECEIVED);
    answer = 0;
    wait_event(IB_CM_REQ_RECEIVED);
    ib_destroy_cm_id(id);
    wait_event(IB_CM_REJ_RECEIVED); // reason 4, at the passive side
    ib_destroy_cm_id(child);
}

static void destroy_waits(struct ib_cm_id *listener)
{
    struct timespec a, b;
    struct ib_cm_id *id = ask(listener->service_id, "slow");
    slow = 300;
    wait_event(IB_CM_REQ_RECEIVED);
    CHECK(ib_send_cm_rej(child, IB_CM_REJ_CONSUMER_DEFINED, NULL, 0, NULL, 0) == 0);
    pause_ms(100); // the handler of `id` runs now
    clock_gettime(CLOCK_MONOTONIC, &a);
    ib_destroy_cm_id(id);
    clock_gettime(CLOCK_MONOTONIC, &b);
    CHECK((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 100);
    CHECK(events[IB_CM_REJ_RECEIVED] == 1);
    events[IB_CM_REJ_RECEIVED] = 0;
    slow = 0;
    ib_destroy_cm_id(child);
}

static void destroy_in_handler(struct ib_cm_id *listener)
{
    nested = 1;
    struct ib_cm_id *id = ask(listener->service_id, "nested");
    wait_event(IB_CM_REQ_RECEIVED);
    // The active side's handler destroys its id too.
    wait_event(IB_CM_REJ_RECEIVED);
    nested = 0;
    (void)id;
    pause_ms(50);
}

static void whole_life(struct ib_cm_id *listener)
{
    struct ib_cm_id *id = ask(listener->service_id, "life");
    wait_event(IB_CM_REQ_RECEIVED);
    struct ib_cm_rep_param rep = {.qp_num = next_qpn++};
    CHECK(ib_send_cm_rtu(child, NULL, 0) == -EINVAL);
    CHECK(ib_send_cm_mra(child, 18, NULL, 0) == 0);
    wait_event(IB_CM_MRA_RECEIVED);
    CHECK(ib_send_cm_rep(child, &rep) == 0);
    wait_event(IB_CM_REP_RECEIVED);
    CHECK(ib_cm_notify(child, IB_EVENT_COMM_EST) == 0);
    wait_event(IB_CM_USER_ESTABLISHED);
    CHECK(ib_cm_notify(child, IB_EVENT_COMM_EST) == -EISCONN);
    CHECK(ib_cm_notify(child, IB_EVENT_SQ_DRAINED) == -EINVAL);
    CHECK(ib_send_cm_rtu(id, NULL, 0) == 0 && id->state == IB_CM_ESTABLISHED);
    CHECK(id->remote_id == child->local_id && child->remote_id == id->local_id);
    CHECK(ib_send_cm_dreq(id, NULL, 0) == 0 && id->state == IB_CM_DREQ_SENT);
    wait_event(IB_CM_DREQ_RECEIVED);
    CHECK(ib_send_cm_drep(child, NULL, 0) == 0 && child->state == IB_CM_TIMEWAIT);
    wait_event(IB_CM_DREP_RECEIVED);
    wait_event(IB_CM_TIMEWAIT_EXIT);
    wait_event(IB_CM_TIMEWAIT_EXIT);
    ib_destroy_cm_id(id);
    ib_destroy_cm_id(child);
}

int main(int argc, char **argv)
{
    struct sockaddr_in here = {.sin_family = AF_INET};
    CHECK(argc == 2 && inet_pton(AF_INET, argv[1], &here.sin_addr) == 1);
    device = weft_ib_device(NULL);
    CHECK(device && device->node_guid);
    CHECK(weft_ib_path(NULL, NULL, (struct sockaddr *)&here, &path) == 0);
    CHECK(!ib_create_cm_id(NULL, handler, NULL) && errno == EINVAL);
    listeners();
    struct ib_cm_id *listener = new_id();
    CHECK(ib_cm_listen(listener, IB_CM_ASSIGN_SERVICE_ID, 0, NULL) == 0);
    nonzero_destroys(listener);
    destroy_waits(listener);
    destroy_in_handler(listener);
    whole_life(listener);
    ib_destroy_cm_id(listener);
    for (int i = 0; i < 32; i++)
        CHECK(!events[i]);
    printf("all rules hold\n");
    return 0;
}
