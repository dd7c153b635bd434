#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The same bytes over ssh without libvirt, against netcat, libvirt's helper, socat and `cat`.
#
# A program that is never the bottleneck sits behind a unix socket: down, it sends all it
# has, through the helper, sshd and ssh to /dev/null; up, it takes a file from memory. `cat`
# has no socket behind it and is the limit of ssh itself. Bytes that did not arrive are told
# below the tables: they are lost by the peer, as its users would lose them.
#
# Environment: SIZE (1G), ROUNDS (7), CIPHERS ("default"), CONTESTANTS ("netcat
# virt-ssh-helper socat sluice cat"; also ncat), SLUICE_BUILD (build-bench), SLUICE_HELPER,
# and those of measure.sh.

# What lab.sh and its parts set is not seen from here.
# shellcheck disable=SC2154
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CONTESTANTS=${CONTESTANTS:-netcat virt-ssh-helper socat sluice cat}
. "$(dirname "${BASH_SOURCE[0]}")/../support/lab/lab.sh"

rounds=${ROUNDS:-7}
read -r -a ciphers <<<"${CIPHERS:-default}"
mib=$(lab_mib "${SIZE:-1G}") || lab_fail "SIZE is no size of at least 1M: $SIZE"
bytes=$((mib * 1048576))
declare -A lost=()

progress()
{
    printf '  %s\n' "$*" >&2
}

# choose NAME DIRECTION: the far end, as its users would call it for a plain stream.
choose()
{
    case $1 in
    netcat) lab_far_end_measured --bare "$(lab_netcat)" -N -U "$lab_socket" ;;
    virt-ssh-helper) lab_far_end_measured --bare "${lab_native:?is not installed}" "storage:///$lab_mode" ;;
    # Its default is to linger for half a second after one side has ended.
    socat) lab_far_end_measured --bare socat -t 0.01 -b 262144 - "UNIX-CONNECT:$lab_socket" ;;
    ncat) lab_far_end_measured --bare ncat -U "$lab_socket" ;;
    sluice) lab_far_end_measured --bare "$lab_sluice" "$lab_socket" ;;
    cat)
        if [ "$2" = down ]; then
            lab_far_end_measured --bare cat "$lab_pool/bytes"
        else
            lab_far_end_measured --bare sh -c 'exec cat >/dev/null'
        fi
        ;;
    *) lab_fail "no such contestant: $1" ;;
    esac
    if [ "$2" = down ]; then
        lab_measured_daemon=source
    else
        lab_measured_daemon=sink
    fi
    ln -sfn "$lab/$lab_measured_daemon.sock" "$lab_socket"
}

# Nothing is sent, and nothing ended: some helpers take an end of their input for the end of all.
down()
{
    exec "$lab/bin/ssh" 127.0.0.1 virt-ssh-helper <&3 >/dev/null
}

count_down()
{
    "$lab/bin/ssh" 127.0.0.1 virt-ssh-helper <&3 | wc -c >"$lab/count"
}

up()
{
    exec "$lab/bin/ssh" 127.0.0.1 virt-ssh-helper <"$lab_pool/bytes" >/dev/null
}

# note_loss NAME DIRECTION ARRIVED
note_loss()
{
    [ "$3" -eq "$bytes" ] || lost[$1 $2]=$((bytes - $3))
}

check_down()
{
    choose "$1" down
    lab_run count_down
    note_loss "$1" down "$(<"$lab/count")"
}

one()
{
    local set=$1 direction=$2 name=$3
    choose "$name" "$direction"
    lab_measure "$direction"
    # A helper that lost bytes may say so, or may not; the bytes are counted in any case.
    if [ "$lab_status" -ne 0 ] && { [ "$name" = sluice ] || [ "$name" = cat ]; }; then
        lab_fail "$name, $direction: ssh failed with status $lab_status"
    fi
    lab_keep "$set.$direction.$name"
    [ "$direction" = down ] || [ "$name" = cat ] || note_loss "$name" up "$(tail -n 1 "$lab/sink.log")"
}

lab_isolate "$@"
lab_open
lab_programs "${SLUICE_BUILD:-$top/build-bench}"
lab_sshd_start
lab_pool_open "$mib"
lab_run dd if=/dev/urandom of="$lab_pool/bytes" bs=1M count="$mib" status=none
mkdir -p "${lab_socket%/*}"
mkfifo "$lab/never"
exec 3<>"$lab/never"
for end in source sink; do
    lab_daemon $end "$lab_source_sink" "$lab/$end.sock" "$bytes" $end
    lab_wait 10 test -S "$lab/$end.sock" || lab_fail "the $end did not come up"
done

printf '%s MiB over ssh without libvirt, medians of %s alternating rounds\n' "$mib" "$rounds"
for cipher in "${ciphers[@]}"; do
    lab_cipher "$([ "$cipher" = default ] || echo "$cipher")"
    progress "cipher: $cipher"
    for name in "${lab_contestants[@]}"; do
        check_down "$name"
    done
    for ((round = 0; round < rounds; round++)); do
        for direction in down up; do
            for name in $(lab_turns "$round" "${lab_contestants[@]}"); do
                one "$cipher" "$direction" "$name"
                progress "$(printf 'round %d/%d  %-4s  %-16s %7s s, helper %s CPU s, others %s %%' $((round + 1)) \
                    "$rounds" "$direction" "$name" "$lab_wall" "$lab_helper_cpu" "$lab_others")"
            done
        done
    done
    printf '\ncipher %s\n' "$cipher"
    lab_show "$cipher" down "far end"
    lab_show "$cipher" up "far end"
    if [[ " ${lab_contestants[*]} " == *" sluice "* ]]; then
        lab_target "$cipher" down netcat 0.65
        lab_target "$cipher" down virt-ssh-helper 1.00
        lab_target "$cipher" up netcat 0.50
        lab_target "$cipher" up virt-ssh-helper 1.00
    fi
done
for what in "${!lost[@]}"; do
    printf '  lost: %s: %s of %s bytes did not arrive\n' "$what" "${lost[$what]}" "$bytes"
done
[ -z "${lost[sluice down]:-}${lost[sluice up]:-}" ]
