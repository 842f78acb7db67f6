# SPDX-License-Identifier: BSD-2-Clause
# Completion of weft for bash.
_weft() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i
    local commands='run explain why status stat top faults capture perf devinfo doctor version help'
    if [ "$COMP_CWORD" = 1 ]; then
        COMPREPLY=($(compgen -W "$commands --help --version" -- "$cur"))
        return
    fi
    case ${COMP_WORDS[1]} in
    run)
        case $prev in
        --faults | --faults-log | --capture | --explain-file)
            COMPREPLY=($(compgen -f -- "$cur"))
            return
            ;;
        esac
        for ((i = 2; i < COMP_CWORD; i++)); do
            case ${COMP_WORDS[i]} in
            --faults | --faults-log | --capture | --explain-file | --snaplen | -n | --ppn) i=$((i + 1)) ;;
            -*) ;;
            *) # the program and its arguments
                declare -F _command_offset >/dev/null && _command_offset $i
                return
                ;;
            esac
        done
        case $cur in
        -*) COMPREPLY=($(compgen -W '--explain --explain-file --leaks --faults --faults-log --capture --flight-recorder --snaplen -n --ppn --help' -- "$cur")) ;;
        *) COMPREPLY=($(compgen -c -- "$cur")) ;;
        esac
        ;;
    explain) COMPREPLY=($(compgen -W "--list --pid --json $(weft explain --list 2>/dev/null | awk '{ print $1, $2 }')" -- "$cur")) ;;
    why) COMPREPLY=($(compgen -W "$(weft status --json 2>/dev/null | sed -n 's/.*"pid": \([0-9]*\).*/\1/p')" -- "$cur")) ;;
    status) COMPREPLY=($(compgen -W '--json --help' -- "$cur")) ;;
    stat) COMPREPLY=($(compgen -W '--json --prometheus --all --help' -- "$cur")) ;;
    top) COMPREPLY=($(compgen -W '--delay --times --help' -- "$cur")) ;;
    faults)
        if [ "$COMP_CWORD" = 2 ]; then
            COMPREPLY=($(compgen -W 'set clear list check --help' -- "$cur"))
        else
            COMPREPLY=($(compgen -f -- "$cur"))
        fi
        ;;
    capture)
        case $prev in
        -w | --write) COMPREPLY=($(compgen -f -- "$cur")) ;;
        *) COMPREPLY=($(compgen -W '--write --duration --snaplen --flight-recorder --help' -- "$cur")) ;;
        esac
        ;;
    perf)
        case $prev in
        --plot) COMPREPLY=($(compgen -f -- "$cur")) ;;
        *) COMPREPLY=($(compgen -W '--server --port --gid --time --quick --json --plot --help' -- "$cur")) ;;
        esac
        ;;
    help) COMPREPLY=($(compgen -W "$commands paths" -- "$cur")) ;;
    esac
}
complete -F _weft weft
