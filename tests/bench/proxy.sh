#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# sluiced against systemd-socket-proxyd, HAProxy with and without splice, nginx and socat.
#
# Everything is on the loopback interface of one machine. proxy-bench is the clients and the
# upstream, and what it costs itself counts for nobody. Four scenarios, each on three paths
# (client's sockets - upstream's): "bulk", one connection up and then down: seconds of wall
# time and of the proxy's CPU per GiB, system calls per GiB under strace; "churn", 32 clients
# that open, exchange 64 bytes and close; "latency", round trips of 64 bytes with 1 and with
# 500 connections, the latter at a steady 5,000 a second, alone and beside a transfer that
# never ends; "idle", what 5,000 connections hold that do nothing, and what a round trip
# beside them costs. Medians; the figure in parentheses is sluiced's divided by that
# contestant's. "direct" has no proxy at all.
#
# Where one thread wakes another on a sleeping core, the waking costs more than the work. So
# proxy and clients share one core, but for "bulk" and what is beside a transfer, where the
# proxy has a core of its own; "bulk" is done again on one. THREADS=2 lets them all run
# anywhere.
#
# Environment: ROUNDS (3), BYTES (2 GiB), TRACE_BYTES (256 MiB; 0 for no strace), IDLE (5000),
# SCENARIOS ("bulk churn latency idle"), PATHS ("unix-unix tcp-unix tcp-tcp"), PEERS
# ("haproxy-splice haproxy socket-proxyd nginx socat direct"; others in
# tests/support/lab/proxy_peer.sh), OURS (sluiced; or sluiced-listen), THREADS (1), QUICK (1: all
# in short, two minutes), SLUICE_BUILD (build-bench), SLUICE_SLUICED. Exit status 1 if sluiced
# does not work; targets that were not met are counted.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"

export SLUICE_BUILD=${SLUICE_BUILD:-$top/build-bench}
bench=$SLUICE_BUILD/tests/bench/proxy-bench
ours=${OURS:-sluiced}
idle=${IDLE:-5000}
peer=$top/tests/support/lab/proxy_peer.sh
[ -x "$bench" ] || die "no proxy-bench in $SLUICE_BUILD; scripts/bench proxy builds it"
case "$peer$SLUICE_BUILD" in
*[[:space:]]*) die "a path has a blank in it, which proxy-bench would split: $peer" ;;
esac

options=()
peers="haproxy-splice haproxy socket-proxyd nginx socat direct"
if [ "${QUICK:-0}" = 1 ]; then
    peers="haproxy-splice haproxy socket-proxyd"
    options+=(--rounds="${ROUNDS:-1}" --bytes="${BYTES:-536870912}" --trace-bytes="${TRACE_BYTES:-67108864}"
        --churn=0.7 --latency=0.7)
else
    options+=(--rounds="${ROUNDS:-3}" --bytes="${BYTES:-2147483648}" --trace-bytes="${TRACE_BYTES:-268435456}"
        --churn=1.5 --latency=1)
fi
options+=(--idle="$idle")
[ "${THREADS:-1}" -eq 1 ] || options+=(--everywhere)
for scenario in ${SCENARIOS:-}; do
    options+=(--scenario="$scenario")
done
for path in ${PATHS:-}; do
    options+=(--path="$path")
done

# As many idle connections as there are to be, each with both ends in one process, and what
# the proxies themselves ask for.
need_files()
{
    local needed=$((4 * idle > 20000 ? 4 * idle : 20000))
    [ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge "$needed" ] ||
        die "the limit of open files is $(ulimit -Hn) and $needed are needed; raise it, or set IDLE to less than $idle"
    ulimit -Sn "$(ulimit -Hn)"
}

# installed NAME: whether that proxy could be started at all
installed()
{
    case $1 in
    haproxy*) have haproxy ;;
    socket-proxyd) have systemd-socket-activate && [ -x /usr/lib/systemd/systemd-socket-proxyd ] ;;
    nginx) have nginx && [ -e /usr/lib/nginx/modules/ngx_stream_module.so ] ;;
    socat) have socat ;;
    direct) true ;;
    sluiced*) [ -x "${SLUICE_SLUICED:-$SLUICE_BUILD/src/remote/proxyd/sluiced}" ] ;;
    *) die "unknown peer: $1" ;;
    esac
}

version_of()
{
    case $1 in
    haproxy) haproxy -v | head -n 1 ;;
    nginx) nginx -v 2>&1 ;;
    socat) socat -V | sed -n 's/^socat version/socat/p' ;;
    socket-proxyd) /usr/lib/systemd/systemd-socket-proxyd --version | head -n 1 ;;
    esac
}

need_files
contestants=()
targets=()
for name in $ours ${PEERS:-$peers}; do
    if ! installed "$name"; then
        [ "$name" != "$ours" ] || die "no sluiced: build it, or say in SLUICE_SLUICED which one"
        [ -z "${CI:-}" ] || die "$name is not installed"
        warn "$name is not installed: left out, and its targets are not measured"
        continue
    fi
    if [ "$name" = direct ]; then
        contestants+=("direct=")
    else
        contestants+=("$name=$peer $name %l %u %d")
    fi
done
for way in up down up-one down-one; do
    targets+=(--target="cpu-$way/haproxy-splice<=0.6" --target="cpu-$way/socket-proxyd<=0.7")
done
for haproxy in haproxy-splice haproxy; do
    targets+=(--target="connections/$haproxy>=1")
    for figure in p99-1 p99-many p99-1-beside p99-many-beside; do
        targets+=(--target="$figure/$haproxy<=1")
    done
done
# flat: what a round trip costs may change by as much as it does from run to run
targets+=(--target="idle-memory/limit<=4096" --target="idle-reached/limit>=$idle" --target="flat/limit<=1.15")

sed -n 's/^model name[^:]*: /cpu      /p' /proc/cpuinfo | head -n 1
say "cores    $(nproc), load $(cut -d' ' -f1-3 /proc/loadavg)"
say "kernel   $(uname -sr)"
for name in haproxy nginx socat socket-proxyd; do
    ! installed "$name" || say "peer     $(version_of "$name")"
done
export THREADS=${THREADS:-1} CONNECTIONS_MAX=$((idle + 1000))
exec "$bench" "${options[@]}" "${targets[@]}" "${contestants[@]}"
