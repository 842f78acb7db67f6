// SPDX-License-Identifier: BSD-2-Clause
#include "base/explain_json.h"

#include "base/reason.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int fd = -1;

struct out {
    char buf[4096];
    size_t len;
};

static void put(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct out *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(o->buf + o->len, sizeof(o->buf) - o->len, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < sizeof(o->buf) - o->len)
        o->len += (size_t)n;
}

static void put_string(struct out *o, const char *name, const char *s)
{
    put(o, "\"%s\":\"", name);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            put(o, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            put(o, "\\u%04x", c);
        else
            put(o, "%c", c);
    }
    put(o, "\"");
}

// The objects and values that the text names: "QP 0x010002" becomes {"QP":"0x010002"}.
static void put_objects(struct out *o, const char *text)
{
    static const char *const kinds[] = {"QP",    "CQ",  "SRQ",   "PD",    "key", "MR",
                                        "wr_id", "PSN", "group", "GID",   "SGE", "communication id",
                                        "pid",   "key", "slot",  "thread"};
    bool any = false;
    put(o, "\"objects\":[");
    for (const char *p = text; *p; p++) {
        if (p != text && (isalnum((unsigned char)p[-1]) || p[-1] == '_'))
            continue;
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
            size_t n = strlen(kinds[i]);
            if (strncmp(p, kinds[i], n) != 0 || p[n] != ' ' || !isdigit((unsigned char)p[n + 1]))
                continue;
            int len = (int)strspn(p + n + 1, "0123456789abcdefx");
            put(o, "%s{\"kind\":\"%s\",\"id\":\"%.*s\"}", any ? "," : "", kinds[i], len, p + n + 1);
            any = true;
            break;
        }
    }
    put(o, "],");
}

bool wf_explain_json_open(void)
{
    const char *path = getenv("WEFT_EXPLAIN_FILE");
    if (!path || !*path)
        return false;
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        dprintf(STDERR_FILENO, "weft: %s: %s; reasons are not written to it\n", path,
                strerror(errno));
    return fd >= 0;
}

void wf_explain_json(const struct wf_note *n, bool repeated)
{
    static const char *const sides[] = {"?",        "caller", "local",      "responder", "peer",
                                        "receiver", "host",   "connection", "caller",    "caller"};
    enum wf_reason why = (enum wf_reason)n->number;
    struct out o = {.len = 0};
    struct timespec ts;
    if (fd < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &ts);
    put(&o, "{\"time\":%lld.%06ld,\"pid\":%d,", (long long)ts.tv_sec, ts.tv_nsec / 1000,
        (int)getpid());
    put_string(&o, "program", program_invocation_short_name);
    put(&o, ",\"event\":\"%s\",\"number\":%u,\"count\":%u,\"errno\":%d,",
        repeated ? "repeated" : "reason", n->number, n->count, n->err);
    put_string(&o, "name", wf_reason_name(why));
    put(&o, ",");
    put_string(&o, "side", sides[n->number / 100 % 10]);
    put(&o, ",");
    put_objects(&o, n->text);
    put_string(&o, "detail", n->text);
    put(&o, ",");
    put_string(&o, "cause", wf_reason_cause(why));
    put(&o, ",");
    put_string(&o, "fault", wf_reason_fault(why));
    put(&o, ",");
    put_string(&o, "remedy", wf_reason_remedy(why));
    put(&o, "}\n");
    (void)!write(fd, o.buf, o.len);
}
