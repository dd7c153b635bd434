#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Ten minutes of mixed conversations through sluiced: nothing lost, nothing stuck, nothing kept.
#
# 16 clients on each of four paths begin one conversation after the other: up to 16 MiB each
# way in random pieces and pauses, half-closes by either end, resets, ends that leave midway,
# and every few seconds the upstream of a path is killed and comes back. The seed is printed;
# with the same one all conversations are the same. PEERS="haproxy-splice socket-proxyd" lets
# those have the same afterwards, for a minute each; their faults are only counted.
#
# Environment: SECONDS_TOTAL (600), SEED (random, printed), PEERS, OURS (sluiced; or
# sluiced-listen), SLUICE_BUILD (build-bench), SLUICE_SLUICED. Arguments are handed to
# proxy-soak. Exit status 1 if there was a fault.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"

export SLUICE_BUILD=${SLUICE_BUILD:-$top/build-bench}
soak=$SLUICE_BUILD/tests/bench/proxy-soak
peer=$top/tests/support/lab/proxy_peer.sh
[ -x "$soak" ] || die "no proxy-soak in $SLUICE_BUILD; scripts/bench soak builds it"
require_or_skip systemd-socket-activate

seed=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
seconds=${SECONDS_TOTAL:-600}
ours=${OURS:-sluiced}
status=0
"$soak" --seconds="$seconds" --seed="$seed" "$@" "$ours" "$peer" "$ours" %l %u %d || status=$?

for name in ${PEERS:-}; do
    say ""
    "$soak" --seconds=$((seconds < 60 ? seconds : 60)) --seed="$seed" "$@" "$name" "$peer" "$name" %l %u %d | tail -n 20 || true
done
exit "$status"
