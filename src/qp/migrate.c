// SPDX-License-Identifier: BSD-2-Clause
// Automatic path migration (IBA 17.2.8). MIGRATED: on the primary path, asks the peer to follow.
// REARM: an alternate path is loaded; ARMED once the peer has one too. From ARMED the QP migrates
// when its user says so, when the peer has, or when the primary path fails.
#include "qp/qp.h"

#include "wire/opcode.h"

static void migrate(struct wf_qp *qp)
{
    struct wf_path *path = qp->path;
    struct ibv_ah_attr ah = qp->attr.ah_attr;
    uint8_t timeout = qp->attr.timeout, port = qp->attr.port_num;
    qp->path = qp->alt_path;
    qp->alt_path = path;
    qp->attr.ah_attr = qp->attr.alt_ah_attr;
    qp->attr.alt_ah_attr = ah;
    qp->attr.timeout = qp->attr.alt_timeout;
    qp->attr.alt_timeout = timeout;
    qp->attr.port_num = qp->attr.alt_port_num ? qp->attr.alt_port_num : port;
    qp->attr.alt_port_num = port;
    qp->attr.path_mig_state = IBV_MIG_MIGRATED;
    qp->env->ops->path_changed(qp);
    qp->env->ops->event(qp, IBV_EVENT_PATH_MIG);
}

void wf_migrate_set(struct wf_qp *qp, enum ibv_mig_state to)
{
    enum ibv_mig_state from = qp->attr.path_mig_state;
    if (to == IBV_MIG_MIGRATED && from == IBV_MIG_ARMED && qp->alt_path)
        migrate(qp);
    else
        qp->attr.path_mig_state = to;
}

void wf_migrate_seen(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    bool asks = pkt->flags & WF_PKT_MIG_REQ;
    if (qp->attr.path_mig_state == IBV_MIG_REARM && !asks && qp->alt_path)
        qp->attr.path_mig_state = IBV_MIG_ARMED;
    else if (qp->attr.path_mig_state == IBV_MIG_ARMED && asks)
        migrate(qp);
}

bool wf_migrate_instead_of_failing(struct wf_qp *qp)
{
    if (qp->attr.path_mig_state != IBV_MIG_ARMED || !qp->alt_path) {
        if (qp->attr.path_mig_state == IBV_MIG_REARM)
            qp->env->ops->event(qp, IBV_EVENT_PATH_MIG_ERR);
        return false;
    }
    migrate(qp);
    wf_timer_progress(qp);
    wf_req_go_back(qp);
    wf_timer_start(qp);
    qp->env->ops->ready(qp);
    return true;
}
