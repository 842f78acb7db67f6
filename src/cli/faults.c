// SPDX-License-Identifier: BSD-2-Clause
// weft faults: rules for all processes of the fabric, those that run and those that come.
#include "cli/cli.h"
#include "cli/fabric.h"

#include <stdio.h>
#include <string.h>

static int help(FILE *out, int status)
{
    fputs("usage: weft faults set FILE | clear | list | check FILE\n\n"
          "Fault rules for all programs of this fabric at once (weft run --faults: for one).\n"
          "weft-faults(5) has the grammar, /usr/share/weft/faults recipes.\n\n"
          "  set FILE    use these rules from now on; - is standard input\n"
          "  clear       no faults any more\n"
          "  list        the rules in force\n"
          "  check FILE  only say whether the rules are well formed\n",
          out);
    return status;
}

static int set(struct cli_fabric *f, const char *text, size_t len)
{
    int ret = cli_fabric_faults(f, text, len);
    if (ret)
        return cli_fail(CLI_FAILED, "faults", "weftd refuses the rules: %s", strerror(-ret));
    printf("%s for %u process%s\n", len ? "rules set" : "no faults", f->n, f->n == 1 ? "" : "es");
    return CLI_OK;
}

static int list(struct cli_fabric *f)
{
    static struct wf_control c;
    if (wf_control_read(f->shared_fd, &c))
        return cli_fail(CLI_FAILED, "faults", "weftd's state cannot be read");
    if (!c.faults_len)
        puts("# no rules");
    fwrite(c.faults, 1, c.faults_len, stdout);
    return CLI_OK;
}

int cli_faults(int argc, char **argv)
{
    static char text[WF_FAULT_TEXT + 1];
    struct cli_fabric f;
    size_t len = 0;
    const char *what = argc > 1 ? argv[1] : "";
    bool with_file = strcmp(what, "set") == 0 || strcmp(what, "check") == 0;
    if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0)
        return help(stdout, CLI_OK);
    if (!with_file && strcmp(what, "clear") && strcmp(what, "list"))
        return cli_fail(CLI_USAGE, "faults", "\"%s\" is none of set FILE, clear, list, check FILE",
                        what);
    if (argc != (with_file ? 3 : 2))
        return cli_fail(CLI_USAGE, "faults", "%s",
                        with_file ? "one file is needed" : "no more words");
    int status = with_file ? cli_read_rules("faults", argv[2], text, &len) : 0;
    if (status)
        return status;
    if (strcmp(what, "check") == 0) {
        puts("rules are well formed");
        return CLI_OK;
    }
    status = cli_fabric_open("faults", &f);
    if (status)
        return status;
    status = strcmp(what, "list") == 0 ? list(&f) : set(&f, text, len);
    cli_fabric_close(&f);
    return status;
}
