# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of sluiced for bash.

_sluiced()
{
    local options='-h --help -V --version -c --connections-max= --exit-idle-time= --proxy-protocol= --listen= -f --config=
        --check --workers= --drain-timeout= --admin= --log-level='
    local addresses='localhost: unix: unix:@ tcp: vsock:'
    # readline ends words at : and = too; take the whole of it from the line
    local line=${COMP_LINE:0:COMP_POINT} typed prefix='' word path='' file=''
    typed=${line##* }

    local -a words=()
    case $typed in
    --log-level=*) words=(--log-level={error,warning,info,debug}) ;;
    --proxy-protocol=*) words=(--proxy-protocol={v1,v2}) ;;
    --exit-idle-time=*) words=(--exit-idle-time={infinity,30s,5min,1h}) ;;
    --drain-timeout=*) words=(--drain-timeout={0,30s,5min,infinity}) ;;
    --workers=*) words=(--workers={1,2,4,8}) ;;
    --connections-max=*) words=(--connections-max={256,1000,5000}) ;;
    --listen=*) words=(--listen={systemd:,unix:,tcp:,vsock:}) ;;
    --admin=*) words=(--admin={systemd:,unix:}) ;;
    -*) read -ra words -d '' <<<"$options" ;;
    *)
        # a file comes after these
        [[ ! $line =~ [[:blank:]](--check|--config|-f)[[:blank:]]+[^[:blank:]]*$ ]] || file=1
        [ -n "$file" ] || read -ra words -d '' <<<"$addresses"
        ;;
    esac
    [[ $typed != *[:=]* ]] || prefix=${typed%"${typed##*[:=]}"}

    COMPREPLY=()
    for word in "${words[@]}"; do
        [[ $word != "$typed"* ]] || COMPREPLY+=("${word#"$prefix"}")
    done
    if [[ ${COMPREPLY[*]} == *[=:/@] ]]; then
        compopt -o nospace
    fi
    case $typed in
    --config=* | --listen=unix:* | --admin=unix:* | unix:*) path=${typed##*[=:]} ;;
    --listen=/* | --admin=/*) path=${typed#*=} ;;
    [./]*) path=$typed ;;
    -*) return ;;
    *)
        [ -n "$file" ] || return
        path=$typed
        ;;
    esac
    compopt -o filenames
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(compgen -f -- "$path")
}

complete -F _sluiced sluiced
