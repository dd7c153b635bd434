#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# loop.sh LOOP_BENCH [ROUNDS] [JOB...]: the event loops side by side, on a machine
# that is described first. Then what the library says of its own system calls is
# checked from outside, by strace. Exit status 1 if a target was missed.
set -eu

program=${1:?usage: loop.sh LOOP_BENCH [ROUNDS] [JOB...]}
shift
status=0

describe_machine()
{
    sed -n 's/^model name[^:]*: /cpu      /p' /proc/cpuinfo | head -n 1
    echo "cores    $(nproc), load $(cut -d' ' -f1-3 /proc/loadavg)"
    echo "kernel   $(uname -sr)"
    for library in glib-2.0 libuv libevent libsystemd; do
        version=$(pkg-config --modversion "$library" 2>/dev/null) || version=absent
        printf '%-8s %s\n' "${library%-2.0}" "$version"
    done
}

# epoll_ctl calls of a process that toggles 1,000 handles 20 times. Adding them and
# removing them are two calls each; what is above that, the toggles have cost.
count_toggle_calls()
{
    if ! command -v strace >/dev/null 2>&1; then
        echo "strace is missing: kernel_changes is not checked from outside" >&2
        [ -z "${CI:-}" ] || status=1
        return
    fi
    counts=$(mktemp)
    strace -f -qq -c -e trace=epoll_ctl -o "$counts" "$program" probe toggle >/dev/null
    calls=$(awk '$NF == "epoll_ctl" { print $4 }' "$counts")
    rm -f "$counts"
    echo
    echo "strace: ${calls:-0} epoll_ctl calls for 1,000 handles added, toggled 20 times and removed"
    if [ "${calls:-0}" -ge 1000 ] && [ "$calls" -le 2010 ]; then
        echo "  target none of them for a toggle (1,000 to 2,010)   met"
    else
        echo "  target none of them for a toggle (1,000 to 2,010)   MISSED"
        status=1
    fi
}

describe_machine
"$program" "$@" || status=1
count_toggle_calls
exit "$status"
