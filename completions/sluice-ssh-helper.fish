# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of sluice-ssh-helper for fish.

complete -c sluice-ssh-helper -a 'unix:' -d 'A unix socket'
complete -c sluice-ssh-helper -a 'unix:@' -d 'An abstract unix socket'
complete -c sluice-ssh-helper -a 'tcp:' -d 'HOST:PORT'
complete -c sluice-ssh-helper -a 'vsock:' -d 'CID:PORT'
complete -c sluice-ssh-helper -a 'qemu:///system' -d 'The system daemon for QEMU'
complete -c sluice-ssh-helper -a 'qemu:///session' -d 'The own daemon for QEMU'
complete -c sluice-ssh-helper -a 'storage:///system' -d 'The storage daemon'
complete -c sluice-ssh-helper -a 'test:///default' -d 'The test driver of libvirt'

complete -c sluice-ssh-helper -s h -l help -d 'Show the options and exit'
complete -c sluice-ssh-helper -s V -l version -d 'Show the version and exit'
complete -c sluice-ssh-helper -s r -l readonly -d 'Use the read-only socket of a libvirt URI'
complete -c sluice-ssh-helper -l connect-timeout -x -a '0 1s 10s 1min' -d 'How long to try to connect'
complete -c sluice-ssh-helper -l idle-timeout -x -a '0 1s 10s 1min' -d 'End after so long without a byte'
complete -c sluice-ssh-helper -l fin-timeout -x -a '0 1s 10s 1min' -d 'End so long after one side has closed'
complete -c sluice-ssh-helper -l buffer-size -x -a '64K 256K 1M' -d 'Most bytes held in each direction'
complete -c sluice-ssh-helper -l log-level -x -a 'error warning info debug' -d 'What to report on stderr'
complete -c sluice-ssh-helper -l progress -x -a 'auto always never' -d 'A live line on stderr'
complete -c sluice-ssh-helper -l stats -d 'One line of figures on stderr at the end'
