#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# symbols_test.sh LIBRARY SYMBOL_MAP HEADER: what the library exports, what its map
# lists and what the header declares are the same names; each carries the version
# node of the map, and in the header a comment with `Since:`.
set -eu

library=$1 map=$2 header=$3

if ! command -v nm >/dev/null 2>&1; then
    echo "nm is missing"
    [ -z "${CI:-}" ] && exit 77
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# name@@NODE for each; the node itself is an absolute symbol of its own name
nm -D --defined-only --with-symbol-versions "$library" | awk '$2 != "A" { print $3 }' | sort >"$work/exported"
awk '/^[A-Z].*\{/ { node = $1; visible = 1 }
     /global:/ { visible = 1; next }
     /local:/ { visible = 0; next }
     visible && match($0, /[A-Za-z_][A-Za-z_0-9]*;/) { print substr($0, RSTART, RLENGTH - 1) "@@" node }' \
    "$map" | sort >"$work/mapped"

# Declarations at the start of a line that name a function of ours, each with whether
# the comment before it says since when it is there.
awk '/\/\*\*/ { comment = "" ; inside = 1 }
     inside { comment = comment $0 }
     /\*\// { inside = 0; next }
     inside || /^typedef/ { next }
     /^[a-z].*sluice_[a-z_]*\(/ {
         match($0, /sluice_[a-z_]*\(/)
         print substr($0, RSTART, RLENGTH - 1), comment ~ /Since: [0-9]+\.[0-9]+/ ? "since" : "undated"
         comment = ""
     }' "$header" | sort >"$work/declared"

failed=0
# same WHAT FILE FILE
same()
{
    if ! diff -u "$2" "$3"; then
        echo "FAILED: $1 (see above)"
        failed=1
    fi
}

same 'exported symbols and the map' "$work/exported" "$work/mapped"
sed 's/@@.*//' "$work/mapped" >"$work/mapped_names"
cut -d' ' -f1 "$work/declared" >"$work/declared_names"
same 'the map and the header' "$work/mapped_names" "$work/declared_names"
if grep undated "$work/declared"; then
    echo 'FAILED: no "Since:" in the comment of these'
    failed=1
fi
count=$(wc -l <"$work/exported")
if [ "$count" -lt 30 ]; then
    echo "FAILED: only $count symbols found, the library cannot have been read"
    failed=1
fi
echo "$count symbols"
exit "$failed"
