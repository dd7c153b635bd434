#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# units_test.sh UNITS SLUICED EXAMPLE: systemd takes the units in the folder UNITS as they
# are meant, finds them hardened, and the example of a configuration is one. Nothing is
# started but SLUICED --check.
set -eu

units=$1
sluiced=$(realpath "$2")
example=$3
exposure_max=2.0 # of 10; what is left is the network, and seeing other uids

if ! command -v systemd-analyze >/dev/null 2>&1; then
    echo "systemd-analyze is missing"
    [ -z "${CI:-}" ] && exit 77
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect WHAT WANTED COMMAND...: the command ends well (ok) or not (bad).
expect()
{
    local what=$1 wanted=$2 got=ok
    shift 2
    "$@" >"$work/output" 2>&1 || got=bad
    if [ "$got" = "$wanted" ]; then
        echo "ok: $what"
    else
        echo "FAILED: $what"
        sed 's/^/    /' "$work/output"
        failed=$((failed + 1))
    fi
}

# The units in a folder of their own, with the program where it has been built.
put_units()
{
    local folder=$1 unit
    mkdir -p "$folder"
    for unit in sluiced.service sluiced@.service sluiced@.socket; do
        sed "s,^ExecStart=[^ ]*,ExecStart=$sluiced," "$units/$unit" >"$folder/$unit"
    done
}

verify()
{
    # what is wrong with units of the machine is not ours
    SYSTEMD_UNIT_PATH="$1:" systemd-analyze verify --man=no --recursive-errors=one \
        "$1/sluiced.service" "$1/sluiced@x.socket" "$1/sluiced@x.service" >"$work/verify" 2>&1 || return 1
    cat "$work/verify"
    # an unknown key is no error for it, but it is for us
    ! grep -q "$1" "$work/verify"
}

secure()
{
    systemd-analyze security --offline=true --threshold="${exposure_max/./}" "$1"
}

put_units "$work/good"
expect "systemd reads the units" ok verify "$work/good"
expect "sluiced.service is hardened" ok secure "$work/good/sluiced.service"
expect "sluiced@.service is hardened" ok secure "$work/good/sluiced@x.service"

put_units "$work/bad"
sed -i 's/^ProtectSystem=.*/ProtectSystems=strict/' "$work/bad/sluiced.service"
expect "an unknown setting is noticed" bad verify "$work/bad"
put_units "$work/bad"
sed -i 's,^ExecStart=[^ ]*,ExecStart=/no/such/program,' "$work/bad/sluiced@.service"
expect "a missing program is noticed" bad verify "$work/bad"
put_units "$work/bad"
sed -i '/^SystemCallFilter=/d; /^RestrictNamespaces=/d' "$work/bad/sluiced.service"
expect "a missing restriction is noticed" bad secure "$work/bad/sluiced.service"

# the name of a unit's key that stops a wrong configuration from being started over and over
for unit in sluiced.service sluiced@.service; do
    expect "$unit does not restart what cannot work" ok grep -qx 'RestartPreventExitStatus=64 78' "$units/$unit"
done

sed 's/"www-data"/"root"/' "$example" >"$work/example.toml"
expect "the example is a good configuration" ok "$sluiced" --check "$work/example.toml"
sed -i 's/^balance = .*/balance = "sometimes"/' "$work/example.toml"
expect "a bad one is not" bad "$sluiced" --check "$work/example.toml"

[ "$failed" -eq 0 ] || { echo "$failed failed"; exit 1; }
