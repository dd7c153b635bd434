#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""C and C++ sources look as .clang-format says, by the release of clang-format that
the tree is written with (others lay out a few constructs differently)."""

import re
import subprocess
import sys

from lintlib import MissingTool, Problem, expect, need, plain_env, read, run, source_files

RELEASE = 14


def formatter():
    tool = need(f"clang-format-{RELEASE}", "clang-format")
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, env=plain_env()).stdout
    if f"version {RELEASE}." not in version:
        raise MissingTool(f"clang-format {RELEASE} (this is {version.strip()})")
    return tool


def check(root, options):
    tool = formatter()
    files = [str(root / path) for path in source_files(root, "src", "include", "tests")]
    if not files:
        return []
    done = subprocess.run([tool, "--dry-run", "--style=file", *files], capture_output=True, text=True, env=plain_env())
    problems = []
    for line in done.stderr.splitlines():
        place = re.match(r"(.+?):(\d+):\d+: (?:warning|error): (.*)", line)
        if place:
            path = place[1].replace(str(root) + "/", "")
            known = [problem for problem in problems if problem.path == path and problem.line == place[2]]
            if not known:
                problems.append(Problem(path, place[2], place[3]))
    if done.returncode and not problems:
        problems.append(Problem(tool, 0, done.stderr.strip()))
    return problems


def self_test():
    style = "BasedOnStyle: LLVM\nIndentWidth: 4\nAllowShortFunctionsOnASingleLine: None\n"
    good = {".clang-format": style, "src/a.cpp": "int a() {\n    return 1;\n}\n", "tests/b.c": "int b;\n"}
    expect(check, good)
    expect(check, {**good, "src/a.cpp": "int a() {\n  return 1;\n}\n"}, "src/a.cpp:1: code should be clang-formatted")
    expect(check, {**good, "include/a.h": "int  a;\n"}, "include/a.h:1: code should be clang-formatted")
    expect(check, {**good, ".clang-format": "NoSuchKey: 1\n"}, "unknown key")


if __name__ == "__main__":
    sys.exit(run(check, self_test))
