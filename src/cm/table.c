// SPDX-License-Identifier: BSD-2-Clause
// The state table of a communication id (IBA 12.9.5 to 12.9.7, 12.11). A cell says what to do and
// where to go when that succeeds; an empty cell refuses a call and drops a message.
#include "cm/internal.h"

#include <errno.h>

#define GO(action, state)                                                                          \
    {                                                                                              \
        wf_cm_##action, WF_CM_##state                                                              \
    }

static const struct wf_cm_cell table[WF_CM_STATES][WF_CM_INPUTS] =
    {
        [WF_CM_IDLE] =
            {
                [IN_LISTEN] = GO(do_listen, LISTEN),
                [IN_REQ] = GO(do_req, REQ_SENT),
                [IN_SIDR_REQ] = GO(do_sidr_req, SIDR_REQ_SENT),
                [IN_DESTROY] = GO(end_quietly, IDLE),
            },
        [WF_CM_LISTEN] =
            {
                [IN_DESTROY] = GO(end_listen, IDLE),
            },
        [WF_CM_REQ_SENT] =
            {
                [IN_REJ] = GO(do_rej, IDLE),
                [IN_DESTROY] = GO(end_active, IDLE),
                [RX_PEER_REQ] = GO(on_peer_req, KEEP),
                [RX_MRA_REQ] = GO(on_mra, MRA_REQ_RCVD),
                [RX_REJ] = GO(on_rej, KEEP),
                [RX_REP] = GO(on_rep, REP_RCVD),
                [TIMER] = GO(on_req_error, IDLE),
            },
        [WF_CM_REQ_RCVD] =
            {
                [IN_REP] = GO(do_rep, REP_SENT),
                [IN_REJ] = GO(do_rej, IDLE),
                [IN_MRA] = GO(do_mra, MRA_REQ_SENT),
                [IN_DESTROY] = GO(end_passive, IDLE),
                [RX_REQ] = GO(ignore, KEEP),
                [RX_REJ] = GO(on_rej, KEEP),
            },
        [WF_CM_MRA_REQ_SENT] =
            {
                [IN_REP] = GO(do_rep, REP_SENT),
                [IN_REJ] = GO(do_rej, IDLE),
                [IN_DESTROY] = GO(end_passive, IDLE),
                [RX_REQ] = GO(on_req_again, KEEP),
                [RX_REJ] = GO(on_rej, KEEP),
            },
        [WF_CM_MRA_REQ_RCVD] =
            {
                [IN_REJ] = GO(do_rej, IDLE),
                [IN_DESTROY] = GO(end_active, IDLE),
                [RX_REJ] = GO(on_rej, KEEP),
                [RX_REP] = GO(on_rep, REP_RCVD),
                [TIMER] = GO(on_req_error, IDLE),
            },
        [WF_CM_REP_SENT] =
            {
                [IN_REJ] = GO(do_rej, TIMEWAIT),
                [IN_ESTABLISHED] = GO(do_established, ESTABLISHED),
                [IN_DESTROY] = GO(end_passive, TIMEWAIT),
                [RX_REQ] = GO(ignore, KEEP),
                [RX_MRA_REP] = GO(on_mra, MRA_REP_RCVD),
                [RX_REJ] = GO(on_rej, KEEP),
                [RX_RTU] = GO(on_rtu, ESTABLISHED),
                [RX_DREQ] = GO(on_dreq, DREQ_RCVD),
                [TIMER] = GO(on_rep_error, IDLE),
            },
        [WF_CM_REP_RCVD] =
            {
                [IN_RTU] = GO(do_rtu, ESTABLISHED),
                [IN_REJ] = GO(do_rej, IDLE),
                [IN_MRA] = GO(do_mra, MRA_REP_SENT),
                [IN_DESTROY] = GO(end_passive, IDLE),
                [RX_REP] = GO(ignore, KEEP),
                [RX_REJ] = GO(on_rej_timewait, TIMEWAIT),
            },
        [WF_CM_MRA_REP_SENT] =
            {
                [IN_RTU] = GO(do_rtu, ESTABLISHED),
                [IN_REJ] = GO(do_rej, IDLE),
                [IN_DESTROY] = GO(end_passive, IDLE),
                [RX_REP] = GO(on_rep_again, KEEP),
                [RX_REJ] = GO(on_rej_timewait, TIMEWAIT),
            },
        [WF_CM_MRA_REP_RCVD] =
            {
                [IN_REJ] = GO(do_rej, TIMEWAIT),
                [IN_ESTABLISHED] = GO(do_established, ESTABLISHED),
                [IN_DESTROY] = GO(end_passive, TIMEWAIT),
                [RX_REQ] = GO(ignore, KEEP),
                [RX_REJ] = GO(on_rej, KEEP),
                [RX_RTU] = GO(on_rtu, ESTABLISHED),
                [RX_DREQ] = GO(on_dreq, DREQ_RCVD),
                [TIMER] = GO(on_rep_error, IDLE),
            },
        [WF_CM_ESTABLISHED] =
            {
                [IN_DREQ] = GO(do_dreq, DREQ_SENT),
                [IN_MRA] = GO(do_mra_established, KEEP),
                [IN_LAP] = GO(do_lap, KEEP),
                [IN_APR] = GO(do_apr, KEEP),
                [IN_MIGRATED] = GO(do_migrated, KEEP),
                [IN_DESTROY] = GO(end_established, KEEP),
                [RX_REQ] = GO(ignore, KEEP),
                [RX_REP] = GO(on_rep_again, KEEP),
                [RX_MRA_OTHER] = GO(on_mra_lap, KEEP),
                [RX_REJ] = GO(on_rej_established, KEEP),
                [RX_DREQ] = GO(on_dreq, DREQ_RCVD),
                [RX_LAP] = GO(on_lap, KEEP),
                [RX_APR] = GO(on_apr, KEEP),
                [TIMER] = GO(on_lap_error, KEEP),
            },
        [WF_CM_DREQ_SENT] =
            {
                [IN_DESTROY] = GO(ignore, KEEP),
                [RX_REJ] = GO(on_rej_timewait, TIMEWAIT),
                [RX_DREQ] = GO(on_dreq, DREQ_RCVD),
                [RX_DREP] = GO(on_drep, TIMEWAIT),
                [TIMER] = GO(on_dreq_error, TIMEWAIT),
            },
        [WF_CM_DREQ_RCVD] =
            {
                [IN_DREP] = GO(do_drep, TIMEWAIT),
                [IN_DESTROY] = GO(end_dreq_rcvd, TIMEWAIT),
                [RX_DREQ] = GO(ignore, KEEP),
                [RX_DREP] = GO(on_drep, TIMEWAIT),
            },
        [WF_CM_TIMEWAIT] =
            {
                [IN_DESTROY] = GO(ignore, KEEP),
                [RX_REQ] = GO(on_req_stale, KEEP),
                [RX_DREQ] = GO(on_dreq_again, KEEP),
                [TIMER] = GO(on_timewait, IDLE),
            },
        [WF_CM_SIDR_REQ_SENT] =
            {
                [IN_DESTROY] = GO(end_quietly, IDLE),
                [RX_SIDR_REP] = GO(on_sidr_rep, IDLE),
                [TIMER] = GO(on_sidr_error, IDLE),
            },
        [WF_CM_SIDR_REQ_RCVD] =
            {
                [IN_SIDR_REP] = GO(do_sidr_rep, IDLE),
                [IN_DESTROY] = GO(end_sidr_rcvd, IDLE),
                [RX_SIDR_REQ] = GO(ignore, KEEP),
            },
};

static const char *const state_names[] = {
    "IDLE",      "LISTEN",   "REQ_SENT",      "REQ_RCVD",      "MRA_REQ_SENT", "MRA_REQ_RCVD",
    "REP_SENT",  "REP_RCVD", "MRA_REP_SENT",  "MRA_REP_RCVD",  "ESTABLISHED",  "DREQ_SENT",
    "DREQ_RCVD", "TIMEWAIT", "SIDR_REQ_SENT", "SIDR_REQ_RCVD",
};
_Static_assert(sizeof(state_names) / sizeof(state_names[0]) == WF_CM_STATES, "a name for each");

static const char *const input_names[] = {
    "listen",
    "REQ",
    "REP",
    "RTU",
    "DREQ",
    "DREP",
    "REJ",
    "MRA",
    "LAP",
    "APR",
    "SIDR_REQ",
    "SIDR_REP",
    "established",
    "migrated",
    "destroy",
    "REQ",
    "REQ of the peer",
    "MRA of REQ",
    "MRA of REP",
    "MRA of LAP",
    "REJ",
    "REP",
    "RTU",
    "DREQ",
    "DREP",
    "LAP",
    "APR",
    "SIDR_REQ",
    "SIDR_REP",
    "timer",
};
_Static_assert(sizeof(input_names) / sizeof(input_names[0]) == WF_CM_INPUTS, "a name for each");

const char *wf_cm_state_name(enum wf_cm_state state)
{
    return state < WF_CM_STATES ? state_names[state] : "?";
}

const char *wf_cm_input_name(enum wf_cm_input in)
{
    return in < WF_CM_INPUTS ? input_names[in] : "?";
}

const struct wf_cm_cell *wf_cm_cell(enum wf_cm_state state, enum wf_cm_input in)
{
    return &table[state][in];
}

int wf_cm_ignore(struct wf_cm_id *id, const void *arg)
{
    (void)id;
    (void)arg;
    return 0;
}

static int no_such_step(struct wf_cm_id *id, enum wf_cm_input in)
{
    const char *state = wf_cm_state_name(id->state);
    if (in < RX_REQ)
        return wf_refuse(EINVAL, WF_R_CM_STATE, "%s on communication id 0x%08x in %s",
                         wf_cm_input_name(in), id->local_id, state);
    id->cm->stats.unexpected++;
    wf_explain(WF_R_CM_UNEXPECTED, "%s for communication id 0x%08x in %s", wf_cm_input_name(in),
               id->local_id, state);
    return -EINVAL;
}

int wf_cm_step(struct wf_cm_id *id, enum wf_cm_input in, const void *arg)
{
    const struct wf_cm_cell *cell = &table[id->state][in];
    int rc = cell->act ? cell->act(id, arg) : no_such_step(id, in);
    if (rc == 0 && cell->act && cell->next != WF_CM_KEEP)
        wf_cm_enter(id, cell->next);
    if (id->orphan && id->state == WF_CM_IDLE)
        wf_cm_id_free(id);
    return rc;
}
