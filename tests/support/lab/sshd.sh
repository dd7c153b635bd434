# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Part of lab.sh: an sshd of our own on a free loopback port, with keys of its own, which
# takes the user who runs it; and what stands at the far end of a connection.
#
#   lab_sshd_start             sets $lab_port
#   lab_cipher [NAME]          the cipher of the connections from here on; none: ssh's default
#   $lab/bin/ssh               ssh with the lab's configuration, for `command=` in a libvirt URI
#   lab_far_end [--record FILE] [--bare] COMMAND [ARGUMENT...]
#                              what runs where libvirt calls virt-ssh-helper or nc: COMMAND with
#                              libvirt's own arguments after it, or --bare without them; what
#                              it cost is appended to FILE (see cpu_of.c)
#   lab_far_end_is PROGRAM     PROGRAM itself under the name virt-ssh-helper, nothing around it

# The parts share their variables, and so do the scripts that source them.
# shellcheck disable=SC2154,SC2034

# A locked password shuts out key logins too, unless PAM decides.
lab_sshd_pam()
{
    case $(getent shadow "$(id -un)" 2>/dev/null) in
    *:!*) printf 'yes' ;;
    *) printf 'no' ;;
    esac
}

lab_sshd_config()
{
    # One line, as only the first SetEnv counts. HOME is an empty folder, and with SHLVL 1 bash does not take itself
    # for a login over ssh: nobody's start files run.
    local set_env="HOME=$lab/home SHLVL=1 SLUICE_LAB=$lab"
    set_env+=" PATH=$lab/remote:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    set_env+=" XDG_CONFIG_HOME=$XDG_CONFIG_HOME XDG_CACHE_HOME=$XDG_CACHE_HOME"
    [ "$lab_mode" = system ] || set_env+=" XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR"
    cat >"$lab/ssh/sshd_config" <<CONFIG
ListenAddress 127.0.0.1
Port $lab_port
HostKey $lab/ssh/host_key
PidFile none
AuthorizedKeysFile $lab/ssh/user_key.pub
AllowUsers $(id -un)
StrictModes no
UsePAM $(lab_sshd_pam)
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitUserRC no
PrintMotd no
PrintLastLog no
X11Forwarding no
UseDNS no
LogLevel ERROR
MaxStartups 100
Subsystem sftp internal-sftp
SetEnv $set_env
CONFIG
}

# shellcheck disable=SC2120
lab_cipher()
{
    printf '[127.0.0.1]:%s %s\n' "$lab_port" "$(cut -d ' ' -f 1,2 "$lab/ssh/host_key.pub")" >"$lab/ssh/known_hosts"
    cat >"$lab/ssh/config" <<CONFIG
Host *
    HostName 127.0.0.1
    Port $lab_port
    User $(id -un)
    IdentityFile $lab/ssh/user_key
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile $lab/ssh/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    UpdateHostKeys no
    BatchMode yes
    LogLevel ERROR
    ForwardAgent no
    ForwardX11 no
    ControlPath none
${1:+    Ciphers $1}
CONFIG
}

lab_sshd_answers()
{
    lab_dead sshd || "$lab/bin/ssh" 127.0.0.1 true
}

lab_sshd_start()
{
    local sshd try
    sshd=$(PATH=$PATH:/usr/sbin:/sbin command -v sshd) || lab_skip "sshd is not installed"
    ssh-keygen -q -t ed25519 -N '' -C sluice-lab -f "$lab/ssh/host_key"
    ssh-keygen -q -t ed25519 -N '' -C sluice-lab -f "$lab/ssh/user_key"
    # libvirt runs ssh with an environment of its own, and hands over a whole command line.
    printf '#!/bin/sh\nexec env SLUICE_LAB=%q %q -F %q "$@"\n' "$lab" "$(command -v ssh)" "$lab/ssh/config" \
        >"$lab/bin/ssh"
    chmod +x "$lab/bin/ssh"
    # Below the ports that the kernel hands out; one that is taken makes sshd end, and the next is tried.
    for try in {1..20}; do
        lab_port=$((20000 + RANDOM % 12000))
        lab_sshd_config
        lab_cipher ''
        lab_daemon sshd "$sshd" -D -e -f "$lab/ssh/sshd_config"
        lab_wait 20 lab_sshd_answers || break
        lab_dead sshd || return 0
    done
    cat "$lab/sshd.log" >&2
    lab_fail "sshd did not come up (port $lab_port, try $try)"
}

lab_far_end()
{
    local record='' words='"$@"' run=()
    if [ "$1" = --record ]; then
        record=$2
        run=("$lab_cpu_of" "$record")
        shift 2
    fi
    if [ "$1" = --bare ]; then
        words=''
        shift
    fi
    run+=("$@")
    rm -f "$lab/remote/virt-ssh-helper" "$lab/remote/nc"
    {
        printf '#!/bin/sh\n'
        # libvirt asks nc first which options it knows.
        # shellcheck disable=SC2016
        printf '[ "${0##*/} $#" != "nc 1" ] || exec %q "$@"\n' "$(lab_netcat)"
        printf 'exec'
        printf ' %q' "${run[@]}"
        printf ' %s\n' "$words"
    } >"$lab/remote/virt-ssh-helper"
    chmod +x "$lab/remote/virt-ssh-helper"
    ln -s virt-ssh-helper "$lab/remote/nc"
}

lab_far_end_is()
{
    rm -f "$lab/remote/virt-ssh-helper" "$lab/remote/nc"
    ln -s "$1" "$lab/remote/virt-ssh-helper"
}

lab_netcat()
{
    command -v nc.openbsd || command -v nc
}
