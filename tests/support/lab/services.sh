# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Part of lab.sh, sourced by those that want it: real daemons for a proxy to stand in front
# of, each on a unix socket in $lab, with nothing of the host's configuration or data.
#
#   lab_free_port          prints one
#   lab_postgres_start     PostgreSQL; $lab_postgres is its socket's folder
#   lab_redis_start        $lab_redis, its socket
#   lab_memcached_start    $lab_memcached
#   lab_nbdkit_start FILE  serves FILE; $lab_nbdkit
#   lab_nginx_start ROOT   serves ROOT over TLS with keep-alive; $lab_nginx
#
# Each skips the test where its daemon is not installed (and fails it under CI).

# The parts share their variables, and so do the scripts that source them.
# shellcheck disable=SC2154,SC2034

lab_need()
{
    local tool
    for tool in "$@"; do
        PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null || lab_skip "$tool is not installed"
    done
}

# lab_listens PATH: somebody answers on that socket.
lab_listens()
{
    socat -u OPEN:/dev/null "UNIX-CONNECT:$1" 2>/dev/null
}

# A port of the loopback interface that nobody uses just now.
lab_free_port()
{
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# PostgreSQL will not run as root: its own user stands in then.
lab_as_postgres()
{
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"
    else
        "$@"
    fi
}

lab_postgres_start()
{
    local programs
    programs=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
    [ -n "$programs" ] || lab_skip "PostgreSQL is not installed"
    PATH=$programs:$PATH
    lab_postgres=$lab/postgres
    mkdir "$lab_postgres"
    chmod 755 "$lab"
    [ "$(id -u)" -ne 0 ] || chown postgres: "$lab_postgres"
    lab_as_postgres "$programs/initdb" -D "$lab_postgres/data" -U lab -A trust -N -E UTF8 --locale=C \
        >"$lab/initdb.log" 2>&1 </dev/null || lab_fail "initdb has failed: $(tail -n 3 "$lab/initdb.log")"
    if [ "$(id -u)" -eq 0 ]; then
        lab_daemon postgres setpriv --reuid=postgres --regid=postgres --clear-groups -- "$programs/postgres" \
            -D "$lab_postgres/data" -k "$lab_postgres" -c listen_addresses= -c fsync=off
    else
        lab_daemon postgres "$programs/postgres" -D "$lab_postgres/data" -k "$lab_postgres" -c listen_addresses= -c fsync=off
    fi
    lab_wait 30 lab_postgres_answers || lab_fail "PostgreSQL did not come up: $(tail -n 3 "$lab/postgres.log")"
}

lab_postgres_answers()
{
    psql -h "$lab_postgres" -U lab -d postgres -Atc 'SELECT 1' >/dev/null 2>&1
}

lab_redis_start()
{
    lab_need redis-server redis-cli redis-benchmark
    lab_redis=$lab/redis.sock
    lab_daemon redis redis-server --port 0 --unixsocket "$lab_redis" --save '' --appendonly no --dir "$lab"
    lab_wait 30 lab_listens "$lab_redis" || lab_fail "redis did not come up"
}

lab_memcached_start()
{
    lab_need memcached
    lab_memcached=$lab/memcached.sock
    lab_daemon memcached memcached -u "$(id -un)" -s "$lab_memcached" -a 0700
    lab_wait 30 lab_listens "$lab_memcached" || lab_fail "memcached did not come up"
}

lab_nbdkit_start()
{
    lab_need nbdkit nbdcopy
    lab_nbdkit=$lab/nbdkit.sock
    lab_daemon nbdkit nbdkit --foreground --exit-with-parent --unix "$lab_nbdkit" file "$1"
    lab_wait 30 test -S "$lab_nbdkit" || lab_fail "nbdkit did not come up"
}

lab_nginx_start()
{
    lab_need nginx openssl curl
    lab_nginx=$lab/nginx.sock
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -keyout "$lab/nginx.key" -out "$lab/nginx.pem" 2>"$lab/openssl.log" || lab_fail "no certificate can be made"
    cat >"$lab/nginx.conf" <<CONFIG
daemon off;
pid $lab/nginx.pid;
error_log stderr;
events { worker_connections 512; }
http {
    access_log off;
    client_body_temp_path $lab/nginx-body;
    proxy_temp_path $lab/nginx-proxy;
    fastcgi_temp_path $lab/nginx-fastcgi;
    uwsgi_temp_path $lab/nginx-uwsgi;
    scgi_temp_path $lab/nginx-scgi;
    keepalive_requests 100000;
    server {
        listen unix:$lab_nginx ssl;
        ssl_certificate $lab/nginx.pem;
        ssl_certificate_key $lab/nginx.key;
        root $1;
    }
}
CONFIG
    [ "$(id -u)" -ne 0 ] || sed -i "1i user $(id -un) $(id -gn);" "$lab/nginx.conf"
    lab_daemon nginx "$(PATH=$PATH:/usr/sbin command -v nginx)" -c "$lab/nginx.conf" -e stderr -p "$lab"
    lab_wait 30 lab_listens "$lab_nginx" || lab_fail "nginx did not come up: $(tail -n 3 "$lab/nginx.log")"
}
