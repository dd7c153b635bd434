#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# sluiced in front of real daemons, with their own clients: libvirt, PostgreSQL, Redis,
# memcached, nbdkit and nginx over TLS. Whatever came through is compared, by checksum or
# by the peer's own checks.
#
# Environment: SLUICE_SLUICED, the program; SLUICE_CPU_OF, the program of tests/support/lab.

. "$(dirname "${BASH_SOURCE[0]}")/../support/lab/lab.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../support/lab/services.sh"

sluiced=${SLUICE_SLUICED:?the path of sluiced}
# shellcheck disable=SC2034
lab_cpu_of=${SLUICE_CPU_OF:-}
mib=64

lab_isolate "$@"
lab_need socat python3
lab_open
lab_failed()
{
    tail -n 20 "$lab"/*.log >&2
}

mkdir "$lab/www" "$lab/pg"
head -c "${mib}M" /dev/urandom >"$lab/www/image"
for ((i = 0; i < 200; i++)); do printf 'file %d\n' "$i" >"$lab/www/$i"; done

lab_libvirtd_start
lab_pool_open $((3 * mib))
lab_volumes "$mib"
lab_postgres_start
lab_redis_start
lab_memcached_start
lab_nbdkit_start "$lab/www/image"
lab_nginx_start "$lab/www"

pg_port=$(lab_free_port) web_port=$(lab_free_port)
# PostgreSQL's client makes the name of the socket from the port.
cat >"$lab/sluiced.toml" <<CONFIG
[daemon]
workers = 2
[[service]]
name = "libvirt"
listen = "$lab/front-libvirt"
connect = "$lab_socket"
[[service]]
name = "postgres"
listen = ["$lab/pg/.s.PGSQL.5432", "tcp:127.0.0.1:$pg_port"]
connect = "$lab_postgres/.s.PGSQL.5432"
[[service]]
name = "redis"
listen = "$lab/front-redis"
connect = "$lab_redis"
[[service]]
name = "memcached"
listen = "$lab/front-memcached"
connect = "$lab_memcached"
[[service]]
name = "nbd"
listen = "$lab/front-nbd"
connect = "$lab_nbdkit"
[[service]]
name = "web"
listen = "tcp:127.0.0.1:$web_port"
connect = "$lab_nginx"
CONFIG
lab_daemon sluiced "$sluiced" --config "$lab/sluiced.toml"
lab_wait 30 lab_listens "$lab/front-redis" || lab_fail "sluiced did not come up"

failed=0

# check NAME COMMAND...: each is told on one line; the rest still runs.
check()
{
    local name=$1
    shift
    if lab_run timeout 120 bash -c '. "$0" && "$@"' "$lab/checks.sh" "$@" >"$lab/check.log" 2>&1; then
        printf 'ok      %s\n' "$name"
    else
        printf 'FAILED  %s\n' "$name"
        sed 's/^/        /' "$lab/check.log"
        failed=$((failed + 1))
    fi
}

cat >"$lab/checks.sh" <<CHECKS
set -eu
lab=$lab lab_pool=$lab_pool pg_port=$pg_port web_port=$web_port
uri='$lab_local?socket=$lab/front-libvirt'
CHECKS
cat >>"$lab/checks.sh" <<'CHECKS'
libvirt_lists()
{
    virsh -q -c "$uri" pool-list --all | grep -w lab
}
libvirt_downloads()
{
    rm -f "$lab/out"
    virsh -q -c "$uri" vol-download --pool lab source "$lab/out"
    cmp "$lab/out" "$lab_pool/source"
}
libvirt_uploads()
{
    virsh -q -c "$uri" vol-upload --pool lab target "$lab_pool/source"
    cmp "$lab_pool/target" "$lab_pool/source"
}
# Many small requests on one connection, as a console is.
libvirt_talks()
{
    for i in $(seq 200); do echo "vol-info --pool lab source"; done | virsh -q -c "$uri" >"$lab/talk"
    [ "$(grep -c '^Capacity' "$lab/talk")" -eq 200 ]
}
postgres_unix()
{
    pgbench -h "$lab/pg" -U lab -i -q -s 2 postgres
    pgbench -h "$lab/pg" -U lab -c 8 -j 2 -t 100 postgres | tee "$lab/pgbench"
    grep -q 'number of transactions actually processed: 800/800' "$lab/pgbench"
}
postgres_tcp_each_its_own_connection()
{
    pgbench -h 127.0.0.1 -p "$pg_port" -U lab -C -S -c 4 -t 50 postgres | tee "$lab/pgbench"
    grep -q 'number of transactions actually processed: 200/200' "$lab/pgbench"
}
# A result of tens of megabytes, summed at both ends.
postgres_large_result()
{
    local query="SELECT repeat(md5(i::text), 32) FROM generate_series(1, 40000) AS i"
    psql -h "$lab/pg" -U lab -d postgres -Atc "$query" | md5sum | cut -c 1-32 >"$lab/here"
    psql -h "$lab/pg" -U lab -d postgres -Atc \
        "SELECT md5(string_agg(t.s || E'\n', '')) FROM (SELECT repeat(md5(i::text), 32) AS s FROM generate_series(1, 40000) AS i) t" >"$lab/there"
    cmp "$lab/here" "$lab/there"
}
redis_pipelines()
{
    redis-benchmark -s "$lab/front-redis" -n 20000 -c 50 -P 16 -q -t set,get,lrange_100
    redis-cli -s "$lab/front-redis" -x SET image <"$lab/www/image"
    redis-cli -s "$lab/front-redis" --raw GET image | head -c "$(stat -c %s "$lab/www/image")" | cmp - "$lab/www/image"
}
memcached_sets_and_gets()
{
    head -c 500000 "$lab/www/image" | base64 -w 0 >"$lab/value"
    {
        printf 'set key 0 0 %d\r\n' "$(stat -c %s "$lab/value")"
        cat "$lab/value"
        printf '\r\nget key\r\nquit\r\n'
    } | socat -t 30 - "UNIX-CONNECT:$lab/front-memcached" | tr -d '\r' >"$lab/got"
    sed -n 3p "$lab/got" | tr -d '\n' | cmp - "$lab/value"
}
nbdcopy_reads()
{
    nbdcopy "nbd+unix:///?socket=$lab/front-nbd" "$lab/copy"
    cmp "$lab/copy" "$lab/www/image"
}
nbdcopy_writes()
{
    head -c "$(stat -c %s "$lab/www/image")" /dev/urandom >"$lab/new"
    nbdcopy "$lab/new" "nbd+unix:///?socket=$lab/front-nbd"
    nbdcopy "nbd+unix:///?socket=$lab/front-nbd" "$lab/copy"
    cmp "$lab/copy" "$lab/new"
}
web()
{
    curl -sS --cacert "$lab/nginx.pem" --resolve "localhost:$web_port:127.0.0.1" "$@"
}
tls_keeps_alive()
{
    web "https://localhost:$web_port/[0-199]" -w '%{num_connects}\n' >"$lab/pages"
    [ "$(grep -c '^file' "$lab/pages")" -eq 200 ]
    # one connection in all
    [ "$(grep -cx '[1-9]' "$lab/pages")" -eq 1 ]
}
tls_downloads()
{
    for i in 1 2 3 4; do web "https://localhost:$web_port/image" | cmp - "$lab/www/image" & done
    for i in 1 2 3 4; do wait -n; done
}
CHECKS

check "libvirt: pools are listed" libvirt_lists
check "libvirt: vol-download" libvirt_downloads
check "libvirt: vol-upload" libvirt_uploads
check "libvirt: 200 requests on one connection" libvirt_talks
check "PostgreSQL: pgbench over unix" postgres_unix
check "PostgreSQL: pgbench over tcp, a connection for each transaction" postgres_tcp_each_its_own_connection
check "PostgreSQL: a large result" postgres_large_result
check "Redis: pipelines and a large value" redis_pipelines
check "memcached: a large value" memcached_sets_and_gets
check "nginx: 200 requests on one TLS connection" tls_keeps_alive
check "nginx: four large downloads at once" tls_downloads
check "nbdkit: nbdcopy reads" nbdcopy_reads
check "nbdkit: nbdcopy writes" nbdcopy_writes

lab_alive sluiced || lab_fail "sluiced has ended: $(tail -n 5 "$lab/sluiced.log")"
[ ! -s "$lab/sluiced.log" ] || ! grep -i -E 'error|cannot' "$lab/sluiced.log" || failed=$((failed + 1))
[ "$failed" -eq 0 ] || lab_fail "$failed checks have failed"
