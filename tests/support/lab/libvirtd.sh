# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Part of lab.sh: a real libvirt daemon with the storage driver alone (no network, no
# firewall rule, no guest is touched), and a pool of the kind `dir` with raw volumes in it.
#
#   lab_libvirtd_start [NAME=VALUE...]   the daemon, with these environment variables
#   lab_libvirtd_stop
#   lab_pool_open MIB          sets $lab_pool, a folder with room for MIB: a tmpfs if it can be
#   lab_volumes MIB            volumes `source` (random bytes) and `target` (zeros)
#   $lab_local                 URI of the daemon without ssh
#   lab_uri PROXY [DRIVER]     URI through ssh: PROXY native, netcat or auto; DRIVER storage or test
#   lab_virsh ARGUMENT...      virsh on the daemon, without ssh

# The parts share their variables, and so do the scripts that source them.
# shellcheck disable=SC2154,SC2034

# Keeps glibc from handing the top of the heap back after each message, which costs libvirtd
# seconds of page faults a GiB and hides what the helpers cost.
lab_malloc_tunables=GLIBC_TUNABLES=glibc.malloc.trim_threshold=268435456
lab_malloc_tunables+=:glibc.malloc.top_pad=67108864:glibc.malloc.mmap_threshold=33554432

lab_local=

# The driver folder of this libvirt, reduced to what is used; empty if it is not known here.
lab_drivers()
{
    local driver
    for driver in /usr/lib/*/libvirt/connection-driver/libvirt_driver_storage.so \
        /usr/lib*/libvirt/connection-driver/libvirt_driver_storage.so; do
        [ -e "$driver" ] || continue
        mkdir -p "$lab/drivers"
        ln -sf "$driver" "$lab/drivers/"
        printf '%s' "$lab/drivers"
        return
    done
}

lab_libvirtd_start()
{
    local libvirtd drivers
    libvirtd=$(PATH=$PATH:/usr/sbin:/sbin command -v libvirtd) || lab_skip "libvirtd is not installed"
    command -v virsh >/dev/null || lab_skip "virsh is not installed"
    lab_local=storage:///$lab_mode
    drivers=$(lab_drivers)
    cat >"$lab/libvirtd.conf" <<CONFIG
auth_unix_ro = "none"
auth_unix_rw = "none"
unix_sock_rw_perms = "0700"
log_outputs = "3:stderr"
CONFIG
    lab_daemon libvirtd env "$@" ${drivers:+"LIBVIRT_DRIVER_DIR=$drivers"} HOME="$lab/home" \
        "$libvirtd" -f "$lab/libvirtd.conf" -p "$lab/libvirtd.pid"
    lab_wait 30 lab_libvirtd_answers && lab_alive libvirtd && return 0
    cat "$lab/libvirtd.log" >&2
    lab_fail "libvirtd did not come up"
}

# Asked only once the socket is there: the first question must not meet a client's own idea of how to start one.
lab_libvirtd_answers()
{
    lab_dead libvirtd || { [ -S "$lab_socket" ] && lab_virsh pool-list; }
}

lab_libvirtd_stop()
{
    lab_stop libvirtd
}

lab_virsh()
{
    virsh -q -c "$lab_local" "$@"
}

lab_uri()
{
    local proxy=$1 driver=${2:-storage} path=$lab_mode
    [ "$driver" != test ] || path=default
    # Only a helper knows the path of the far user's socket by itself.
    [ "$proxy" != netcat ] || proxy="netcat&netcat=nc&socket=$lab_socket"
    printf '%s' "$driver+ssh://127.0.0.1:$lab_port/$path?proxy=$proxy&command=$lab/bin/ssh&no_tty=1"
}

# What may be taken of the machine's memory, in MiB.
lab_mib_memory()
{
    awk '/^MemAvailable/ { print int($2 / 1024 * 0.7) }' /proc/meminfo
}

lab_has_room()
{
    [ -w "$1" ] && [ "$(df -Pk "$1" | awk 'NR == 2 { print int($4 / 1024) }')" -gt "$2" ] || return 1
    [ "$(stat -f -c %T "$1")" != tmpfs ] || [ "$(lab_mib_memory)" -gt "$2" ]
}

lab_pool_open()
{
    local folder need=$(($1 + 16))
    if [ "$lab_isolated" = yes ] && [ "$(lab_mib_memory)" -gt "$need" ]; then
        lab_pool=$lab/pool
        mkdir "$lab_pool"
        lab_mount "$lab_pool" "mode=0755,size=${need}m"
        return
    fi
    for folder in /dev/shm "${TMPDIR:-/tmp}" /var/tmp; do
        lab_has_room "$folder" "$need" || continue
        lab_pool=$(mktemp -d "$folder/sluice-pool.XXXXXX")
        return
    done
    lab_fail "no room for $need MiB in memory, ${TMPDIR:-/tmp} or /var/tmp; set SIZE to less"
}

lab_volumes()
{
    local volume
    lab_virsh pool-info lab >/dev/null 2>&1 || lab_virsh pool-create-as lab dir --target "$lab_pool" ||
        lab_fail "cannot make the pool"
    for volume in source target; do
        [ -e "$lab_pool/$volume" ] || lab_virsh vol-create-as lab "$volume" "$1MiB" --format raw ||
            lab_fail "cannot make the volume $volume"
    done
    lab_run dd if=/dev/urandom of="$lab_pool/source" bs=1M count="$1" conv=notrunc,nocreat status=none
    # Pages that are there already cost the first upload nothing.
    lab_run dd if=/dev/zero of="$lab_pool/target" bs=1M count="$1" conv=notrunc,nocreat status=none
}
