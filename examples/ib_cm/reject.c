/* SPDX-License-Identifier: BSD-2-Clause */
/* A server that turns everybody away, with a reason of its own.
 *   reject            turns one client away
 *   reject ADDRESS    is turned away there */
#include "common.h"

#include <stdio.h>
#include <string.h>

static struct side side;

/* A handler may answer at once, and have its id destroyed by what it returns. */
static int turn_away(struct ib_cm_id *id, struct ib_cm_event *event)
{
    if (event->event == IB_CM_REQ_RECEIVED)
        ib_send_cm_rej(id, IB_CM_REJ_CONSUMER_DEFINED, NULL, 0, "not today", 10);
    keep(id, event);
    return event->event == IB_CM_REQ_RECEIVED;
}

static void serve(void)
{
    struct ib_cm_id *listener = ib_create_cm_id(side.device, turn_away, NULL);
    struct ib_cm_compare_data compare = {.data = "knock", .mask = {0xff, 0xff, 0xff, 0xff, 0xff}};
    if (!listener)
        die("ib_create_cm_id", 0);
    int rc = ib_cm_listen(listener, cpu_to_be64(SERVICE + 1), 0, &compare);
    if (rc)
        die("ib_cm_listen", rc);
    printf("listening\n");
    fflush(stdout);
    struct note req = expect(IB_CM_REQ_RECEIVED);
    printf("turned away: %s\n", req.data);
    ib_destroy_cm_id(listener);
}

static int ask(const char *address, const char *word)
{
    struct ib_sa_path_rec path = path_to(&side, address);
    struct ib_cm_id *id = ib_create_cm_id(side.device, keep, NULL);
    struct ib_cm_req_param req = {
        .primary_path = &path,
        .service_id = cpu_to_be64(SERVICE + 1),
        .qp_num = side.qp->qp_num,
        .qp_type = IB_QPT_RC,
        .private_data = word,
        .private_data_len = (u8)(strlen(word) + 1),
        .remote_cm_response_timeout = 18,
        .local_cm_response_timeout = 18,
        .max_cm_retries = 5,
    };
    if (!id)
        die("ib_create_cm_id", 0);
    int rc = ib_send_cm_req(id, &req);
    if (rc)
        die("ib_send_cm_req", rc);
    struct note rej = expect(IB_CM_REJ_RECEIVED);
    printf("%s: reason %d, %s\n", word, rej.reason, rej.data);
    ib_destroy_cm_id(id);
    return rej.reason;
}

int main(int argc, char **argv)
{
    open_side(&side, IBV_QPT_RC);
    if (argc == 1) {
        serve();
        return 0;
    }
    /* The listener looks at the first five bytes of the private data: this one is for nobody. */
    return ask(argv[1], "hello") == IB_CM_REJ_INVALID_SERVICE_ID &&
                   ask(argv[1], "knock, knock") == IB_CM_REJ_CONSUMER_DEFINED
               ? 0
               : 1;
}
