#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What every file of the tree has in common.

Sources begin with their licence; no line ends in blanks; a file ends with one
newline; sources in src/ have at most 400 lines; no path of somebody's own machine; nothing left over from a merge or marked as unfinished;
links between the documents lead somewhere.
"""

import re
import sys

from lintlib import SOURCE_SUFFIXES, Problem, expect, read, run, tree_files

LINES_MAX = 400
SPDX = "SPDX-License-Identifier: LGPL-2.1-or-later"
CODE_SUFFIXES = SOURCE_SUFFIXES | {".py", ".sh", ".bash", ".fish", ".in"}
# texts of others, or made by tools
FOREIGN = {"LICENSE"}
BINARY_SUFFIXES = {".png", ".ico", ".gz", ".xz", ".bin"}

LEFT_OVER = re.compile(r"^(?:<{7}|>{7}|={7})(?:\s|$)|\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!\w)")
OWN_PATH = re.compile(r"(?<![\w.~$})*/-])/(?:wo" + r"rk|ro" + r"ot|home/[a-z]\w*|Users/\w+)(?:/[\w.-]|(?=[\s\"'`),;:]|$))")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def is_code(path, first_line):
    return path.suffix in CODE_SUFFIXES - {".in"} or path.name == "version.h.in" or first_line.startswith("#!")


def check_lines(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            yield Problem(path, number, "blanks at the end of the line")
        if LEFT_OVER.search(line):
            yield Problem(path, number, "left over: " + line.strip())
        if OWN_PATH.search(line):
            yield Problem(path, number, "a path of somebody's machine: " + line.strip())
        if path.suffix in SOURCE_SUFFIXES and "\t" in line:
            yield Problem(path, number, "a tab; indent with spaces")


def check(root, options):
    problems = []
    for path in tree_files(root):
        if path.suffix in BINARY_SUFFIXES or path.as_posix() in FOREIGN:
            continue
        text = read(root, path)
        lines = text.splitlines()
        first = lines[0] if lines else ""
        if is_code(path, first) and SPDX not in "\n".join(lines[:2]):
            problems.append(Problem(path, 1, f"does not begin with `{SPDX}`"))
        if path.parts[0] == "src" and path.suffix in SOURCE_SUFFIXES and len(lines) > LINES_MAX:
            problems.append(Problem(path, 0, f"has {len(lines)} lines; split it at {LINES_MAX}"))
        if text and not text.endswith("\n") or text.endswith("\n\n"):
            problems.append(Problem(path, len(lines), "ends without a newline, or with empty lines"))
        if path.suffix not in {".patch", ".diff"}:
            problems += check_lines(path, text)
        if path.suffix == ".md":
            for link in LINK.findall(text):
                target = link.split("#")[0]
                if target and "://" not in target and not (root / path.parent / target).exists():
                    problems.append(Problem(path, 0, f"the link {link} leads nowhere"))
    return problems


def self_test():
    spdx = f"// {SPDX}\n"
    good = {
        "src/a.cpp": spdx + "int a; // see /var/run/x and ~/x\n",
        "scripts/run": f"#!/bin/sh\n# {SPDX}\nls /usr/share\n",
        "README.md": "[a](src/a.cpp) [b](https://example.org/x) [c](#here)\n",
        "meson.build": "",
        "LICENSE": "as it came \n\n",
    }
    expect(check, good)

    def bad(path, text, *wanted):
        expect(check, {**good, path: text}, *wanted)

    bad("src/a.cpp", "int a;\n", "does not begin with")
    bad("scripts/run", "#!/bin/sh\nls\n", "does not begin with")
    bad("scripts/x.py", "import sys\n", "does not begin with")
    bad("src/a.cpp", spdx + "int a; \n", "blanks at the end")
    bad("src/a.cpp", spdx + "int a;\r\n", "blanks at the end")
    bad("src/a.cpp", spdx + "\tint a;\n", "a tab")
    bad("src/a.cpp", spdx + "int a;\n" * LINES_MAX, f"has {LINES_MAX + 1} lines")
    bad("src/a.cpp", spdx + "int a;", "ends without a newline")
    bad("src/a.cpp", spdx + "int a;\n\n", "with empty lines")
    for text in ["TO" + "DO: later", "// FIX" + "ME", "<" * 7 + " HEAD", "=" * 7, ">" * 7 + " other"]:
        bad("README.md", text + "\n", "left over")
    for text in ["cd /wo" + "rk/main", 'open("/ro' + 'ot/x")', "see /home/" + "ann/x.", "(/ro" + "ot)"]:
        bad("README.md", text + "\n", "a path of somebody's machine")
    bad("README.md", "[a](src/b.cpp)\n", "the link src/b.cpp leads nowhere")


if __name__ == "__main__":
    sys.exit(run(check, self_test))
