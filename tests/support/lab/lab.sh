# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A laboratory for transfers over ssh: a private sshd and a real libvirt daemon (or plain
# programs) on one machine, neither of which touches the host's own. As root it lives in a
# mount namespace that hides libvirt's folders; an ordinary user's is all in one folder. For
# tests, benchmarks and the demo:
#
#     . tests/support/lab/lab.sh
#     lab_isolate "$@"       # first: may start the script anew inside the namespace
#     lab_open               # makes $lab; all is undone at exit, whatever the reason
#     lab_sshd_start; lab_libvirtd_start; ...
#
#   $lab                       scratch folder of this run
#   $lab_mode                  system (root) or session: the kind of libvirt daemon
#   lab_run COMMAND...         a command that a signal to the script cuts short
#   lab_wait SECONDS COMMAND...    until COMMAND succeeds; 1 if it never does
#   lab_daemon NAME COMMAND... starts a daemon, its log is $lab/NAME.log
#   lab_stop NAME              ends it; fine if there is none
#   lab_fail TEXT...           says why, and exits 1
#   lab_skip TEXT...           the same, with 77; a failure where CI is set
#
# A script's own function lab_failed, if it has one, is called when it ends with a failure,
# while the logs are still there.

lab_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$lab_folder/sshd.sh"
. "$lab_folder/libvirtd.sh"
. "$lab_folder/measure.sh"
. "$lab_folder/transfer.sh"

lab=
lab_isolated=${SLUICE_LAB_ISOLATED:-no}
lab_mode=session
[ "$(id -u)" -ne 0 ] || lab_mode=system

# The folders of the host that a libvirt daemon or an sshd run by root would use.
lab_hidden=(/run/libvirt /run/sshd /etc/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt)
declare -A lab_pids=()
lab_mounts=()
lab_made=()

lab_fail()
{
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

lab_skip()
{
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    [ -z "${CI:-}" ] || exit 1
    exit 77
}

lab_isolate()
{
    [ "$lab_mode" = system ] && [ "$lab_isolated" = no ] || return 0
    unshare --mount --propagation private mount -t tmpfs none /mnt 2>/dev/null || return 0
    SLUICE_LAB_ISOLATED=yes exec unshare --mount --propagation private -- "$BASH" "$0" "$@"
}

lab_open()
{
    lab=$(mktemp -d "${TMPDIR:-/tmp}/sluice-lab.XXXXXX") || exit 1
    trap lab_close EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    # Marks whatever is started from here, so that lab_close finds what has lost its parent.
    export SLUICE_LAB=$lab
    mkdir -p "$lab"/{bin,remote,home,ssh,samples}
    if [ "$lab_mode" = session ]; then
        mkdir -p "$lab"/{run,config,cache}
        chmod 700 "$lab/run"
        export XDG_RUNTIME_DIR=$lab/run XDG_CONFIG_HOME=$lab/config XDG_CACHE_HOME=$lab/cache
        lab_socket=$lab/run/libvirt/libvirt-sock
    else
        export XDG_CONFIG_HOME=$lab/home/config XDG_CACHE_HOME=$lab/home/cache
        lab_socket=/run/libvirt/libvirt-sock
        lab_hide
    fi
    # A client that finds no daemon must say so, and not start one of its own.
    export LIBVIRT_AUTOSTART=0
}

lab_hide()
{
    local folder
    if [ "$lab_isolated" = no ]; then
        ! lab_listening "$lab_socket" ||
            lab_skip "a libvirt daemon runs on this machine and no mount namespace can be had to keep away from it;" \
                "run this as an ordinary user"
        mkdir -p /run/sshd
        return 0
    fi
    for folder in "${lab_hidden[@]}"; do
        lab_make_folder "$folder"
        lab_mount "$folder" mode=0755
    done
}

# Parents too may be missing; all that had to be made goes again at the end.
lab_make_folder()
{
    [ ! -d "$1" ] || return 0
    lab_make_folder "$(dirname "$1")"
    mkdir "$1" 2>/dev/null && lab_made+=("$1")
}

lab_mount()
{
    mount -t tmpfs -o "$2" sluice-lab "$1" || lab_fail "cannot mount a tmpfs on $1"
    lab_mounts+=("$1")
}

lab_listening()
{
    grep -q " $1\$" /proc/net/unix
}

lab_wait()
{
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.02
    done
}

lab_run()
{
    "$@" </dev/null &
    lab_child=$!
    wait $lab_child
}

# A session of its own, so that a key pressed at the terminal reaches the script alone; an end with it, even if it
# is killed.
lab_daemon()
{
    local name=$1
    shift
    setsid setpriv --pdeathsig TERM "$@" </dev/null >>"$lab/$name.log" 2>&1 &
    lab_pids[$name]=$!
}

lab_alive()
{
    [ -n "${lab_pids[$1]:-}" ] && kill -0 "${lab_pids[$1]}" 2>/dev/null
}

lab_dead()
{
    ! lab_alive "$1"
}

lab_stop()
{
    lab_alive "$1" || return 0
    kill "${lab_pids[$1]}" 2>/dev/null
    lab_wait 10 lab_dead "$1" || kill -KILL "${lab_pids[$1]}" 2>/dev/null
    wait "${lab_pids[$1]}" 2>/dev/null
    unset "lab_pids[$1]"
}

# The processes, other than this shell, that were started with our mark.
lab_marked()
{
    local environ pid
    for environ in /proc/[0-9]*/environ; do
        grep -qszxF "SLUICE_LAB=$lab" "$environ" || continue
        pid=${environ#/proc/}
        [ "${pid%/environ}" = $$ ] || printf '%s\n' "${pid%/environ}"
    done 2>/dev/null
}

lab_none_marked()
{
    [ -z "$(lab_marked)" ]
}

lab_sweep()
{
    local pid
    for pid in $(lab_marked); do
        kill "-$1" "$pid" 2>/dev/null
    done
}

lab_close()
{
    local status=$? name i
    trap '' HUP INT TERM
    trap - EXIT
    set +e
    cd /
    [ -z "${lab_child:-}" ] || kill "$lab_child" 2>/dev/null
    # Else the next daemon with the same folders, where they could not be hidden, would take the pool for its own.
    ! lab_alive libvirtd || timeout 5 virsh -q -c "$lab_local" pool-destroy lab >/dev/null 2>&1
    for name in "${!lab_pids[@]}"; do
        lab_stop "$name"
    done
    lab_sweep TERM
    lab_wait 3 lab_none_marked || lab_sweep KILL
    lab_wait 3 lab_none_marked
    # Of no interest where somebody has pressed a key.
    if [ "$status" -ne 0 ] && [ "$status" -lt 128 ] && declare -F lab_failed >/dev/null; then
        lab_failed
    fi
    for ((i = ${#lab_mounts[@]} - 1; i >= 0; i--)); do
        umount "${lab_mounts[i]}" 2>/dev/null || umount -l "${lab_mounts[i]}"
    done
    for ((i = ${#lab_made[@]} - 1; i >= 0; i--)); do
        rmdir "${lab_made[i]}" 2>/dev/null
    done
    [ -z "${lab_pool:-}" ] || rm -rf --one-file-system "$lab_pool"
    rm -rf --one-file-system "$lab"
    [ "$status" -lt 128 ] || printf '\n%s: interrupted\n' "${0##*/}" >&2
    exit "$status"
}
