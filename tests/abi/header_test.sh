#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# header_test.sh C_COMPILER CXX_COMPILER INCLUDE_DIR...: each public header compiles
# alone, as the first line of a program, in every language that it is for, with no
# warning and without GLib in sight.
set -eu

read -ra cc <<<"$1"
read -ra cxx <<<"$2"
shift 2
includes=("${@/#/-I}")
strict=(-Wall -Wextra -pedantic -Werror -fsyntax-only)
failed=0
checked=0

# compiles HEADER LANGUAGE STANDARD COMPILER...
compiles()
{
    local header=$1 language=$2 standard=$3
    shift 3
    checked=$((checked + 1))
    # the second line because C has no empty program
    if printf '#include <%s>\nextern int nothing;\n' "$header" | "$@" "-std=$standard" "${strict[@]}" "${includes[@]}" -x "$language" -; then
        echo "ok: $header as $standard"
    else
        echo "FAILED: $header as $standard"
        failed=$((failed + 1))
    fi
}

for header in sluice/event.h sluice/version.h; do
    for standard in c99 c11; do
        compiles "$header" c "$standard" "${cc[@]}"
    done
    for standard in c++17 c++20; do
        compiles "$header" c++ "$standard" "${cxx[@]}"
    done
done
compiles sluice/event.hpp c++ c++20 "${cxx[@]}"

# every header of the folder is in one of the lists above
for folder in "$@"; do
    for header in "$folder"/sluice/*.h "$folder"/sluice/*.hpp; do
        case ${header##*/} in
            event.h | event.hpp | version.h | '*.h' | '*.hpp') ;;
            *)
                echo "FAILED: ${header##*/} is not checked here"
                failed=$((failed + 1))
                ;;
        esac
    done
done

echo "$checked compilations, $failed failures"
[ "$failed" -eq 0 ]
