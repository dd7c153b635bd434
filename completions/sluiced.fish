# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of sluiced for fish.

complete -c sluiced -a 'localhost:' -d 'A port of this machine'
complete -c sluiced -a 'unix:' -d 'A unix socket'
complete -c sluiced -a 'unix:@' -d 'An abstract unix socket'
complete -c sluiced -a 'tcp:' -d 'HOST:PORT'
complete -c sluiced -a 'vsock:' -d 'CID:PORT'

complete -c sluiced -s h -l help -d 'Show the options and exit'
complete -c sluiced -s V -l version -d 'Show the version and exit'
complete -c sluiced -s c -l connections-max -x -a '256 1000 5000' -d 'Most connections at a time'
complete -c sluiced -l exit-idle-time -x -a 'infinity 30s 5min 1h' -d 'Exit after so long without a connection'
complete -c sluiced -l proxy-protocol -x -a 'v1 v2' -d 'Tell the upstream who the client is'
complete -c sluiced -l listen -x -a 'systemd: unix: tcp: vsock:' -d 'Listen there instead of on passed sockets'
complete -c sluiced -s f -l config -r -F -d 'Serve what a file says'
complete -c sluiced -l check -d 'Say what is wrong with a file, and exit'
complete -c sluiced -l workers -x -a '1 2 4 8' -d 'Threads'
complete -c sluiced -l drain-timeout -x -a '0 30s 5min infinity' -d 'How long connections may go on at the end'
complete -c sluiced -l admin -r -d 'Answer sluice on this unix socket'
complete -c sluiced -l log-level -x -a 'error warning info debug' -d 'What to report'
