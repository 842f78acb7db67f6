// SPDX-License-Identifier: BSD-2-Clause
// Fault rules at work. Chance is a hash of the seed and of what the packet is, not a sequence: so
// which packets are hit does not depend on how the processes' turns happen to mix, and the same
// seed does the same to the same traffic, on every path.
#include "engine/tap.h"

#include "base/clock.h"
#include "wire/aeth.h"
#include "wire/opcode.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEEN 4096u

// What became of a packet that chance was asked about.
struct seen {
    uint32_t tag;
    uint8_t hits; // so many times in a row
    bool spared;  // once spared it stays so: how often it comes again is a matter of timing
};

struct rule_state {
    uint64_t matches;       // packets that fit all but nth, every and p
    bool done;              // a rule of time alone that has fired
    struct seen seen[SEEN]; // by hash
};

struct wf_faults {
    struct wf_fault_rules rules;
    struct rule_state state[WF_FAULT_RULES];
    uint64_t frozen_until, port_down_until;
    bool port_down;
    int log;
};

// ---- the log ------------------------------------------------------------------------------------

static void open_log(struct wf_faults *f)
{
    const char *path = getenv("WEFT_FAULTS_LOG");
    f->log = STDERR_FILENO;
    if (path && *path) {
        f->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (f->log < 0)
            wf_explain(WF_R_FAULTS, "%s: %s", path, strerror(errno));
    }
}

static void log_line(const struct wf_faults *f, const struct wf_fault_rule *r, const char *what)
{
    char line[256];
    int n = snprintf(line, sizeof(line), "weft: fault: %s: line %d: %s: %s\n",
                     program_invocation_short_name, r->line, wf_fault_act_name(r->act), what);
    if (f->log >= 0 && n > 0)
        (void)!write(f->log, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

// ---- what matches -------------------------------------------------------------------------------

static uint32_t op_of(const struct wf_pkt *pkt)
{
    uint32_t flags = wf_opcode_info(pkt->opcode)->flags;
    if (flags & WF_F_SEND)
        return WF_FAULT_OP_SEND;
    if (flags & WF_F_WRITE || WF_OPCODE_OP(pkt->opcode) == WF_OP_ATOMIC_WRITE)
        return WF_FAULT_OP_WRITE;
    if (flags & WF_F_REQUEST)
        return flags & WF_F_READ ? WF_FAULT_OP_READ : WF_FAULT_OP_ATOMIC;
    if (WF_OPCODE_OP(pkt->opcode) != WF_OP_ACK)
        return WF_FAULT_OP_RESPONSE;
    return wf_aeth_type(pkt->syndrome) == WF_AETH_ACK ? WF_FAULT_OP_ACK : WF_FAULT_OP_NAK;
}

// Relative to the first PSN of its direction, which programs choose at random.
static uint32_t relative_psn(const struct wf_packet_facts *p)
{
    bool request = wf_opcode_info(p->pkt->opcode)->flags & WF_F_REQUEST;
    const struct ibv_qp_attr *a = &p->qp->attr;
    uint32_t first = request != p->rx ? a->sq_psn : a->rq_psn;
    return (p->pkt->psn - first) & WF_PSN_MASK;
}

static bool fits(const struct wf_fault_rule *r, const struct wf_packet_facts *p, uint32_t op,
                 uint32_t psn)
{
    uint32_t qpn = p->qp->qpn;
    return !r->cm && r->act != WF_FAULT_FAIL && r->dir & (p->rx ? WF_FAULT_RX : WF_FAULT_TX) &&
           (!r->path || r->path & p->path) && (!r->op || r->op & op) &&
           (!r->has_qp || r->qp == (r->qp < 0x10000 ? qpn & 0xffff : qpn)) &&
           (!r->has_psn || (psn >= r->psn_lo && psn <= r->psn_hi));
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static bool in_time(const struct wf_tap *t, const struct wf_fault_rule *r)
{
    uint64_t age = t->h->env.now - t->started;
    return age >= r->after && (!r->before || age < r->before);
}

// All conditions fit but number and chance; `what` identifies the packet.
static bool picked(struct wf_tap *t, unsigned i, uint64_t what)
{
    struct wf_faults *f = t->faults;
    const struct wf_fault_rule *r = &f->rules.rules[i];
    struct rule_state *s = &f->state[i];
    if (!in_time(t, r))
        return false;
    uint64_t n = ++s->matches;
    if (r->nth_lo && (n < r->nth_lo || n > r->nth_hi))
        return false;
    if (r->every && n % r->every)
        return false;
    if (r->p >= 1)
        return true;
    uint64_t key = mix(what ^ mix(f->rules.seed ^ (uint64_t)(i + 1) << 40));
    struct seen *seen = &s->seen[key % SEEN];
    if (seen->tag != (uint32_t)(key >> 32))
        *seen = (struct seen){.tag = (uint32_t)(key >> 32)};
    if (seen->spared)
        return false;
    bool hit = (double)(mix(key + seen->hits) >> 11) * 0x1p-53 < r->p;
    seen->hits += hit;
    // Only a packet that was lost must come again.
    seen->spared = !hit || (r->act != WF_FAULT_DROP && r->act != WF_FAULT_CORRUPT_ICRC);
    return hit;
}

// ---- what is done -------------------------------------------------------------------------------

static void set_port(struct wf_tap *t, bool up)
{
    struct wf_hca *h = t->h;
    if (t->faults->port_down == !up)
        return;
    t->faults->port_down = !up;
    h->gids.port_active = up;
    wf_port_event(h, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

static void raise_event(struct wf_tap *t, struct wf_qp *qp, enum ibv_event_type type)
{
    bool of_qp = type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_ACCESS_ERR ||
                 type == IBV_EVENT_QP_REQ_ERR;
    if (!of_qp)
        wf_port_event(t->h, type);
    else if (qp)
        wf_ctx_event(qp->ctx, type, qp->user, 0);
}

static void act(struct wf_tap *t, const struct wf_fault_rule *r, struct wf_qp *qp,
                struct wf_verdict *v)
{
    struct wf_faults *f = t->faults;
    uint64_t now = t->h->env.now;
    switch (r->act) {
    case WF_FAULT_DROP:
        v->drop = true;
        break;
    case WF_FAULT_DUPLICATE:
        v->copies += r->arg;
        break;
    case WF_FAULT_DELAY:
        v->delay += r->time;
        break;
    case WF_FAULT_REORDER:
        v->overtake = r->arg;
        break;
    case WF_FAULT_CORRUPT_PAYLOAD:
        v->damage_payload = true;
        break;
    case WF_FAULT_CORRUPT_ICRC:
        v->damage_icrc = true;
        break;
    case WF_FAULT_ECN:
        v->ecn = true;
        break;
    case WF_FAULT_NAK:
        v->nak = (uint8_t)r->arg;
        break;
    case WF_FAULT_RNR:
        v->nak = (uint8_t)(WF_SYN_RNR | (r->arg & 0x1f));
        break;
    case WF_FAULT_FREEZE:
        f->frozen_until = now + r->time;
        break;
    case WF_FAULT_PORT_DOWN:
        set_port(t, false);
        f->port_down_until = r->time ? now + r->time : WF_NEVER;
        break;
    case WF_FAULT_PORT_UP:
        set_port(t, true);
        break;
    case WF_FAULT_CQ_OVERRUN:
        if (qp && qp->scq) {
            qp->scq->failed = true;
            wf_engine_qp_ops.cq_overrun(qp, qp->scq);
        }
        break;
    case WF_FAULT_EVENT:
        raise_event(t, qp, (enum ibv_event_type)r->arg);
        break;
    case WF_FAULT_KILL:
        kill(getpid(), SIGKILL);
        break;
    case WF_FAULT_FAIL:
        break;
    }
}

// Port down and freeze hold for every packet until their time is over.
static void standing(struct wf_tap *t, struct wf_verdict *v)
{
    struct wf_faults *f = t->faults;
    uint64_t now = t->h->env.now;
    if (f->port_down)
        v->drop = true;
    if (now < f->frozen_until && v->delay < f->frozen_until - now)
        v->delay = f->frozen_until - now;
}

void wf_faults_judge(struct wf_tap *t, const struct wf_packet_facts *p, struct wf_verdict *v)
{
    struct wf_faults *f = t->faults;
    uint32_t op = op_of(p->pkt), psn = relative_psn(p);
    uint64_t what = (uint64_t)psn << 40 | (uint64_t)p->pkt->opcode << 24 |
                    (uint64_t)(p->qp->qpn & 0xffff) << 4 | p->rx;
    if (!t->h->fresh)
        wf_now(t->h);
    for (unsigned i = 0; i < f->rules.n; i++) {
        const struct wf_fault_rule *r = &f->rules.rules[i];
        char text[128];
        if (!fits(r, p, op, psn) || !picked(t, i, what))
            continue;
        int n = snprintf(text, sizeof(text), "%s %s, QP %u, PSN +%u", p->rx ? "received" : "sent",
                         wf_opcode_info(p->pkt->opcode)->name, p->qp->qpn & 0xffff, psn);
        // With chance the number would tell of retransmissions, which timing decides.
        if (r->p >= 1 && n > 0)
            snprintf(text + n, sizeof(text) - (size_t)n, ", match %llu",
                     (unsigned long long)f->state[i].matches);
        log_line(f, r, text);
        snprintf(v->note, sizeof(v->note), "fault rule of line %d: %s", r->line,
                 wf_fault_act_name(r->act));
        act(t, r, p->qp, v);
        if (v->drop)
            break;
    }
    standing(t, v);
}

static const char *cm_name(uint32_t bit)
{
    static const char *const names[] = {"REQ",  "MRA",      "REJ",      "REP", "RTU", "DREQ",
                                        "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
    return bit < sizeof(names) / sizeof(names[0]) ? names[bit] : "?";
}

#define MAD_ATTR 16 // attribute id in the MAD header; REQ is 0x10

void wf_faults_judge_mad(struct wf_tap *t, bool rx, const uint8_t mad[256], struct wf_verdict *v)
{
    struct wf_faults *f = t->faults;
    uint32_t attr = (uint32_t)(mad[MAD_ATTR] << 8 | mad[MAD_ATTR + 1]) - 0x10;
    for (unsigned i = 0; i < f->rules.n && attr < 32; i++) {
        const struct wf_fault_rule *r = &f->rules.rules[i];
        char text[96];
        if (!(r->cm >> attr & 1) || !(r->dir & (rx ? WF_FAULT_RX : WF_FAULT_TX)) ||
            !picked(t, i, (uint64_t)attr << 8 | rx))
            continue;
        snprintf(text, sizeof(text), "%s CM %s, match %llu", rx ? "received" : "sent",
                 cm_name(attr), (unsigned long long)f->state[i].matches);
        log_line(f, r, text);
        snprintf(v->note, sizeof(v->note), "fault rule of line %d: %s", r->line,
                 wf_fault_act_name(r->act));
        act(t, r, NULL, v);
    }
    standing(t, v);
}

int wf_faults_verb(struct wf_tap *t, const char *verb)
{
    struct wf_faults *f = t->faults;
    for (unsigned i = 0; i < f->rules.n; i++) {
        const struct wf_fault_rule *r = &f->rules.rules[i];
        char text[96];
        if (r->act != WF_FAULT_FAIL || strcmp(r->verb, verb) || !picked(t, i, 0))
            continue;
        snprintf(text, sizeof(text), "%s answers %s, match %llu", verb,
                 strerrorname_np((int)r->arg), (unsigned long long)f->state[i].matches);
        log_line(f, r, text);
        return wf_refuse((int)r->arg, WF_R_FAULTS, "%s fails by rule of line %d", verb, r->line);
    }
    return 0;
}

// A rule with a time and nothing that a packet could fit fires when its time comes.
static bool of_time_alone(const struct wf_fault_rule *r)
{
    bool timed = r->act == WF_FAULT_FREEZE || r->act == WF_FAULT_PORT_DOWN ||
                 r->act == WF_FAULT_PORT_UP || r->act == WF_FAULT_EVENT || r->act == WF_FAULT_KILL;
    return timed && r->after && !r->cm && !r->op && !r->has_qp && !r->has_psn && !r->path;
}

void wf_faults_tick(struct wf_tap *t)
{
    struct wf_faults *f = t->faults;
    uint64_t now = t->h->env.now;
    struct wf_verdict none = {0};
    for (unsigned i = 0; i < f->rules.n; i++) {
        const struct wf_fault_rule *r = &f->rules.rules[i];
        if (!of_time_alone(r) || f->state[i].matches || now - t->started < r->after)
            continue;
        f->state[i].matches = 1;
        log_line(f, r, "its time has come");
        act(t, r, NULL, &none);
    }
    if (f->port_down && now >= f->port_down_until)
        set_port(t, true);
}

uint64_t wf_faults_next(const struct wf_tap *t)
{
    const struct wf_faults *f = t->faults;
    uint64_t next = f->port_down ? f->port_down_until : WF_NEVER;
    for (unsigned i = 0; i < f->rules.n; i++) {
        const struct wf_fault_rule *r = &f->rules.rules[i];
        if (of_time_alone(r) && !f->state[i].matches && t->started + r->after < next)
            next = t->started + r->after;
    }
    return next;
}

// ---- set and free -------------------------------------------------------------------------------

// With rules, every path carries packets of the MTU, so that a rule sees the same on all of them.
static void split_messages(struct wf_hca *h)
{
    for (struct wf_ctx *ctx = h->ctxs; ctx; ctx = ctx->next)
        for (struct wf_qp *qp = ctx->qps; qp; qp = qp->next)
            qp->seg = qp->mtu;
}

static void keep_own(struct wf_fault_rules *rules)
{
    unsigned n = 0;
    for (unsigned i = 0; i < rules->n; i++)
        if (!rules->rules[i].process[0] ||
            fnmatch(rules->rules[i].process, program_invocation_short_name, 0) == 0)
            rules->rules[n++] = rules->rules[i];
    rules->n = n;
}

void wf_faults_free(struct wf_faults *f)
{
    if (f && f->log > STDERR_FILENO)
        close(f->log);
    free(f);
}

int wf_faults_set(struct wf_tap *t, const char *text, size_t len, const char *from)
{
    char err[256];
    struct wf_faults *f = calloc(1, sizeof(*f));
    if (!f)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "fault rules");
    if (wf_fault_parse(text, len, &f->rules, err, sizeof(err))) {
        free(f);
        return wf_refuse(EINVAL, WF_R_FAULTS, "%s: %s", from, err);
    }
    keep_own(&f->rules);
    if (t->faults && t->faults->port_down)
        set_port(t, true);
    wf_faults_free(t->faults);
    t->faults = NULL;
    if (!f->rules.n) {
        free(f);
        return 0;
    }
    open_log(f);
    t->faults = f;
    split_messages(t->h);
    return 0;
}
