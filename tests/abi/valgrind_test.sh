#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# valgrind_test.sh PROGRAM [ARGUMENT...]: the program runs clean under valgrind: no
# invalid access, and nothing lost. No suppressions: GLib's own globals stay reachable.
set -eu

if ! command -v valgrind >/dev/null 2>&1; then
    echo 'valgrind is missing'
    [ -z "${CI:-}" ] && exit 77
    exit 1
fi
exec valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect,possible \
    --errors-for-leak-kinds=definite,indirect,possible "$@"
