// SPDX-License-Identifier: BSD-2-Clause
// weft why: what a program that hangs waits for.
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/fabric.h"

#include <stdio.h>
#include <string.h>

static int help(FILE *out, int status)
{
    fputs(
        "usage: weft why PID\n\n"
        "Who waits for what in a program that does not go on: requests without an answer, missing\n"
        "receives, queues that are full with nothing signalled, armed CQs that nobody polls, "
        "events\n"
        "that were never acknowledged. It is read from outside; the program may be stopped.\n",
        out);
    return status;
}

struct finding {
    unsigned n;
    uint64_t now;
};

static void say(struct finding *f, const char *what, const char *todo)
{
    f->n++;
    printf("  - %s\n    %s\n", what, todo);
}

static bool first_request(const struct cli_process *p, const struct wf_qp *qp, uint32_t counter,
                          struct wf_swqe *w)
{
    const uint8_t *at = qp->sq.buf + ((size_t)(counter & qp->sq.mask) << qp->sq.shift);
    return qp->sq.buf && cli_peek(p, at, w, sizeof(*w));
}

static void sends_in_flight(struct finding *f, const struct cli_process *p, const struct wf_qp *qp)
{
    struct wf_swqe w;
    char what[320];
    uint32_t n = qp->sq.head - qp->sq.una;
    if (!n || !first_request(p, qp, qp->sq.una, &w))
        return;
    if (qp->req.rnr_until) {
        snprintf(
            what, sizeof(what),
            "QP 0x%06x: %u sends wait because QP 0x%06x has no receive posted (RNR), the first "
            "is wr_id 0x%llx",
            qp->qpn, n, qp->attr.dest_qp_num, (unsigned long long)w.wr_id);
        say(f, what, "the peer must post receives; it may itself wait for something");
    } else if (qp->state == IBV_QPS_SQD) {
        snprintf(what, sizeof(what), "QP 0x%06x: %u sends wait: the QP is in SQD", qp->qpn, n);
        say(f, what, "move it to RTS again");
    } else if (w.state == WF_SWQE_STARTED) {
        bool alone = qp->attr.timeout == 0;
        snprintf(what, sizeof(what),
                 "QP 0x%06x: %u sends wait for an answer of QP 0x%06x, %llu timeouts so far, the "
                 "first is wr_id 0x%llx%s",
                 qp->qpn, n, qp->attr.dest_qp_num, (unsigned long long)qp->stat_timeouts,
                 (unsigned long long)w.wr_id, alone ? "; its timeout is 0: for ever" : "");
        say(f, what, "look at the peer (weft why of its pid): does it run, is its QP in RTS?");
    }
}

static void blocked_request(struct finding *f, const struct cli_process *p, const struct wf_qp *qp)
{
    struct wf_swqe w;
    char what[320];
    if (qp->sq.next == qp->sq.head || !first_request(p, qp, qp->sq.next, &w))
        return;
    bool answered = w.opcode == IBV_WR_RDMA_READ || w.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                    w.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (w.flags & IBV_SEND_FENCE && qp->req.reads && w.state == WF_SWQE_POSTED) {
        snprintf(what, sizeof(what),
                 "QP 0x%06x: wr_id 0x%llx has a fence and waits for %u READs or atomics before it",
                 qp->qpn, (unsigned long long)w.wr_id, qp->req.reads);
        say(f, what, "their answers are missing, see above");
    } else if (answered && qp->attr.max_rd_atomic && qp->req.reads >= qp->attr.max_rd_atomic) {
        snprintf(
            what, sizeof(what),
            "QP 0x%06x: wr_id 0x%llx waits: %u READs and atomics are outstanding, max_rd_atomic "
            "allows no more",
            qp->qpn, (unsigned long long)w.wr_id, qp->req.reads);
        say(f, what, "wait for their completions, or set a larger max_rd_atomic on both sides");
    } else if (qp->blocked) {
        snprintf(what, sizeof(what), "QP 0x%06x: the way to the peer is full", qp->qpn);
        say(f, what, "the peer does not take its packets: is it stopped?");
    }
}

static void full_queue(struct finding *f, const struct cli_process *p, const struct wf_qp *qp)
{
    char what[320];
    uint32_t held = qp->sq.head - qp->sq.tail, done = qp->sq.una - qp->sq.tail;
    if (!qp->sq.max_wr || held < qp->sq.max_wr || done < qp->sq.max_wr)
        return;
    for (uint32_t i = qp->sq.tail; i != qp->sq.head; i++) {
        struct wf_swqe w;
        if (!first_request(p, qp, i, &w) || qp->sig_all || w.flags & IBV_SEND_SIGNALED) {
            snprintf(
                what, sizeof(what),
                "QP 0x%06x: the send queue is full of %u done requests, completions wait in its CQ",
                qp->qpn, held);
            say(f, what, "poll the send CQ: its completions give the slots back");
            return;
        }
    }
    snprintf(what, sizeof(what),
             "QP 0x%06x: the send queue is full of %u done requests and none of them was signalled",
             qp->qpn, held);
    say(f, what, "signal one send now and then: only its completion frees the slots before it");
}

static void receiver(struct finding *f, const struct wf_qp *qp)
{
    char what[320];
    bool ready = qp->state >= IBV_QPS_RTR && qp->state != IBV_QPS_ERR;
    if (!ready || qp->srq || !qp->rq.buf || qp->rq.next != qp->rq.head || !qp->resp.nak_sent)
        return;
    snprintf(what, sizeof(what),
             "QP 0x%06x: a message of QP 0x%06x came and found no receive posted (RNR)", qp->qpn,
             qp->attr.dest_qp_num);
    say(f, what, "post receives on this QP");
}

static void on_qp(const struct cli_process *p, const struct wf_qp *qp, void *arg)
{
    struct finding *f = arg;
    char what[320];
    if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE) {
        snprintf(what, sizeof(what), "QP 0x%06x is in %s since [%u]: nothing goes on there",
                 qp->qpn, cli_qp_state(qp->state), qp->root);
        say(f, what,
            qp->root ? "weft explain --pid tells what happened"
                     : "the program, or the end of its connection, put it there");
    }
    sends_in_flight(f, p, qp);
    blocked_request(f, p, qp);
    full_queue(f, p, qp);
    receiver(f, qp);
}

static void on_cq(const struct cli_process *p, const struct wf_cq *cq, void *arg)
{
    struct finding *f = arg;
    char what[320];
    uint32_t waiting = cq->pi - atomic_load_explicit(&cq->ci, memory_order_relaxed);
    if (cq->failed) {
        snprintf(what, sizeof(what), "a CQ of %u entries overran and is dead", cq->size);
        say(f, what, "create it larger, or poll sooner");
    } else if (waiting) {
        snprintf(what, sizeof(what), "a CQ holds %u completions that nobody polls%s", waiting,
                 cq->armed     ? "; it is armed"
                 : cq->on_comp ? "; it is not armed"
                               : "");
        say(f, what,
            cq->armed
                ? "completions that came before it was armed raise no event: poll after arming"
                : "poll it; with a channel: arm it, then poll once more, then wait");
    }
}

static void waits(struct finding *f, const struct cli_process *p)
{
    static struct wf_notes notes;
    if (!cli_peek(p, (const void *)(uintptr_t)p->region->view.notes, &notes, sizeof(notes)) ||
        notes.size != sizeof(notes))
        return;
    for (unsigned i = 0; i < WF_NOTE_WAITS; i++) {
        struct wf_note_wait *w = &notes.waits[i];
        char what[WF_NOTE_TEXT + 80];
        w->text[WF_NOTE_TEXT - 1] = 0;
        if (w->tid <= 0)
            continue;
        snprintf(what, sizeof(what), "thread %d, for %.1f s: %s", w->tid,
                 (double)(f->now - w->since_ns) / 1e9, w->text);
        say(f, what, "acknowledge each event that was got: ibv_ack_cq_events, ibv_ack_async_event");
    }
}

static int show(const struct cli_process *p)
{
    struct finding f = {.now = wf_clock_ns()};
    if (!p->readable)
        return cli_fail(CLI_FAILED, "why", "the memory of process %d cannot be read", p->pid);
    printf("%s, pid %d:\n", p->name, p->pid);
    waits(&f, p);
    cli_each_qp(p, on_qp, &f);
    cli_each_cq(p, on_cq, &f);
    if (!f.n)
        puts("  nothing in Weft keeps it waiting: no request is under way, no completion waits");
    return CLI_OK;
}

int cli_why(int argc, char **argv)
{
    struct cli_fabric f;
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return help(stdout, CLI_OK);
    if (argc > 1 && argv[1][0] == '-')
        return cli_fail(CLI_USAGE, "why", "no option \"%s\"", argv[1]);
    if (argc != 2)
        return cli_fail(CLI_USAGE, "why", "one process id is needed");
    int status = cli_fabric_open("why", &f);
    if (status)
        return status;
    struct cli_process *p = cli_process_find("why", &f, argv[1], &status);
    status = p ? show(p) : status;
    cli_fabric_close(&f);
    return status;
}
