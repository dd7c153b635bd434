#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every option of meson_options.txt is explained in docs/dev/HACKING.md or README.md,
and each that is explained there (as `-Dname=`) exists. Meson's own are let through.
"""

import re
import sys

from lintlib import Problem, expect, read, run

OPTIONS = "meson_options.txt"
DOCS = ["docs/dev/HACKING.md", "README.md"]
# what Meson itself brings and our texts use
BUILTIN = re.compile(r"b_\w+|[cC](?:pp)?_(?:args|std|link_args)|buildtype|prefix|werror|warning_level|libdir|\w+dir")


def check(root, options):
    defined = re.findall(r"^option\(\s*'(\w+)'", read(root, OPTIONS), re.M)
    texts = {path: read(root, path) for path in DOCS if (root / path).is_file()}
    problems = []
    for name in defined:
        if not any(re.search(rf"`(?:-D)?{name}\b", text) for text in texts.values()):
            problems.append(Problem(OPTIONS, 0, f"{name} is explained in none of {', '.join(DOCS)}"))
    for path, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            for name in re.findall(r"-D([a-z]\w*)=", line):
                if name not in defined and not BUILTIN.fullmatch(name):
                    problems.append(Problem(path, number, f"-D{name} is no option of {OPTIONS}"))
    return problems


def self_test():
    good = {
        OPTIONS: "option('docs', type: 'feature')\noption(\n  'tests', type: 'feature')\n",
        "docs/dev/HACKING.md": "| `docs` | pages |\nmeson setup build -Db_sanitize=address -Dtests=enabled\n",
        "README.md": "`-Dtests=disabled` leaves the tests out\n",
    }
    expect(check, good)
    expect(check, {**good, "README.md": "-Dtests\n"}, "tests is explained in none")
    expect(check, {**good, "docs/dev/HACKING.md": "docs\n"}, "docs is explained in none")
    expect(check, {**good, "README.md": "`tests`\n-Dfuzz=on\n"}, "README.md:2: -Dfuzz is no option")


if __name__ == "__main__":
    sys.exit(run(check, self_test))
