#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# proxy_peer.sh NAME LISTEN UPSTREAM FOLDER: becomes a stream proxy between two addresses.
#
# Addresses are a path, or tcp:127.0.0.1:PORT. The process is the proxy itself in the
# foreground, so that its pid is known and a signal ends it. What it needs is written to
# FOLDER. Names:
#
#   sluiced              under systemd-socket-activate; sluiced-listen makes its own socket
#   socket-proxyd        systemd-socket-proxyd under systemd-socket-activate
#   haproxy-splice       haproxy in tcp mode, always splicing, through pipes of 1 MiB;
#                        haproxy-splice-64k with pipes as they come, haproxy-splice-auto
#                        when it thinks best
#   haproxy              the same without splice
#   nginx                its stream module
#   socat                a process for each connection
#
# Environment: THREADS (1; of sluiced, haproxy and nginx), CONNECTIONS_MAX (6000),
# SLUICE_SLUICED. Exit status 77 if the proxy is not installed.

set -euo pipefail

name=${1:?usage: proxy_peer.sh NAME LISTEN UPSTREAM FOLDER}
listen=${2:?no address to listen on}
upstream=${3:?no address of an upstream}
folder=${4:?no folder}
threads=${THREADS:-1}
connections=${CONNECTIONS_MAX:-6000}
socket_proxyd=/usr/lib/systemd/systemd-socket-proxyd
nginx_stream=/usr/lib/nginx/modules/ngx_stream_module.so

need()
{
    command -v "$1" >/dev/null 2>&1 || [ -e "$1" ] || {
        echo "${0##*/}: $1 is not installed" >&2
        exit 77
    }
}

# The address in another notation: as_address ADDRESS PREFIX_OF_A_PATH PREFIX_OF_TCP
as_address()
{
    case $1 in
    tcp:*) printf '%s%s' "$3" "${1#tcp:}" ;;
    *) printf '%s%s' "$2" "$1" ;;
    esac
}

haproxy_config()
{
    cat <<CONFIG
global
    maxconn $connections
    nbthread $threads
$1
defaults
    mode tcp
    timeout connect 10s
    timeout client 1h
    timeout server 1h
$2
listen bench
    bind $(as_address "$listen" unix@ "") backlog 4096
    server upstream $(as_address "$upstream" unix@ "")
CONFIG
}

nginx_config()
{
    local processes='master_process off;'
    [ "$threads" -eq 1 ] || processes="worker_processes $threads;"
    cat <<CONFIG
load_module $nginx_stream;
daemon off;
$processes
pid $folder/nginx.pid;
error_log stderr error;
worker_rlimit_nofile 20000;
events { worker_connections 16000; }
stream {
    access_log off;
    server {
        listen $(as_address "$listen" unix: "") backlog=4096;
        proxy_pass $(as_address "$upstream" unix: "");
        proxy_timeout 1h;
        proxy_half_close on;
    }
}
CONFIG
}

# as systemd starts its services (IgnoreSIGPIPE=)
trap '' PIPE

case $name in
sluiced | sluiced-listen)
    program=${SLUICE_SLUICED:-${SLUICE_BUILD:?SLUICE_BUILD or SLUICE_SLUICED must say which sluiced}/src/remote/proxyd/sluiced}
    need "$program"
    what=(--connections-max="$connections" --workers="$threads")
    [ "$name" = sluiced ] || exec "$program" "${what[@]}" --listen="$listen" "$upstream"
    need systemd-socket-activate
    exec systemd-socket-activate -l "${listen#tcp:}" -- "$program" "${what[@]}" "$upstream"
    ;;
socket-proxyd)
    need systemd-socket-activate
    need "$socket_proxyd"
    exec systemd-socket-activate -l "${listen#tcp:}" -- \
        "$socket_proxyd" --connections-max="$connections" "${upstream#tcp:}"
    ;;
haproxy | haproxy-splice | haproxy-splice-64k | haproxy-splice-auto)
    need haproxy
    # "splice-auto" waits for a pattern of traffic that it seldom sees; these always splice
    always='    option splice-request
    option splice-response'
    case $name in
    haproxy) haproxy_config "    nosplice" "" ;;
    haproxy-splice) haproxy_config "    tune.pipesize 1048576" "$always" ;;
    haproxy-splice-64k) haproxy_config "" "$always" ;;
    haproxy-splice-auto) haproxy_config "    tune.pipesize 1048576" "    option splice-auto" ;;
    esac >"$folder/haproxy.cfg"
    exec haproxy -db -f "$folder/haproxy.cfg"
    ;;
nginx)
    need nginx
    need "$nginx_stream"
    nginx_config >"$folder/nginx.conf"
    exec nginx -p "$folder" -c "$folder/nginx.conf"
    ;;
socat)
    need socat
    case $listen in
    tcp:*) listen="TCP-LISTEN:${listen##*:},bind=127.0.0.1,reuseaddr,fork,backlog=4096" ;;
    *) listen="UNIX-LISTEN:$listen,fork,backlog=4096" ;;
    esac
    exec socat -b262144 "$listen" "$(as_address "$upstream" UNIX-CONNECT: TCP:)"
    ;;
*)
    echo "${0##*/}: there is no peer called $name" >&2
    exit 64
    ;;
esac
