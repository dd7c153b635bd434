#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The main job, end to end: real virsh, ssh, sshd and libvirtd with sluice-ssh-helper at the
# far end, called as itself with libvirt's arguments and by the name virt-ssh-helper. Every
# volume that went through must be equal, byte for byte, and the helper must have ended well.
#
# Environment: SLUICE_HELPER, the helper; SLUICE_CPU_OF, the program of tests/support/lab;
# VOLUME_MIB (64).

. "$(dirname "${BASH_SOURCE[0]}")/../support/lab/lab.sh"

helper=${SLUICE_HELPER:?the path of sluice-ssh-helper}
# shellcheck disable=SC2034
lab_cpu_of=${SLUICE_CPU_OF:?the path of cpu_of}
mib=${VOLUME_MIB:-64}

lab_isolate "$@"
lab_open
lab_sshd_start
lab_libvirtd_start
lab_pool_open $((3 * mib))
lab_volumes "$mib"
records=$lab/records
source=$lab_pool/source target=$lab_pool/target out=$lab_pool/out

lab_failed()
{
    tail -n 20 "$lab/sshd.log" "$lab/libvirtd.log" >&2
}

failed=0

# check NAME COMMAND...: each is told on one line; the rest still runs.
check()
{
    local name="$way: $1"
    shift
    if "$@" >"$lab/check.log" 2>&1; then
        printf 'ok      %s\n' "$name"
    else
        printf 'FAILED  %s\n' "$name"
        sed 's/^/        /' "$lab/check.log"
        failed=$((failed + 1))
    fi
}

remote_virsh()
{
    lab_run timeout 120 virsh -q -c "$(lab_uri native "$1")" "${@:2}"
}

download()
{
    rm -f "$out"
    remote_virsh storage vol-download --pool lab source "$out" && cmp "$out" "$source"
}

# A part that begins and ends nowhere in particular.
download_part()
{
    rm -f "$out"
    remote_virsh storage vol-download --pool lab source "$out" --offset 1000003 --length 7654321 &&
        cmp "$out" <(tail -c +1000004 "$source" | head -c 7654321)
}

upload()
{
    blank_target && remote_virsh storage vol-upload --pool lab target "$source" && cmp "$target" "$source"
}

blank_target()
{
    dd if=/dev/zero of="$target" bs=1M count="$mib" conv=notrunc,nocreat status=none && ! cmp -s "$target" "$source"
}

# One connection each way at the same time.
both()
{
    local down up status=0
    rm -f "$out"
    blank_target || return 1
    remote_virsh storage vol-download --pool lab source "$out" &
    down=$!
    remote_virsh storage vol-upload --pool lab target "$source" &
    up=$!
    wait $down || status=1
    wait $up || status=1
    [ $status -eq 0 ] && cmp "$out" "$source" && cmp "$target" "$source"
}

# A stream to which the far end says no: the error must come back as libvirt's own, not as a broken connection.
refused()
{
    ! remote_virsh storage vol-download --pool lab no-such-volume "$out" 2>"$lab/refused.log" || return 1
    cat "$lab/refused.log"
    grep -qi 'no storage vol' "$lab/refused.log"
}

# Many small questions and answers on one connection.
conversation()
{
    local i answers
    for ((i = 0; i < 200; i++)); do
        printf 'vol-path --pool lab source\n'
    done >"$lab/questions"
    answers=$(timeout 60 virsh -q -c "$(lab_uri native)" <"$lab/questions" | grep -cx "$source")
    printf '%s answers of 200\n' "$answers"
    [ "$answers" -eq 200 ]
}

list()
{
    remote_virsh test list --name | grep -qx test
}

read_only()
{
    lab_run timeout 60 virsh -q -r -c "$(lab_uri native test)" list --name | grep -qx test || return 1
    ! lab_run timeout 60 virsh -q -r -c "$(lab_uri native test)" suspend test
}

# The one stream that the test driver has: a small picture, ended by the far end.
screenshot()
{
    rm -f "$out"
    remote_virsh test screenshot test "$out" && cmp "$out" /usr/share/libvirt/test-screenshot.png
}

# Messages that nobody asked for. The guest goes up and down until the other connection has heard of it; the test
# driver forgets its guests with the last connection, so that either command may come at the wrong time.
events()
{
    local listener end=$((SECONDS + 60)) status=0
    timeout 60 virsh -q -c "$(lab_uri native test)" event test --event lifecycle >"$lab/events.log" 2>&1 </dev/null &
    listener=$!
    while kill -0 $listener 2>/dev/null && [ $SECONDS -lt $end ]; do
        remote_virsh test suspend test
        remote_virsh test resume test
    done
    wait $listener || status=1
    cat "$lab/events.log"
    [ $status -eq 0 ] && grep -q "event 'lifecycle' for domain" "$lab/events.log"
}

all_checks()
{
    check "download" download
    check "download of a part" download_part
    check "upload" upload
    check "download and upload at the same time" both
    check "a volume that is not there" refused
    check "200 small requests" conversation
    # An ordinary user's session daemon has no test driver that libvirt would look for there.
    if [ "$lab_mode" = system ]; then
        check "virsh list" list
        check "read-only connection" read_only
        [ ! -e /usr/share/libvirt/test-screenshot.png ] || check "screenshot stream" screenshot
    fi
}

all_events()
{
    [ "$lab_mode" != system ] || check "lifecycle events" events
}

# ended STATUS...: the helper has run, and ended with one of these each time.
ended()
{
    lab_wait 20 lab_sshd_idle || return 1
    awk -v allowed=" $* " '{ count++; if (!index(allowed, " " $5 " ")) { bad++; print "status " $5 } }
        END { print count + 0 " runs"; exit !count || bad }' "$records"
}

way="sluice-ssh-helper URI"
lab_far_end --record "$records" "$helper"
all_checks
check "the helper ran, and ended with 0 each time" ended 0
# The listener leaves while events are still on their way to it, which is an I/O error if one meets a closed pipe.
all_events
check "with the listener gone, 0 or 74" ended 0 74

way="virt-ssh-helper"
lab_far_end_is "$helper"
# shellcheck disable=SC2016
found=$("$lab/bin/ssh" 127.0.0.1 'readlink -f "$(command -v virt-ssh-helper)"')
check "is what libvirt finds" test "$found" = "$(readlink -f "$helper")"
all_checks
all_events

if [ $failed -gt 0 ]; then
    printf '%d checks failed\n' $failed
    exit 1
fi
