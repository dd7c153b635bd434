#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The helper on bare pipes and socket pairs, against nc, socat, ncat and libvirt's helper.
#
# A feeder and a drain of our own are at both ends, so that only the relay in between
# differs: wall time, CPU seconds per GiB, memory, system calls per GiB (a run of its own,
# under strace), first byte from fork, and 64-byte round trips, each up (stdin to socket) and
# down. "direct" has no relay at all: the ends' own time. Medians; the figure in parentheses
# is sluice's divided by that contestant's. virt-ssh-helper connects to a path of its own, so
# everything runs in a mount namespace in which that path is ours.
#
# Environment: BYTES (4 GiB), STRACE_BYTES (1 GiB), ROUNDS (5), STDIO (both; or pipes,
# socketpair), PEERS ("nc socat ncat virt-ssh-helper direct"), SLUICE_BUILD (build-bench),
# SLUICE_HELPER.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"

build=${SLUICE_BUILD:-$top/build-bench}
bench=$build/tests/bench/relay-bench
helper=${SLUICE_HELPER:-$build/src/remote/helper/sluice-ssh-helper}
libvirt_dir=/run/libvirt

[ -x "$bench" ] && [ -x "$helper" ] || die "no relay-bench and helper in $build; scripts/bench helper builds them"
case "$helper" in
*[[:space:]]*) die "the helper's path has a blank in it, which relay-bench would split: $helper" ;;
esac
require_or_skip nc.openbsd socat ncat strace unshare

contestants=("sluice=$helper %s")
targets=(--target=wall/all=1 --target=calls/limit=5000 --target=rss/limit=8192)
for peer in ${PEERS:-nc socat ncat virt-ssh-helper direct}; do
    case $peer in
    nc)
        contestants+=("nc=nc.openbsd -U %s")
        targets+=(--target=cpu/nc=0.2 --target=first-byte/nc=1)
        ;;
    socat) contestants+=("socat=socat -b262144 - UNIX-CONNECT:%s") ;;
    ncat) contestants+=("ncat=ncat -U %s") ;;
    virt-ssh-helper)
        if ! have virt-ssh-helper || [ ! -d "$libvirt_dir" ]; then
            [ -z "${CI:-}" ] || die "virt-ssh-helper is not installed"
            warn "virt-ssh-helper is not installed: left out"
            continue
        fi
        contestants+=("virt-ssh-helper=virt-ssh-helper qemu:///system")
        targets+=(--target=cpu/virt-ssh-helper=0.35)
        ;;
    direct)
        contestants+=("direct=")
        targets+=(--target=ping-pong/direct=1.2)
        ;;
    *) die "unknown peer: $peer" ;;
    esac
done

sed -n 's/^model name[^:]*: /cpu      /p' /proc/cpuinfo | head -n 1
say "cores    $(nproc), load $(cut -d' ' -f1-3 /proc/loadavg)"
say "kernel   $(uname -sr)"

options=(--bytes="${BYTES:-4294967296}" --strace-bytes="${STRACE_BYTES:-1073741824}" --rounds="${ROUNDS:-5}"
    --stdio="${STDIO:-both}" "${targets[@]}")
namespace=(unshare -m)
[ "$(id -u)" -eq 0 ] || namespace=(unshare -Urm)
if [ -d "$libvirt_dir" ] && "${namespace[@]}" true 2>/dev/null; then
    # the quotes are for the inner shell
    # shellcheck disable=SC2016
    exec "${namespace[@]}" sh -c 'mount -t tmpfs none "$0" && exec "$@"' "$libvirt_dir" \
        "$bench" "${options[@]}" --socket="$libvirt_dir/libvirt-sock" "${contestants[@]}"
fi
warn "no mount namespaces here: virt-ssh-helper cannot be pointed at our socket and will not complete"
exec "$bench" "${options[@]}" "${contestants[@]}"
