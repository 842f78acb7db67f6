// SPDX-License-Identifier: BSD-2-Clause
// Two timers a QP: the local ACK timeout (IBA 9.7.6.1.3) and the wait after an RNR NAK (9.7.5.2.8).
// Callers report what happened; nobody else touches a deadline.
#include "base/clock.h"
#include "qp/qp.h"

static uint64_t ack_timeout_ns(const struct wf_qp *qp)
{
    return 4096ull << qp->attr.timeout;
}

static void update(struct wf_qp *qp)
{
    uint64_t d = qp->req.ack_deadline;
    if (qp->req.rnr_until && qp->req.rnr_until < d)
        d = qp->req.rnr_until;
    bool nearer = d < qp->deadline;
    qp->deadline = d;
    // A deadline that moves away is found out when the old one comes; only a nearer one matters.
    if (nearer)
        qp->env->ops->deadline(qp);
}

static bool outstanding(const struct wf_qp *qp)
{
    return qp->req.sent_psn != qp->req.una_psn;
}

void wf_timer_start(struct wf_qp *qp)
{
    if (!qp->attr.timeout || qp->req.ack_deadline != WF_NEVER)
        return;
    qp->req.ack_deadline = qp->env->now + ack_timeout_ns(qp);
    update(qp);
}

void wf_timer_progress(struct wf_qp *qp)
{
    qp->req.retries = qp->attr.retry_cnt;
    qp->req.rnr_retries = qp->attr.rnr_retry;
    qp->req.went_back = false;
    qp->req.heard = WF_R_NO_ANSWER;
    if (qp->peer_dead) { // what it sent before its end still counts
        qp->req.dying = false;
        wf_timer_death(qp);
        return;
    }
    qp->req.ack_deadline =
        qp->attr.timeout && outstanding(qp) ? qp->env->now + ack_timeout_ns(qp) : WF_NEVER;
    update(qp);
}

void wf_timer_rnr(struct wf_qp *qp, uint64_t wait)
{
    qp->req.rnr_until = qp->env->now + wait;
    qp->req.ack_deadline = WF_NEVER;
    update(qp);
}

// An adapter would notice a dead peer by its retries only, which leaves a program some time to get
// done and go. Requests fail no later than that, and soon enough for those who wait for it.
#define DEATH_NS 100000000ull

void wf_timer_death(struct wf_qp *qp)
{
    if (qp->sq.una == qp->sq.head || qp->req.dying)
        return;
    uint64_t patience = ack_timeout_ns(qp) * (qp->attr.retry_cnt + 1u);
    if (!qp->attr.timeout || patience > DEATH_NS)
        patience = DEATH_NS;
    qp->req.dying = true;
    qp->req.rnr_until = 0;
    qp->req.ack_deadline = qp->env->now + patience;
    update(qp);
}

void wf_timer_stop(struct wf_qp *qp)
{
    qp->req.ack_deadline = WF_NEVER;
    qp->req.rnr_until = 0;
    qp->deadline = WF_NEVER;
}

static void ack_timeout(struct wf_qp *qp)
{
    qp->req.ack_deadline = WF_NEVER;
    if (qp->peer_dead) {
        wf_retire_failed(qp, IBV_WC_RETRY_EXC_ERR, WF_R_PEER_DIED);
        return;
    }
    if (!outstanding(qp))
        return;
    if (qp->env->ops->unseen(qp)) {
        wf_timer_start(qp);
        return;
    }
    qp->stat_timeouts++;
    qp->env->counters.local_ack_timeout_err++;
    // A link that sends later than we are told finds no memory, and nobody else hears of it.
    if (wf_payload_gone(qp)) {
        wf_retire_failed(qp, IBV_WC_LOC_PROT_ERR, WF_R_LOCAL_FAULT);
        return;
    }
    if (!qp->req.retries) {
        if (wf_migrate_instead_of_failing(qp))
            return;
        wf_retire_failed(qp, IBV_WC_RETRY_EXC_ERR, qp->req.heard);
        return;
    }
    qp->req.retries--;
    wf_req_window_shrink(qp, true);
    wf_req_go_back(qp);
    wf_timer_start(qp);
    qp->env->ops->ready(qp);
}

void wf_qp_expire(struct wf_qp *qp)
{
    uint64_t now = qp->env->now;
    if (qp->req.rnr_until && now >= qp->req.rnr_until) {
        qp->req.rnr_until = 0;
        qp->env->ops->ready(qp);
    }
    if (now >= qp->req.ack_deadline)
        ack_timeout(qp);
    qp->deadline = WF_NEVER;
    update(qp);
}
