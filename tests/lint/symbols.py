#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Only src/util/event exports symbols, and each that it exports stands in a page of
docs/man, by its name in the synopsis and as a name that `man` finds.

That the library, its map and its header agree is the matter of tests/abi.
"""

import re
import sys

from lintlib import SOURCE_SUFFIXES, Problem, expect, read, run, tree_files

HOME = "src/util/event/"
MAP = HOME + "libsluice.map"
PAGES = "docs/man"
PAGE_NAMES = "docs/meson.build"
# ways for a source or a build file to make a symbol visible
EXPORTS = re.compile(r'visibility\s*\(\s*"default"\s*\)|dllexport|G_MODULE_EXPORT|--version-script|--export-dynamic'
                     r"|-rdynamic|export_dynamic\s*:\s*true|\b(?:shared_library|both_libraries|shared_module)\s*\(")


def check_exports(root):
    for path in tree_files(root):
        if path.as_posix().startswith(HOME) or path.parts[0] == "tests":
            continue
        if path.suffix in {".map", ".sym"}:
            yield Problem(path, 0, "a symbol map outside " + HOME)
        elif path.suffix in SOURCE_SUFFIXES or path.name == "meson.build":
            for number, line in enumerate(read(root, path).splitlines(), 1):
                if EXPORTS.search(line):
                    yield Problem(path, number, "exports symbols, which only " + HOME + " may")


def check(root, options):
    problems = list(check_exports(root))
    exported = set(re.findall(r"^\s*(?:global:\s*)?(sluice_\w+);", read(root, MAP), re.M))
    pages = [path for path in tree_files(root) if path.as_posix().startswith(PAGES + "/") and path.suffix == ".scd"]
    described = set()
    for path in pages:
        described |= set(re.findall(r"\*(sluice_\w+)\*\(\)", read(root, path)))
        for name in sorted(set(re.findall(r"\b(sluice_\w+)(?:\*\(\)|\()", read(root, path))) - exported):
            if name + "." not in " ".join(page.name for page in pages):
                problems.append(Problem(path, 0, f"{name} is in no line of {MAP}"))
    names = read(root, PAGE_NAMES)
    for name in sorted(exported - described):
        problems.append(Problem(PAGES, 0, f"{name} is described in no page"))
    for name in sorted(exported):
        if f"'{name}'" not in names:
            problems.append(Problem(PAGE_NAMES, 0, f"{name} is no name that a page answers to"))
    return problems


def self_test():
    good = {
        MAP: "SLUICE_0 {\n  global:\n    sluice_a;\n    sluice_b_new;\n  local:\n    *;\n};\n",
        PAGE_NAMES: "man_pages = {'sluice_b.3': ['sluice_a', 'sluice_b_new']}\n",
        "docs/man/sluice_b.3.scd": "sluice_b(3)\n*sluice_a*() and *sluice_b_new*(), see *sluice_b*(3)\n",
        "src/remote/helper/main.cpp": "int main()\n{\n}\n",
        "tests/abi/plugin.c": '__attribute__((visibility("default"))) int x;\n',
    }
    expect(check, good)

    def bad(path, text, *wanted):
        expect(check, {**good, path: text}, *wanted)

    bad("src/util/net/a.cpp", '__attribute__((visibility("default"))) int sluice_x;\n', "exports symbols")
    bad("src/util/net/meson.build", "shared_library('x', 'x.c')\n", "exports symbols")
    bad("src/remote/relay/x.map", "{ global: *; };\n", "a symbol map outside")
    bad("docs/man/sluice_b.3.scd", "sluice_b(3)\n*sluice_a*() alone\n", "sluice_b_new is described in no page")
    bad("docs/man/sluice_b.3.scd", good["docs/man/sluice_b.3.scd"] + "*sluice_old*()\n", "sluice_old is in no line")
    bad(PAGE_NAMES, "'sluice_a'\n", "sluice_b_new is no name that a page answers to")


if __name__ == "__main__":
    sys.exit(run(check, self_test))
