# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of sluice for fish.

# The daemon that --admin names, if it was typed.
function __sluice_ask
    set -l admin (string match -rg -- '--admin[= ](\S+)' (commandline -c))
    if test -n "$admin"
        sluice --admin=$admin $argv 2>/dev/null
    else
        sluice $argv 2>/dev/null
    end
end

function __sluice_services
    __sluice_ask metrics | string match -rg '^sluice_connections_active\{service="([^"\\\\]*)"\}'
end

function __sluice_connections
    __sluice_ask status --json --connections | string match -arg '"id":(\d+)'
end

function __sluice_uses
    __fish_seen_subcommand_from $argv
end

function __sluice_has_no_command
    not __fish_seen_subcommand_from status top drain resume close metrics
end

complete -c sluice -f
complete -c sluice -n __sluice_has_no_command -a status -d 'Services, upstreams and connections'
complete -c sluice -n __sluice_has_no_command -a top -d 'Services and connections live'
complete -c sluice -n __sluice_has_no_command -a drain -d 'Take no more connections for a service'
complete -c sluice -n __sluice_has_no_command -a resume -d 'Take connections for a service again'
complete -c sluice -n __sluice_has_no_command -a close -d 'Close a connection'
complete -c sluice -n __sluice_has_no_command -a metrics -d 'The metrics, as Prometheus reads them'

complete -c sluice -s h -l help -d 'Show the options and exit'
complete -c sluice -n __sluice_has_no_command -s V -l version -d 'Show the version and exit'
complete -c sluice -l admin -r -F -d 'The admin socket: unix:/PATH or tcp:HOST:PORT'
complete -c sluice -n 'not __sluice_uses top metrics' -l json -d 'Print JSON'
complete -c sluice -n '__sluice_uses status' -s c -l connections -d 'Show each connection too'
complete -c sluice -n '__sluice_uses top' -l interval -x -a '500ms 1s 5s 1min' -d 'Look again after so long'
complete -c sluice -n '__sluice_uses drain resume' -a '(__sluice_services)' -d Service
complete -c sluice -n '__sluice_uses close' -a '(__sluice_connections)' -d Connection
