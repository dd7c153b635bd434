# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of sluice-ssh-helper for bash.

_sluice_ssh_helper()
{
    local options='-h --help -V --version -r --readonly --connect-timeout= --idle-timeout= --fin-timeout=
        --buffer-size= --log-level= --progress= --stats'
    local addresses='unix: unix:@ tcp: vsock: qemu:///system qemu:///session storage:///system test:///default'
    # readline ends words at : and = too; take the whole of it from the line
    local typed=${COMP_LINE:0:COMP_POINT} prefix='' word
    typed=${typed##* }

    local -a words=()
    case $typed in
    --log-level=*) words=(--log-level={error,warning,info,debug}) ;;
    --progress=*) words=(--progress={auto,always,never}) ;;
    --buffer-size=*) words=(--buffer-size={64K,256K,1M}) ;;
    --*-timeout=*) words=("${typed%%=*}="{0,1s,10s,1min}) ;;
    -*) read -ra words -d '' <<<"$options" ;;
    *) read -ra words -d '' <<<"$addresses" ;;
    esac
    [[ $typed != *[:=]* ]] || prefix=${typed%"${typed##*[:=]}"}

    COMPREPLY=()
    for word in "${words[@]}"; do
        [[ $word != "$typed"* ]] || COMPREPLY+=("${word#"$prefix"}")
    done
    if [[ ${COMPREPLY[*]} == *[=:/@] ]]; then
        compopt -o nospace
    fi
    if [[ $typed == [./]* || $typed == unix:* ]]; then
        compopt -o filenames
        while IFS= read -r word; do
            COMPREPLY+=("$word")
        done < <(compgen -f -- "${typed#unix:}")
    fi
}

complete -F _sluice_ssh_helper sluice-ssh-helper
