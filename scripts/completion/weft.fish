# SPDX-License-Identifier: BSD-2-Clause
# Completion of weft for fish.
set -l commands run explain why status stat top faults capture perf devinfo doctor version help
complete -c weft -f -n "not __fish_seen_subcommand_from $commands" -a "$commands"
complete -c weft -n "__fish_seen_subcommand_from run" -l explain -d "one line for each root cause"
complete -c weft -n "__fish_seen_subcommand_from run" -l explain-file -r -d "JSON lines"
complete -c weft -n "__fish_seen_subcommand_from run" -l leaks -d "what was never destroyed"
complete -c weft -n "__fish_seen_subcommand_from run" -l faults -r -d "fault rules"
complete -c weft -n "__fish_seen_subcommand_from run" -l faults-log -r -d "log of faults"
complete -c weft -n "__fish_seen_subcommand_from run" -l capture -r -d "pcapng file"
complete -c weft -n "__fish_seen_subcommand_from run" -l flight-recorder -d "write only when something fails"
complete -c weft -n "__fish_seen_subcommand_from run" -l snaplen -x -d "bytes of each packet"
complete -c weft -f -n "__fish_seen_subcommand_from run" -a "(__fish_complete_command)"
complete -c weft -f -n "__fish_seen_subcommand_from explain" -l list -l json
complete -c weft -f -n "__fish_seen_subcommand_from explain" -l pid -xa "(__fish_complete_pids)"
complete -c weft -f -n "__fish_seen_subcommand_from why status stat" -a "(__fish_complete_pids)"
complete -c weft -f -n "__fish_seen_subcommand_from status stat" -l json
complete -c weft -f -n "__fish_seen_subcommand_from stat" -l prometheus -l all
complete -c weft -f -n "__fish_seen_subcommand_from faults" -a "set clear list check"
complete -c weft -n "__fish_seen_subcommand_from capture" -s w -l write -r
complete -c weft -n "__fish_seen_subcommand_from capture" -l duration -x
complete -c weft -f -n "__fish_seen_subcommand_from perf" -l server -l quick -l json
complete -c weft -n "__fish_seen_subcommand_from perf" -l plot -r
complete -c weft -f -n "__fish_seen_subcommand_from help" -a "explain faults capture paths $commands"
