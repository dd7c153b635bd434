# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts in this folder share. Source it; it runs nothing by itself:
#
#     . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
#
#   $top                      the top of the source tree
#   say TEXT...               one line on stdout
#   warn TEXT...              one line on stderr
#   die TEXT...               the same, then exit 1
#   step NAME LOG COMMAND...  one progress line; the command's output goes to LOG, whose
#                             end is shown if it fails; returns the command's status
#   have TOOL...              true if every tool is on the PATH
#   as_root COMMAND...        run with root's rights: as it is, or through sudo
#   require_or_skip TOOL...   exit 77 (skip) where a tool is missing, 1 where CI is set

# shellcheck disable=SC2034 # for those that source this
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# How much of a log is worth reading when its step has failed.
log_tail_lines=${log_tail_lines:-60}

say()
{
    printf '%s\n' "$*"
}

warn()
{
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die()
{
    warn "$@"
    exit 1
}

have()
{
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 || return 1
    done
}

as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif have sudo; then
        sudo "$@"
    else
        warn "root's rights are needed for: $*"
        warn "run this as root, or install sudo"
        return 1
    fi
}

require_or_skip()
{
    local tool
    for tool in "$@"; do
        have "$tool" && continue
        warn "$tool is not installed"
        [ -n "${CI:-}" ] && exit 1
        exit 77
    done
}

# Say what goes on, so that a quiet minute is not taken for a hang.
step()
{
    local name=$1 log=$2 start=$SECONDS status=0
    shift 2
    mkdir -p "$(dirname "$log")"
    printf '  %-44s ' "$name"
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if [ "$status" -eq 0 ]; then
        printf 'ok      %4d s\n' $((SECONDS - start))
        return 0
    fi
    printf 'FAILED  %4d s (status %d)\n' $((SECONDS - start)) "$status"
    printf -- '---- the last lines of %s\n' "$log"
    tail -n "$log_tail_lines" "$log" | sed 's/^/    /'
    printf -- '----\n'
    return "$status"
}
