# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of sluice for bash.

# The command that was typed already, if there is one.
_sluice_command()
{
    local word
    for word in "$@"; do
        case $word in
        status | top | drain | resume | close | metrics)
            echo "$word"
            return
            ;;
        esac
    done
}

_sluice()
{
    local commands='status top drain resume close metrics'
    local global='-h --help -V --version --admin= --json'
    local of_status='-h --help -c --connections --admin= --json'
    local of_top='-h --help --interval= --admin='
    local of_metrics='-h --help --admin='
    local of_orders='-h --help --admin= --json'
    # readline ends words at : and = too; take the whole of it from the line
    local typed=${COMP_LINE:0:COMP_POINT} prefix='' word command
    local -a before ask=(sluice) words=()
    read -ra before <<<"${typed% *}"
    [[ $typed != *--admin[=\ ]* ]] || ask+=(--admin="$(sed 's/.*--admin[= ]\([^ ]*\).*/\1/' <<<"$typed")")
    command=$(_sluice_command "${before[@]:1}")
    typed=${typed##* }

    case $typed in
    --admin=*) words=(--admin={unix:,tcp:}) ;;
    --interval=*) words=(--interval={500ms,1s,5s,1min}) ;;
    -*)
        case $command in
        '') read -ra words <<<"$global" ;;
        status) read -ra words <<<"$of_status" ;;
        top) read -ra words <<<"$of_top" ;;
        metrics) read -ra words <<<"$of_metrics" ;;
        *) read -ra words <<<"$of_orders" ;;
        esac
        ;;
    *)
        case $command in
        '') read -ra words <<<"$commands" ;;
        drain | resume)
            mapfile -t words < <("${ask[@]}" metrics 2>/dev/null |
                sed -n 's/^sluice_connections_active{service="\([^"\\]*\)"}.*/\1/p')
            ;;
        close)
            mapfile -t words < <("${ask[@]}" status --json --connections 2>/dev/null |
                grep -o '"id":[0-9]*' | cut -d: -f2)
            ;;
        esac
        ;;
    esac
    [[ $typed != *[:=]* ]] || prefix=${typed%"${typed##*[:=]}"}

    COMPREPLY=()
    for word in "${words[@]}"; do
        [[ $word != "$typed"* ]] || COMPREPLY+=("${word#"$prefix"}")
    done
    if [[ ${COMPREPLY[*]} == *[=:] ]]; then
        compopt -o nospace
    fi
    if [[ $typed == --admin=unix:* || $typed == --admin=[./]* ]]; then
        compopt -o filenames
        typed=${typed#--admin=}
        while IFS= read -r word; do
            COMPREPLY+=("$word")
        done < <(compgen -f -- "${typed#unix:}")
    fi
}

complete -F _sluice sluice
