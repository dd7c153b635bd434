#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# install_test.sh: what `meson install --destdir` leaves behind is all there, and is
# enough for a stranger: consumer.c (C99) and consumer.cpp (C++20) are compiled with
# nothing but what pkg-config says, and run. From the environment, set by meson.build:
#
#   MESON BUILD_DIR SOURCE_DIR    the tree, and how to install it
#   CC CXX                        the compilers to use
#   PREFIX LIBDIR INCLUDEDIR BINDIR MANDIR LOCALEDIR    where things go (the first absolute)
#   VERSION SOVERSION             what to expect
#   MAN_PAGES                     1 if man pages are built
set -eu

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for tool in nm pkg-config readelf; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "$tool is missing"
        [ -z "${CI:-}" ] && exit 77
        exit 1
    fi
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
failed=0

fail()
{
    echo "FAILED: $*"
    failed=$((failed + 1))
}

# expect WHAT WANTED GOT
expect()
{
    if [ "$2" = "$3" ]; then
        echo "ok: $1 is $2"
    else
        fail "$1 is '$3', not '$2'"
    fi
}

# installed PATH, under the prefix
installed()
{
    [ -e "$root$PREFIX/$1" ] || fail "$PREFIX/$1 was not installed"
}

dynamic()
{
    readelf -d "$2" | sed -n "s/.*($1).*\[\(.*\)\]/\1/p"
}

read -ra install <<<"$MESON install"
read -ra cc <<<"$CC"
read -ra cxx <<<"$CXX"
if ! "${install[@]}" -C "$BUILD_DIR" --no-rebuild --destdir "$root" >"$work/install.log" 2>&1; then
    cat "$work/install.log"
    exit 1
fi

for file in "$INCLUDEDIR/sluice/event.h" "$INCLUDEDIR/sluice/event.hpp" "$INCLUDEDIR/sluice/version.h" \
    "$LIBDIR/libsluice.so" "$LIBDIR/libsluice.so.$SOVERSION" "$LIBDIR/libsluice.so.$VERSION" \
    "$LIBDIR/pkgconfig/sluice.pc" "$BINDIR/sluice-ssh-helper"; do
    installed "$file"
done
[ -x "$root$PREFIX/$BINDIR/sluice-ssh-helper" ] || fail 'the helper cannot be executed'

languages=0
while read -r language; do
    [ -n "$language" ] || continue
    installed "$LOCALEDIR/$language/LC_MESSAGES/sluice.mo"
    languages=$((languages + 1))
done < <(sed 's/#.*//' "$SOURCE_DIR/po/LINGUAS" | tr -s ' ' '\n')
[ "$languages" -ge 2 ] || fail "only $languages languages"

library=$root$PREFIX/$LIBDIR/libsluice.so.$VERSION
if [ "$MAN_PAGES" = 1 ]; then
    installed "$MANDIR/man1/sluice-ssh-helper.1"
    while read -r symbol; do
        installed "$MANDIR/man3/$symbol.3"
    done < <(nm -D --defined-only "$library" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }')
fi
expect 'the soname' "libsluice.so.$SOVERSION" "$(dynamic SONAME "$library")"
for file in "$library" "$root$PREFIX/$BINDIR/sluice-ssh-helper"; do
    expect "the run path of ${file##*/}" '' "$(dynamic RUNPATH "$file")$(dynamic RPATH "$file")"
done

# Only the installed sluice.pc, and the system's own for what it requires; every path
# that pkg-config prints is one under the root.
system_path=$(pkg-config --variable pc_path pkg-config)
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root$PREFIX/$LIBDIR/pkgconfig:$system_path
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
unset PKG_CONFIG_PATH
expect 'the version in sluice.pc' "$VERSION" "$(pkg-config --modversion sluice)"
read -ra flags < <(pkg-config --cflags --libs sluice)
echo "pkg-config --cflags --libs sluice: ${flags[*]//$root/ROOT}"

# consumer NAME COMPILE...: build it and let it talk to itself
consumer()
{
    local name=$1
    shift
    if ! "$@" -Wall -Wextra -pedantic -Werror -o "$work/$name" "$here/$name" -x none "${flags[@]}"; then
        fail "$name does not compile"
        return
    fi
    expect "the library that $name needs" "libsluice.so.$SOVERSION" "$(dynamic NEEDED "$work/$name" | grep sluice)"
    expect "the version that $name runs on" "$VERSION" \
        "$(LD_LIBRARY_PATH=$root$PREFIX/$LIBDIR timeout 60 "$work/$name" || echo "exit status $?")"
}

consumer consumer.c "${cc[@]}" -std=c99
consumer consumer.cpp "${cxx[@]}" -std=c++20

echo "$failed failures"
[ "$failed" -eq 0 ]
