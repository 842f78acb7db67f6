// SPDX-License-Identifier: BSD-2-Clause
// weft explain --pid: what a process has had to explain, from its memory.
#include "base/clock.h"
#include "base/reason.h"
#include "cli/cli.h"
#include "cli/fabric.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void print_note(const struct wf_note *n, uint64_t now, json_t *list)
{
    enum wf_reason why = (enum wf_reason)n->number;
    double ago = now > n->last_ns ? (double)(now - n->last_ns) / 1e9 : 0;
    if (list) {
        json_array_append_new(list,
                              json_pack("{s:i,s:s,s:I,s:f,s:s,s:s,s:s}", "number", (int)n->number,
                                        "name", wf_reason_name(why), "count", (json_int_t)n->count,
                                        "seconds_ago", ago, "detail", n->text, "cause",
                                        wf_reason_cause(why), "remedy", wf_reason_remedy(why)));
        return;
    }
    printf("%.1f s ago, %u time%s: [%u %s] %s\n    cause: %s\n    to do: %s\n", ago, n->count,
           n->count == 1 ? "" : "s", n->number, wf_reason_name(why), n->text, wf_reason_cause(why),
           wf_reason_remedy(why));
}

static int show(const struct cli_process *p, bool json)
{
    static struct wf_notes notes;
    uint64_t now = wf_clock_ns();
    json_t *list = json ? json_array() : NULL;
    if (!cli_peek(p, (const void *)(uintptr_t)p->region->view.notes, &notes, sizeof(notes)) ||
        notes.size != sizeof(notes))
        return cli_fail(CLI_FAILED, "explain", "the memory of process %d cannot be read", p->pid);
    unsigned shown = 0;
    for (unsigned i = 0; i < WF_NOTES; i++) {
        struct wf_note *n = &notes.notes[(notes.next + i) % WF_NOTES];
        n->text[WF_NOTE_TEXT - 1] = 0;
        if (!n->number || n->seq & 1)
            continue;
        print_note(n, now, list);
        shown++;
    }
    if (list) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(list);
    } else if (!shown) {
        printf("process %d (%s): nothing failed so far\n", p->pid, p->name);
    }
    return CLI_OK;
}

int cli_explain_pid(const char *pid, bool json)
{
    struct cli_fabric f;
    int status = cli_fabric_open("explain", &f);
    if (status)
        return status;
    struct cli_process *p = cli_process_find("explain", &f, pid, &status);
    status = p ? show(p, json) : status;
    cli_fabric_close(&f);
    return status;
}
