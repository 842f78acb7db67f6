// SPDX-License-Identifier: BSD-2-Clause
// weft help TOPIC: a screenful each; the manual pages have the rest.
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *text;
} topics[] = {
    {"explain",
     "Why did it fail?\n\n"
     "  weft run --explain PROGRAM       one line for each root cause, on standard error\n"
     "  weft run --explain-file F ...    the same as JSON lines\n"
     "  weft explain 304                 what a number means: cause, who has to act, what to do\n"
     "  weft explain --pid PID           the last failures of a program that runs\n"
     "  weft why PID                     what a program that hangs waits for\n"
     "  weft run --leaks PROGRAM         what was never destroyed or polled\n\n"
     "The number also stands in vendor_err of a failed completion. Flushed requests are "
     "consequences:\n"
     "they name the reason that put their queue pair into the error state. On one host the line "
     "of\n"
     "the requester also tells what the responder saw. All numbers: docs/errors.md.\n"},
    {"faults",
     "Breaking things on purpose\n\n"
     "  weft run --faults rules.conf PROGRAM     in one program\n"
     "  weft faults set rules.conf | clear       in all that run now\n\n"
     "A rule is an action, then conditions:\n\n"
     "  seed 7\n"
     "  drop p=1% op=request                     a flaky cable\n"
     "  delay 2ms op=ack every=10                slow acknowledgements\n"
     "  rnr op=send nth=5..20                    a receiver that is too slow\n"
     "  drop cm=RTU nth=1                        the RTU of a connection is lost\n"
     "  port down 500ms after=2s                 a port that flaps\n"
     "  fail reg_mr ENOMEM nth=3                 a verb that fails\n"
     "  kill process=server after=5s             the peer dies\n\n"
     "The same rules and seed do the same to the same traffic. weft-faults(5) has the grammar.\n"},
    {"capture",
     "Seeing packets\n\n"
     "  weft run --capture f.pcapng PROGRAM      what one program sends and receives\n"
     "  weft capture -w f.pcapng                 what all programs send, until ^C\n"
     "  weft run --flight-recorder --capture f.pcapng PROGRAM\n"
     "                                           the last packets, only when something fails\n\n"
     "Traffic within the host is there too, as the RoCEv2 frames it would have been, with "
     "comments\n"
     "that name process, queue pair, wr_id, and the reason of a failure. Read it with\n\n"
     "  tshark -r f.pcapng\n"},
    {"paths",
     "How packets travel\n\n"
     "  loop   within one process\n"
     "  shm    between processes of this user on this host: rings, one cross-process copy\n"
     "  udp    RoCEv2 on UDP port 4791, to other hosts and real adapters\n\n"
     "The destination address decides, once for each connection. WEFT_PATH=udp uses udp within "
     "the\n"
     "host as well. weft status shows the path of each queue pair.\n"},
};

int cli_topic(const char *topic)
{
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
        if (strcmp(topic, topics[i].name) == 0) {
            fputs(topics[i].text, stdout);
            return CLI_OK;
        }
    }
    return cli_fail(CLI_USAGE, "help",
                    "no topic \"%s\"; there are: explain, faults, capture, paths", topic);
}
