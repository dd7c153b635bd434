# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Part of lab.sh: what a transfer costs, on a machine that may be busy with other work.
#
#   lab_measure COMMAND...     sets lab_status, lab_wall, lab_helper_cpu, lab_daemon_cpu (seconds)
#                              and lab_others (CPU of everybody else, per cent of one core);
#                              waits for a quiet moment first, and a run that others disturbed
#                              by more than LAB_OTHERS_MAX (15) is done again, at most LAB_TRIES
#                              (3) times in all; the least disturbed one counts
#   lab_sample KEY VALUE       keeps a value; lab_median KEY, lab_range KEY read them out
#   lab_ratio A B              A / B with two decimals, `-` if either is missing
#   lab_verdict RATIO LIMIT    `met` or `NOT met`
#   lab_turns N WORD...        the words, turned N places, so that each comes first in turn
#   lab_mib SIZE               1G, 1GiB, 64M ... as a number of MiB
#
# The helper's time is read from $lab_record, which lab_far_end --record fills, the daemon's
# from the process called $lab_measured_daemon.

# The parts share their variables, and so do the scripts that source them.
# shellcheck disable=SC2154,SC2034

lab_record=
lab_measured_daemon=libvirtd
lab_ticks=$(getconf CLK_TCK)
lab_others_max=${LAB_OTHERS_MAX:-15}
lab_tries=${LAB_TRIES:-3}
# How long to hold out for a quiet moment, in quarters of a second.
lab_quiet_turns=${LAB_QUIET_TURNS:-40}

# Ticks that all processors have spent on processes so far. Interrupts are left out: those of our own traffic would
# count as other people's.
lab_busy_ticks()
{
    awk '/^cpu / { print $2 + $3 + $4; exit }' /proc/stat
}

# lab_ticks_of PID [children]: ticks of a process, with those of its children that have ended.
lab_ticks_of()
{
    awk -v children="${2:-}" '{ sub(/.*\) /, ""); print $12 + $13 + (children ? $14 + $15 : 0) }' "/proc/$1/stat"
}

lab_own_ticks()
{
    local name sum
    sum=$(lab_ticks_of $$ children)
    for name in "${!lab_pids[@]}"; do
        lab_dead "$name" || sum=$((sum + $(lab_ticks_of "${lab_pids[$name]}" children)))
    done
    printf '%s' "$sum"
}

# An sshd gives account of a connection only once its process has ended.
lab_sshd_idle()
{
    local stat fields
    for stat in /proc/[0-9]*/stat; do
        read -r fields 2>/dev/null <"$stat" || continue
        fields=${fields##*) }
        [[ $fields != ?" ${lab_pids[sshd]} "* || $fields == Z* ]] || return 1
    done
}

lab_quiet()
{
    local turn before after
    before=$(lab_busy_ticks)
    for ((turn = 0; turn < lab_quiet_turns; turn++)); do
        sleep 0.25
        after=$(lab_busy_ticks)
        [ $(((after - before) * 400 / lab_ticks)) -gt "$lab_others_max" ] || return 0
        before=$after
    done
}

lab_measure()
{
    local try best
    for ((try = 1; try <= lab_tries; try++)); do
        lab_quiet
        lab_measure_once "$@"
        if [ -z "${best:-}" ] || [ "$lab_others" -lt "${best##* }" ] || [ "$lab_status" -ne 0 ]; then
            best="$lab_status $lab_wall $lab_helper_cpu $lab_daemon_cpu $lab_others"
        fi
        if [ "$lab_status" -ne 0 ] || [ "$lab_others" -le "$lab_others_max" ]; then
            break
        fi
    done
    read -r lab_status lab_wall lab_helper_cpu lab_daemon_cpu lab_others <<<"$best"
}

lab_measure_once()
{
    local busy own daemon start end pid=${lab_pids[$lab_measured_daemon]}
    [ -z "$lab_record" ] || : >"$lab_record"
    busy=$(lab_busy_ticks) own=$(lab_own_ticks) daemon=$(lab_ticks_of "$pid")
    start=$EPOCHREALTIME
    lab_status=0
    lab_run "$@" || lab_status=$?
    end=$EPOCHREALTIME
    lab_wait 10 lab_sshd_idle
    busy=$(($(lab_busy_ticks) - busy)) own=$(($(lab_own_ticks) - own)) daemon=$(($(lab_ticks_of "$pid") - daemon))
    lab_wall=$(awk -v a="$start" -v b="$end" 'BEGIN { printf "%.3f", b - a }')
    lab_others=$(awk -v t=$((busy - own)) -v hz="$lab_ticks" -v w="$lab_wall" \
        'BEGIN { t = 100 * t / hz / w; printf "%d", t < 0 ? 0 : t }')
    lab_daemon_cpu=$(awk -v t="$daemon" -v hz="$lab_ticks" 'BEGIN { printf "%.2f", t / hz }')
    lab_helper_cpu=-
    [ -z "$lab_record" ] || [ ! -s "$lab_record" ] ||
        lab_helper_cpu=$(awk '{ s += $2 + $3 } END { printf "%.3f", s }' "$lab_record")
}

lab_sample()
{
    printf '%s\n' "$2" >>"$lab/samples/$1"
}

lab_sorted()
{
    grep -v '^-$' "$lab/samples/$1" 2>/dev/null | LC_ALL=C sort -g
}

lab_median()
{
    lab_sorted "$1" | awk '{ a[NR] = $1 }
        END { if (NR) printf "%.*f", '"${2:-3}"', (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2; else printf "-" }'
}

lab_range()
{
    lab_sorted "$1" | awk 'NR == 1 { low = $1 } { high = $1 }
        END { if (NR) printf "%.2f-%.2f", low, high; else printf "-" }'
}

lab_ratio()
{
    awk -v a="$1" -v b="$2" 'BEGIN { if (a == "-" || b == "-" || b == 0) print "-"; else printf "%.2f\n", a / b }'
}

lab_verdict()
{
    awk -v a="$1" -v b="$2" 'BEGIN { print a == "-" ? "not measured" : a <= b ? "met" : "NOT met" }'
}

lab_turns()
{
    local n=$1
    shift
    n=$((n % $#))
    printf '%s ' "${@:n+1}" "${@:1:n}"
}

lab_mib()
{
    local bytes
    bytes=$(numfmt --from=iec "${1%iB}") && [ "$bytes" -ge 1048576 ] || return 1
    printf '%s' $((bytes / 1048576))
}
