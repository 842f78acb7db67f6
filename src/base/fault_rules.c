// SPDX-License-Identifier: BSD-2-Clause
// The parser: a line is an action with its arguments, then key=value conditions.
#include "base/fault_rules.h"

#include <ctype.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_WORDS 24

struct parser {
    struct wf_fault_rules *out;
    int line;
    char *words[MAX_WORDS];
    int n, at;
    char *err;
    size_t err_len;
};

struct name {
    const char *name;
    uint32_t value;
};

static int wrong(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int wrong(struct parser *p, const char *fmt, ...)
{
    int n = snprintf(p->err, p->err_len, "line %d: ", p->line);
    va_list ap;
    va_start(ap, fmt);
    if (n > 0 && (size_t)n < p->err_len)
        vsnprintf(p->err + n, p->err_len - (size_t)n, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

static void list_names(const struct name *names, char *buf, size_t len)
{
    size_t at = 0;
    buf[0] = 0;
    for (; names->name && at < len; names++)
        at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "", names->name);
}

static int lookup(struct parser *p, const struct name *names, const char *word, const char *what,
                  uint32_t *out)
{
    char all[256];
    for (const struct name *n = names; n->name; n++) {
        if (strcasecmp(n->name, word) == 0) {
            *out = n->value;
            return 0;
        }
    }
    list_names(names, all, sizeof(all));
    return wrong(p, "no %s \"%s\"; there are: %s", what, word, all);
}

// "a,b" as the union of bits.
static int lookup_set(struct parser *p, const struct name *names, char *word, const char *what,
                      uint32_t *out)
{
    char *save = NULL;
    *out = 0;
    for (char *w = strtok_r(word, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        uint32_t bit;
        int ret = lookup(p, names, w, what, &bit);
        if (ret)
            return ret;
        *out |= bit;
    }
    return *out ? 0 : wrong(p, "%s is empty", what);
}

static int number(struct parser *p, const char *word, const char *what, uint64_t max, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(word, &end, 0);
    if (!isdigit((unsigned char)*word) || *end || errno || v > max)
        return wrong(p, "%s is a number from 0 to %llu, not \"%s\"", what, (unsigned long long)max,
                     word);
    *out = v;
    return 0;
}

static int duration(struct parser *p, const char *word, const char *what, uint64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};
    char *end;
    double v = isdigit((unsigned char)*word) ? strtod(word, &end) : -1;
    for (size_t i = 0; v >= 0 && v < 1e6 && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].unit) == 0) {
            *ns = (uint64_t)(v * units[i].ns);
            return 0;
        }
    }
    return wrong(p, "%s is a time as 20us, 5ms or 2s, not \"%s\"", what, word);
}

static int range(struct parser *p, char *word, const char *what, uint32_t *lo, uint32_t *hi)
{
    char *dots = strstr(word, "..");
    uint64_t a, b;
    if (*word == '+')
        word++;
    if (dots)
        *dots = 0;
    int ret = number(p, word, what, UINT32_MAX, &a);
    b = a;
    if (!ret && dots && dots[2])
        ret = number(p, dots + 2 + (dots[2] == '+'), what, UINT32_MAX, &b);
    else if (!ret && dots)
        b = UINT32_MAX;
    if (!ret && b < a)
        ret =
            wrong(p, "%s: %llu..%llu is empty", what, (unsigned long long)a, (unsigned long long)b);
    *lo = (uint32_t)a;
    *hi = (uint32_t)b;
    return ret;
}

static const char *next_word(struct parser *p)
{
    if (p->at >= p->n || strchr(p->words[p->at], '='))
        return NULL;
    return p->words[p->at++];
}

static int need_word(struct parser *p, const char *what, const char **out)
{
    *out = next_word(p);
    return *out ? 0 : wrong(p, "%s is missing", what);
}

static int count_arg(struct parser *p, const char *what, struct wf_fault_rule *r)
{
    uint64_t v = 1;
    const char *w = next_word(p);
    int ret = w ? number(p, w, what, 1000, &v) : 0;
    if (!ret && !v)
        ret = wrong(p, "%s must not be 0", what);
    r->arg = (uint32_t)v;
    return ret;
}

static int time_arg(struct parser *p, const char *what, bool needed, struct wf_fault_rule *r)
{
    const char *w = next_word(p);
    if (!w)
        return needed ? wrong(p, "%s is missing", what) : 0;
    return duration(p, w, what, &r->time);
}

static int nak_arg(struct parser *p, struct wf_fault_rule *r)
{
    static const struct name kinds[] = {{"sequence", 0x60},  {"invalid", 0x61}, {"access", 0x62},
                                        {"operation", 0x63}, {"read", 0x64},    {0}};
    const char *w;
    int ret = need_word(p, "the kind of NAK", &w);
    return ret ? ret : lookup(p, kinds, w, "kind of NAK", &r->arg);
}

static int corrupt_arg(struct parser *p, struct wf_fault_rule *r)
{
    static const struct name kinds[] = {
        {"payload", WF_FAULT_CORRUPT_PAYLOAD}, {"icrc", WF_FAULT_CORRUPT_ICRC}, {0}};
    const char *w;
    uint32_t act = 0;
    int ret = need_word(p, "what to corrupt (payload or icrc)", &w);
    if (!ret)
        ret = lookup(p, kinds, w, "part to corrupt", &act);
    r->act = (enum wf_fault_do)act;
    return ret;
}

static int port_arg(struct parser *p, struct wf_fault_rule *r)
{
    static const struct name kinds[] = {
        {"down", WF_FAULT_PORT_DOWN}, {"up", WF_FAULT_PORT_UP}, {0}};
    const char *w;
    uint32_t act = 0;
    int ret = need_word(p, "down or up", &w);
    if (!ret)
        ret = lookup(p, kinds, w, "port state", &act);
    r->act = (enum wf_fault_do)act;
    return ret || act == WF_FAULT_PORT_UP ? ret : time_arg(p, "how long", false, r);
}

static int fail_arg(struct parser *p, struct wf_fault_rule *r)
{
    static const struct name errors[] = {{"EPERM", EPERM},
                                         {"EIO", EIO},
                                         {"ENXIO", ENXIO},
                                         {"EAGAIN", EAGAIN},
                                         {"ENOMEM", ENOMEM},
                                         {"EACCES", EACCES},
                                         {"EFAULT", EFAULT},
                                         {"EBUSY", EBUSY},
                                         {"ENODEV", ENODEV},
                                         {"EINVAL", EINVAL},
                                         {"ENOSPC", ENOSPC},
                                         {"ETIMEDOUT", ETIMEDOUT},
                                         {"ENOSYS", ENOSYS},
                                         {"EOPNOTSUPP", EOPNOTSUPP},
                                         {0}};
    static const struct name verbs[] = {{"alloc_pd", 0},
                                        {"reg_mr", 0},
                                        {"create_cq", 0},
                                        {"create_qp", 0},
                                        {"modify_qp", 0},
                                        {"create_srq", 0},
                                        {"create_ah", 0},
                                        {"post_send", 0},
                                        {"post_recv", 0},
                                        {"poll_cq", 0},
                                        {0}};
    const char *verb, *error;
    uint32_t none;
    int ret = need_word(p, "the verb", &verb);
    if (!ret)
        ret = lookup(p, verbs, strncmp(verb, "ibv_", 4) ? verb : verb + 4, "verb", &none);
    if (!ret)
        ret = need_word(p, "the errno", &error);
    if (!ret)
        ret = lookup(p, errors, error, "errno", &r->arg);
    if (!ret)
        snprintf(r->verb, sizeof(r->verb), "%s", strncmp(verb, "ibv_", 4) ? verb : verb + 4);
    return ret;
}

static int event_arg(struct parser *p, struct wf_fault_rule *r)
{
    static const struct name events[] = {
        {"QP_FATAL", IBV_EVENT_QP_FATAL},         {"QP_ACCESS_ERR", IBV_EVENT_QP_ACCESS_ERR},
        {"QP_REQ_ERR", IBV_EVENT_QP_REQ_ERR},     {"PORT_ERR", IBV_EVENT_PORT_ERR},
        {"PORT_ACTIVE", IBV_EVENT_PORT_ACTIVE},   {"GID_CHANGE", IBV_EVENT_GID_CHANGE},
        {"LID_CHANGE", IBV_EVENT_LID_CHANGE},     {"PKEY_CHANGE", IBV_EVENT_PKEY_CHANGE},
        {"DEVICE_FATAL", IBV_EVENT_DEVICE_FATAL}, {0}};
    const char *w;
    int ret = need_word(p, "the event", &w);
    return ret ? ret : lookup(p, events, w, "event", &r->arg);
}

static int cq_arg(struct parser *p)
{
    const char *w;
    int ret = need_word(p, "overrun", &w);
    return ret || strcmp(w, "overrun") == 0 ? ret : wrong(p, "a CQ can only overrun, not %s", w);
}

static const struct name acts[] = {{"drop", WF_FAULT_DROP},
                                   {"duplicate", WF_FAULT_DUPLICATE},
                                   {"delay", WF_FAULT_DELAY},
                                   {"reorder", WF_FAULT_REORDER},
                                   {"corrupt", WF_FAULT_CORRUPT_ICRC},
                                   {"ecn", WF_FAULT_ECN},
                                   {"nak", WF_FAULT_NAK},
                                   {"rnr", WF_FAULT_RNR},
                                   {"freeze", WF_FAULT_FREEZE},
                                   {"port", WF_FAULT_PORT_DOWN},
                                   {"cq", WF_FAULT_CQ_OVERRUN},
                                   {"fail", WF_FAULT_FAIL},
                                   {"event", WF_FAULT_EVENT},
                                   {"kill", WF_FAULT_KILL},
                                   {0}};

static int action(struct parser *p, struct wf_fault_rule *r)
{
    uint32_t act = 0;
    int ret = lookup(p, acts, p->words[p->at++], "action", &act);
    if (ret)
        return ret;
    r->act = (enum wf_fault_do)act;
    switch (r->act) {
    case WF_FAULT_DUPLICATE:
        return count_arg(p, "the number of copies", r);
    case WF_FAULT_REORDER:
        return count_arg(p, "how many packets overtake", r);
    case WF_FAULT_DELAY:
        return time_arg(p, "the delay", true, r);
    case WF_FAULT_FREEZE:
        return time_arg(p, "how long", true, r);
    case WF_FAULT_CORRUPT_ICRC:
        return corrupt_arg(p, r);
    case WF_FAULT_NAK:
        r->dir = WF_FAULT_RX;
        return nak_arg(p, r);
    case WF_FAULT_RNR:
        r->dir = WF_FAULT_RX;
        r->arg = 12; // 0.64 ms
        return 0;
    case WF_FAULT_PORT_DOWN:
        return port_arg(p, r);
    case WF_FAULT_CQ_OVERRUN:
        return cq_arg(p);
    case WF_FAULT_FAIL:
        return fail_arg(p, r);
    case WF_FAULT_EVENT:
        return event_arg(p, r);
    default:
        return 0;
    }
}

static int probability(struct parser *p, const char *value, double *out)
{
    char *end;
    *out = strtod(value, &end);
    if (*end == '%' && !end[1]) {
        *out /= 100;
        end++;
    }
    if (end == value || *end || !(*out >= 0 && *out <= 1))
        return wrong(p, "p is a probability from 0 to 1 or 0%% to 100%%, not \"%s\"", value);
    return 0;
}

static int qp_number(struct parser *p, const char *value, struct wf_fault_rule *r)
{
    uint64_t v = 0;
    int ret = number(p, value, "qp", 0xffffff, &v);
    r->has_qp = true;
    r->qp = (uint32_t)v;
    return ret;
}

static int condition(struct parser *p, char *word, struct wf_fault_rule *r)
{
    static const struct name paths[] = {
        {"loop", WF_FAULT_LOOP}, {"shm", WF_FAULT_SHM}, {"udp", WF_FAULT_UDP}, {0}};
    static const struct name dirs[] = {
        {"tx", WF_FAULT_TX}, {"rx", WF_FAULT_RX}, {"both", WF_FAULT_TX | WF_FAULT_RX}, {0}};
    static const struct name ops[] = {{"send", WF_FAULT_OP_SEND},
                                      {"write", WF_FAULT_OP_WRITE},
                                      {"read", WF_FAULT_OP_READ},
                                      {"atomic", WF_FAULT_OP_ATOMIC},
                                      {"request", WF_FAULT_OP_REQUEST},
                                      {"response", WF_FAULT_OP_RESPONSE},
                                      {"ack", WF_FAULT_OP_ACK},
                                      {"nak", WF_FAULT_OP_NAK},
                                      {0}};
    static const struct name messages[] = {{"REQ", 1u << 0},
                                           {"MRA", 1u << 1},
                                           {"REJ", 1u << 2},
                                           {"REP", 1u << 3},
                                           {"RTU", 1u << 4},
                                           {"DREQ", 1u << 5},
                                           {"DREP", 1u << 6},
                                           {"SIDR_REQ", 1u << 7},
                                           {"SIDR_REP", 1u << 8},
                                           {"LAP", 1u << 9},
                                           {"APR", 1u << 10},
                                           {"any", 0x7ff},
                                           {0}};
    char *value = strchr(word, '=');
    if (!value)
        return wrong(p, "\"%s\" is neither an argument nor a condition (key=value)", word);
    *value++ = 0;
    uint64_t n = 0;
    int ret = 0;
    if (strcmp(word, "path") == 0)
        return lookup_set(p, paths, value, "path", &r->path);
    if (strcmp(word, "dir") == 0)
        return lookup_set(p, dirs, value, "direction", &r->dir);
    if (strcmp(word, "op") == 0)
        return lookup_set(p, ops, value, "kind of packet", &r->op);
    if (strcmp(word, "cm") == 0)
        return lookup_set(p, messages, value, "CM message", &r->cm);
    if (strcmp(word, "qp") == 0)
        return qp_number(p, value, r);
    if (strcmp(word, "psn") == 0) {
        r->has_psn = true;
        return range(p, value, "psn", &r->psn_lo, &r->psn_hi);
    }
    if (strcmp(word, "nth") == 0) {
        ret = range(p, value, "nth", &r->nth_lo, &r->nth_hi);
        return ret || r->nth_lo ? ret : wrong(p, "nth counts from 1");
    }
    if (strcmp(word, "every") == 0) {
        ret = number(p, value, "every", UINT32_MAX, &n);
        r->every = (uint32_t)n;
        return ret || n ? ret : wrong(p, "every must not be 0");
    }
    if (strcmp(word, "p") == 0)
        return probability(p, value, &r->p);
    if (strcmp(word, "after") == 0)
        return duration(p, value, "after", &r->after);
    if (strcmp(word, "before") == 0)
        return duration(p, value, "before", &r->before);
    if (strcmp(word, "process") == 0) {
        if (!*value || strlen(value) >= sizeof(r->process))
            return wrong(p, "process is a name of at most %zu letters", sizeof(r->process) - 1);
        snprintf(r->process, sizeof(r->process), "%s", value);
        return 0;
    }
    return wrong(p,
                 "no condition \"%s\"; there are: path, dir, op, cm, qp, psn, nth, every, p, "
                 "after, before, process",
                 word);
}

static bool once_only(enum wf_fault_do act)
{
    return act == WF_FAULT_FREEZE || act == WF_FAULT_PORT_DOWN || act == WF_FAULT_PORT_UP ||
           act == WF_FAULT_CQ_OVERRUN || act == WF_FAULT_EVENT || act == WF_FAULT_KILL;
}

static int check(struct parser *p, const struct wf_fault_rule *r)
{
    bool by_cm = r->act == WF_FAULT_DROP || r->act == WF_FAULT_DELAY ||
                 r->act == WF_FAULT_DUPLICATE || r->act == WF_FAULT_KILL;
    if (r->cm && !by_cm)
        return wrong(p, "CM messages can be dropped, delayed, duplicated, or kill the process");
    if (r->cm && (r->op || r->has_psn || r->has_qp || r->path))
        return wrong(p, "cm does not go with op, psn, qp or path");
    if (r->act == WF_FAULT_FAIL && (r->op || r->has_psn || r->has_qp || r->path || r->dir))
        return wrong(p, "a verb has no op, psn, qp, path or direction");
    bool answers = r->act == WF_FAULT_NAK || r->act == WF_FAULT_RNR;
    if (answers && (r->dir != WF_FAULT_RX || r->op & ~(uint32_t)WF_FAULT_OP_REQUEST))
        return wrong(p, "only requests that are received (dir=rx) can be answered with a NAK");
    if (r->before && r->before <= r->after)
        return wrong(p, "before must be later than after");
    return 0;
}

static int seed(struct parser *p)
{
    if (p->n != 2)
        return wrong(p, "seed takes one number");
    return number(p, p->words[1], "seed", UINT64_MAX, &p->out->seed);
}

static int parse_line(struct parser *p, char *line)
{
    char *save = NULL;
    p->n = p->at = 0;
    line[strcspn(line, "#")] = 0;
    for (char *w = strtok_r(line, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save)) {
        if (p->n == MAX_WORDS)
            return wrong(p, "more than %d words", MAX_WORDS);
        p->words[p->n++] = w;
    }
    if (!p->n)
        return 0;
    if (strcmp(p->words[0], "seed") == 0)
        return seed(p);
    if (p->out->n == WF_FAULT_RULES)
        return wrong(p, "more than %u rules", WF_FAULT_RULES);
    struct wf_fault_rule *r = &p->out->rules[p->out->n];
    *r = (struct wf_fault_rule){.line = p->line, .p = 1};
    int ret = action(p, r);
    while (!ret && p->at < p->n)
        ret = condition(p, p->words[p->at++], r);
    if (!ret)
        ret = check(p, r);
    if (ret)
        return ret;
    if (once_only(r->act) && !r->nth_lo && !r->every && r->p == 1)
        r->nth_lo = r->nth_hi = 1;
    if (!r->dir)
        r->dir = WF_FAULT_TX;
    p->out->n++;
    return 0;
}

int wf_fault_parse(const char *text, size_t len, struct wf_fault_rules *out, char *err,
                   size_t err_len)
{
    struct parser p = {.out = out, .err = err, .err_len = err_len};
    memset(out, 0, sizeof(*out));
    err[0] = 0;
    if (len > WF_FAULT_TEXT) {
        snprintf(err, err_len, "longer than %u bytes", WF_FAULT_TEXT);
        return -EINVAL;
    }
    for (size_t at = 0; at < len;) {
        char line[512];
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        p.line++;
        if (n >= sizeof(line))
            return wrong(&p, "longer than %zu bytes", sizeof(line) - 1);
        if (memchr(text + at, 0, n))
            return wrong(&p, "this is not text");
        memcpy(line, text + at, n);
        line[n] = 0;
        at += n + 1;
        int ret = parse_line(&p, line);
        if (ret)
            return ret;
    }
    return 0;
}

const char *wf_fault_act_name(enum wf_fault_do act)
{
    static const char *const names[] = {
        [WF_FAULT_DROP] = "drop",
        [WF_FAULT_DUPLICATE] = "duplicate",
        [WF_FAULT_DELAY] = "delay",
        [WF_FAULT_REORDER] = "reorder",
        [WF_FAULT_CORRUPT_PAYLOAD] = "corrupt payload",
        [WF_FAULT_CORRUPT_ICRC] = "corrupt icrc",
        [WF_FAULT_ECN] = "ecn",
        [WF_FAULT_NAK] = "nak",
        [WF_FAULT_RNR] = "rnr",
        [WF_FAULT_FREEZE] = "freeze",
        [WF_FAULT_PORT_DOWN] = "port down",
        [WF_FAULT_PORT_UP] = "port up",
        [WF_FAULT_CQ_OVERRUN] = "cq overrun",
        [WF_FAULT_FAIL] = "fail",
        [WF_FAULT_EVENT] = "event",
        [WF_FAULT_KILL] = "kill",
    };
    return (unsigned)act < sizeof(names) / sizeof(names[0]) ? names[act] : "?";
}
