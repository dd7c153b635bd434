#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# sluice and curl on the admin socket of a real sluiced with two workers: what they see is
# what is there, and their orders are carried out.
#
# Environment: SLUICE_SLUICED and SLUICE_CLI, the programs.

. "$(dirname "${BASH_SOURCE[0]}")/../support/lab/lab.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../support/lab/services.sh"

sluiced=${SLUICE_SLUICED:?the path of sluiced}
cli=${SLUICE_CLI:?the path of sluice}

lab_isolate "$@"
lab_need socat curl python3
lab_open
lab_failed()
{
    tail -n 20 "$lab"/*.log >&2
}

lab_daemon echo socat "UNIX-LISTEN:$lab/up,fork" EXEC:cat
lab_wait 30 test -S "$lab/up"
lab_daemon sluiced "$sluiced" --workers=2 --listen="$lab/front" --admin="$lab/admin" "$lab/up"
lab_wait 30 test -S "$lab/admin" || lab_fail "sluiced did not come up"

sluice()
{
    "$cli" --admin="$lab/admin" "$@"
}

# value EXPRESSION: of the status, which is `s` in Python.
value()
{
    sluice status --json --connections | python3 -c "import json, sys; s = json.load(sys.stdin); print($1)"
}

# is EXPRESSION WORD
is()
{
    [ "$(value "$1")" = "$2" ]
}

# expect WHAT COMMAND...: within a generous time.
expect()
{
    local what=$1
    shift
    lab_wait 30 "$@" || lab_fail "$what: $*"
    printf 'ok      %s\n' "$what"
}

# A client that stays, and says so when its connection has ended.
client()
{
    mkfifo "$lab/$1.in"
    (socat - "UNIX-CONNECT:$lab/front" <"$lab/$1.in" >"$lab/$1.out" && echo over >>"$lab/$1.over") &
    # held open by a number of its own, for as long as the client is to stay
    eval "exec $2>\"$lab/$1.in\""
    echo "hello of $1" >&"$2"
}

client one 20
expect "a client is served" grep -q 'hello of one' "$lab/one.out"
expect "it is counted" is 's["services"][0]["active"]' 1
expect "both workers are shown" is 'len(s["workers"])' 2
expect "its bytes are seen while it is there" is 's["connections"][0]["up"]["bytes"]' 13
sluice status --connections | grep -q "uid $(id -u)" || lab_fail "who it is, is not told"

sluice drain default
expect "the service drains" is 's["services"][0]["state"]' draining
client two 21
echo "again" >&20
expect "the connection that was there runs on" grep -q again "$lab/one.out"
[ ! -s "$lab/two.out" ] || lab_fail "a client was served by a service that drains"
sluice resume default
expect "who waited is served" grep -q 'hello of two' "$lab/two.out"

id=$(value 's["connections"][-1]["id"]')
sluice close "$id"
expect "a connection is closed by hand" test -s "$lab/one.over"
expect "and counted as that" grep -q 'sluice_connections_closed_total{service="default",reason="admin"} 1' \
    <(curl -sS --unix-socket "$lab/admin" http://localhost/metrics)
status=0
sluice close "$id" 2>"$lab/close.log" || status=$?
[ "$status" -ne 0 ] || lab_fail "closing what is gone is no failure"
status=0
sluice drain nothing 2>"$lab/drain.log" || status=$?
[ "$status" -ne 0 ] && grep -q nothing "$lab/drain.log" || lab_fail "an unknown service is not named: $(<"$lab/drain.log")"
exec 20>&- 21>&-
expect "all are gone" is 's["services"][0]["active"]' 0
