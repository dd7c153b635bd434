#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A volume down and up with virsh over ssh: netcat, libvirt's helper and ours in turn.
#
# Real sshd, real libvirtd on a volume in memory; the contestants take turns, so that what
# else the machine does hits all alike. Once with a daemon that keeps its heap, for the
# default cipher and aes128-gcm, and once with a daemon as it comes, whose own page faults
# hide most of the difference. Every upload is compared, every contestant's download once.
#
# Environment: SIZE (1G), ROUNDS (7), PLAIN_ROUNDS (as ROUNDS; 0 leaves the daemon as it
# comes out), CIPHERS ("default aes128-gcm@openssh.com"), CONTESTANTS ("netcat
# virt-ssh-helper sluice"; also socat, ncat), SLUICE_BUILD (build-bench), SLUICE_HELPER,
# and those of measure.sh.

# What lab.sh and its parts set is not seen from here.
# shellcheck disable=SC2154
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$(dirname "${BASH_SOURCE[0]}")/../support/lab/lab.sh"

rounds=${ROUNDS:-7}
plain_rounds=${PLAIN_ROUNDS:-$rounds}
read -r -a ciphers <<<"${CIPHERS:-default aes128-gcm@openssh.com}"
mib=$(lab_mib "${SIZE:-1G}") || lab_fail "SIZE is no size of at least 1M: $SIZE"

progress()
{
    printf '  %s\n' "$*" >&2
}

# compare SET ROUNDS: both directions, all contestants.
compare()
{
    local set=$1 count=$2 round direction name
    for name in "${lab_contestants[@]}"; do
        lab_check_download "$name" || lab_fail "$name: the download is not what was sent"
    done
    for ((round = 0; round < count; round++)); do
        for direction in down up; do
            for name in $(lab_turns "$round" "${lab_contestants[@]}"); do
                lab_transfer "$set" "$direction" "$name"
                [ "$direction" = down ] || lab_check_upload || lab_fail "$name: the upload is not what was sent"
                progress "$(printf 'round %d/%d  %-4s  %-16s %7s s, helper %s CPU s, others %s %%' $((round + 1)) \
                    "$count" "$direction" "$name" "$lab_wall" "$lab_helper_cpu" "$lab_others")"
            done
        done
    done
}

# report SET TITLE
report()
{
    printf '\n%s\n' "$2"
    lab_show "$1" down libvirtd
    lab_show "$1" up libvirtd
}

targets()
{
    [[ " ${lab_contestants[*]} " == *" sluice "* ]] || return 0
    lab_target "$1" down netcat 1.00
    lab_target "$1" down virt-ssh-helper 1.00
    lab_target "$1" up netcat 0.70
    lab_target "$1" up virt-ssh-helper 0.80
    printf '  %-8s aim: 0.875 of netcat\n' download
}

choose_cipher()
{
    lab_cipher "$([ "$1" = default ] || echo "$1")"
}

lab_isolate "$@"
lab_open
lab_programs "${SLUICE_BUILD:-$top/build-bench}"
lab_sshd_start
lab_pool_open $((2 * mib))

printf 'virsh vol-download and vol-upload of %s MiB over ssh, medians of %s alternating rounds\n' "$mib" "$rounds"
progress "a daemon that keeps its heap"
lab_libvirtd_start "$lab_malloc_tunables"
lab_volumes "$mib"
for cipher in "${ciphers[@]}"; do
    progress "cipher: $cipher"
    choose_cipher "$cipher"
    compare "tuned.$cipher" "$rounds"
    report "tuned.$cipher" "cipher $cipher, libvirtd with ${lab_malloc_tunables%%=*}"
    targets "tuned.$cipher"
done

if [ "$plain_rounds" -gt 0 ]; then
    progress "the daemon as it comes"
    lab_libvirtd_stop
    lab_libvirtd_start
    choose_cipher "${ciphers[0]}"
    compare plain "$plain_rounds"
    report plain "cipher ${ciphers[0]}, libvirtd as it comes (medians of $plain_rounds)"
fi
