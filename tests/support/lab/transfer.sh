# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Part of lab.sh: the contestants of a comparison, each in turn at the far end of real
# transfers with virsh, and the table of what they took.
#
#   lab_programs BUILD         where Sluice was built: sets lab_sluice, lab_cpu_of, lab_source_sink
#   lab_contestants            the array of names; CONTESTANTS in the environment chooses others
#   lab_contestant NAME        puts it at the far end; sets $lab_proxy for lab_uri
#   lab_transfer SET down|up NAME     one measured transfer of the volume, into the samples of SET
#   lab_check_download NAME    one transfer, not measured, compared with the volume
#   lab_check_upload           has the last upload arrived?
#   lab_show SET down|up [END] the table of medians, with ratios to the first two contestants;
#                              END heads the column of what serves behind the helper

# The parts share their variables, and so do the scripts that source them.
# shellcheck disable=SC2154,SC2034

read -r -a lab_contestants <<<"${CONTESTANTS:-netcat virt-ssh-helper sluice}"

lab_programs()
{
    lab_cpu_of=${SLUICE_CPU_OF:-$1/tests/support/lab/cpu_of}
    lab_source_sink=${SLUICE_SOURCE_SINK:-$1/tests/support/lab/source_sink}
    lab_sluice=${SLUICE_HELPER:-$1/src/remote/helper/sluice-ssh-helper}
    lab_native=$(command -v virt-ssh-helper) || lab_native=
    local program
    for program in "$lab_cpu_of" "$lab_source_sink"; do
        [ -x "$program" ] || lab_fail "$program is not there; ./scripts/bench builds it"
    done
}

lab_far_end_measured()
{
    lab_record=$lab/record
    lab_far_end --record "$lab_record" "$@"
}

lab_contestant()
{
    lab_proxy=native
    case $1 in
    netcat)
        lab_proxy=netcat
        lab_far_end_measured "$(lab_netcat)"
        ;;
    virt-ssh-helper) lab_far_end_measured "${lab_native:?is not installed}" ;;
    sluice) lab_far_end_measured "$lab_sluice" ;;
    socat) lab_far_end --record "${lab_record:=$lab/record}" --bare socat -b262144 - "UNIX-CONNECT:$lab_socket" ;;
    ncat) lab_far_end --record "${lab_record:=$lab/record}" --bare ncat -U "$lab_socket" ;;
    *) lab_fail "no such contestant: $1" ;;
    esac
}

# Downloads go to /dev/null: new pages of memory for a whole volume cost more than its transfer.
lab_transfer()
{
    local set=$1 direction=$2 name=$3 uri
    lab_contestant "$name"
    uri=$(lab_uri "$lab_proxy")
    if [ "$direction" = down ]; then
        lab_measure virsh -q -c "$uri" vol-download --pool lab source /dev/null
    else
        lab_blank_target
        lab_measure virsh -q -c "$uri" vol-upload --pool lab target "$lab_pool/source"
    fi
    [ "$lab_status" -eq 0 ] || lab_fail "$name: virsh failed with status $lab_status"
    lab_keep "$set.$direction.$name"
}

lab_keep()
{
    lab_sample "$1.wall" "$lab_wall"
    lab_sample "$1.helper" "$lab_helper_cpu"
    lab_sample "$1.daemon" "$lab_daemon_cpu"
    lab_sample "$1.others" "$lab_others"
}

lab_blank_target()
{
    lab_run dd if=/dev/zero of="$lab_pool/target" bs=1M conv=notrunc,nocreat status=none \
        count="$(($(stat -c %s "$lab_pool/source") / 1048576))"
}

lab_check_upload()
{
    lab_run cmp "$lab_pool/source" "$lab_pool/target"
}

lab_check_download()
{
    lab_contestant "$1"
    lab_run lab_download_and_compare "$(lab_uri "$lab_proxy")"
}

lab_download_and_compare()
{
    set -o pipefail
    virsh -q -c "$1" vol-download --pool lab source /dev/stdout | cmp - "$lab_pool/source"
}

lab_show()
{
    local set=$1 direction=$2 name wall first=${lab_contestants[0]} second=${lab_contestants[1]:-${lab_contestants[0]}}
    local row='  %-10s %-16s %8s %13s %10.10s %10.10s %9s %9s %8s\n'
    # shellcheck disable=SC2059
    printf "$row" "" "" median range of of helper "${3:-daemon}" others
    # shellcheck disable=SC2059
    printf "$row" "$([ "$direction" = down ] && echo download || echo upload)" "far end" s s "$first" "$second" \
        "CPU s" "CPU s" "% core"
    for name in "${lab_contestants[@]}"; do
        wall=$(lab_median "$set.$direction.$name.wall")
        # shellcheck disable=SC2059
        printf "$row" "" "$name" "$wall" \
            "$(lab_range "$set.$direction.$name.wall")" \
            "$(lab_ratio "$wall" "$(lab_median "$set.$direction.$first.wall")")" \
            "$(lab_ratio "$wall" "$(lab_median "$set.$direction.$second.wall")")" \
            "$(lab_median "$set.$direction.$name.helper")" "$(lab_median "$set.$direction.$name.daemon" 2)" \
            "$(lab_median "$set.$direction.$name.others" 0)"
    done
}

# lab_target SET DIRECTION PEER LIMIT: our median against a peer's, and whether that is what was set as the aim.
lab_target()
{
    local ratio
    ratio=$(lab_ratio "$(lab_median "$1.$2.sluice.wall")" "$(lab_median "$1.$2.$3.wall")")
    printf '  %-8s sluice is %s of %s (target: at most %s): %s\n' \
        "$([ "$2" = down ] && echo download || echo upload)" "$ratio" "$3" "$4" "$(lab_verdict "$ratio" "$4")"
}
