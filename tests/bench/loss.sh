#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Randomised conversations through the helper, each way: no byte lost, no hang, right exit code.
#
# Sizes of 0 to 100 MB, pieces, pauses, buffers, kinds of stdin, and who closes first are all
# drawn from the seed. Exit status 1 if a run failed; it is printed with the options that
# repeat it alone. PEERS=1 lets the peers have the same conversations afterwards, each run of
# theirs cut off after 3 seconds, and exit codes left out of account.
#
# Environment: RUNS (1000), SEED (random, printed), PEERS, SLUICE_BUILD (build-bench),
# SLUICE_HELPER. Arguments are handed to relay-loss.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"

build=${SLUICE_BUILD:-$top/build-bench}
loss=$build/tests/bench/relay-loss
helper=${SLUICE_HELPER:-$build/src/remote/helper/sluice-ssh-helper}
[ -x "$loss" ] && [ -x "$helper" ] || die "no relay-loss and helper in $build; scripts/bench loss builds them"

seed=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
options=(--runs="${RUNS:-1000}" --seed="$seed" "$@")
status=0
say "sluice-ssh-helper"
"$loss" "${options[@]}" -- "$helper" %s || status=$?

peer()
{
    say "$*"
    "$loss" "${options[@]}" --hang=3 --any-exit -- "$@" | tail -n 1 || true
}

if [ -n "${PEERS:-}" ]; then
    peer nc.openbsd -U %s
    peer nc.openbsd -N -U %s
    peer socat -b262144 - UNIX-CONNECT:%s
    peer ncat -U %s
fi
exit "$status"
