#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scripts parse, and shellcheck has nothing to say about them.

Each file is told by its suffix or its first line: sh and bash scripts go through
`-n` and shellcheck, zsh and fish files through `-n` where that shell is installed,
Python files are compiled.
"""

import re
import shutil
import subprocess
import sys

from lintlib import Problem, expect, need, plain_env, read, run, tree_files

SUFFIXES = {".sh": "sh", ".bash": "bash", ".fish": "fish", ".py": "python"}


def language(path, text):
    first = text.split("\n", 1)[0]
    if path.suffix in SUFFIXES and not (path.suffix == ".sh" and "bash" in first):
        return SUFFIXES[path.suffix]
    if path.suffix == ".in":
        return None
    if first.startswith("#compdef"):
        return "zsh"
    found = re.match(r"#!.*?\b(sh|bash|zsh|fish|python)3?\b", first) or re.match(r"# shellcheck shell=(\w+)", first)
    if found:
        return "sh" if found[1] == "dash" else found[1]
    return "bash" if path.suffix == ".sh" else None


def complaint(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=plain_env(),
                          stdin=subprocess.DEVNULL)
    return (done.stdout + done.stderr).strip() if done.returncode else ""


def shellcheck_says(tool, kind, path, text):
    if kind not in {"sh", "bash"}:
        return ""
    # SC2317 takes each function that is called through a variable for dead code
    ignored = "SC2317"
    if not text.startswith("#!"):
        # a part to be sourced: what its variables and functions mean is seen in the whole alone
        ignored += ",SC2034,SC2119,SC2120,SC2154"
    elif re.search(r"^\s*(?:\.|source)\s", text, re.M):
        ignored += ",SC2034,SC2154"  # variables may be for, or from, what it sources
    # -x: what a script sources is read along, found beside it
    said = complaint(tool, "-x", "-P", "SCRIPTDIR", "-e", ignored, "-s", kind, "-f", "gcc", path)
    # of the mere notes, only words that are left to be split
    return "\n".join(line for line in said.splitlines() if ": note: " not in line or "SC2086" in line)


def check(root, options):
    shellcheck = need("shellcheck")
    problems = []
    missing = set()
    for path in tree_files(root):
        text = read(root, path)
        kind = language(path, text)
        if kind == "python":
            try:
                compile(text, str(path), "exec")
            except SyntaxError as error:
                problems.append(Problem(path, error.lineno, error.msg))
        elif kind and not shutil.which(kind):
            missing.add(kind)
        elif kind:
            said = complaint(kind, "-n", root / path) or shellcheck_says(shellcheck, kind, root / path, text)
            problems += [Problem(path, 0, line.replace(str(root) + "/", "")) for line in said.splitlines()]
    if missing:
        print("not looked at, for want of the shell: " + ", ".join(sorted(missing)))
    return problems


def self_test():
    need("shellcheck")
    good = {
        "scripts/a": "#!/usr/bin/env bash\n. \"$(dirname \"${BASH_SOURCE[0]}\")/lib.sh\"\nsay \"$top\"\n",
        "scripts/lib.sh": "# shellcheck shell=bash\ntop=$PWD\nsay() { [[ $1 ]] && echo \"$1$top\"; }\n",
        "scripts/b.py": "print(1)\n",
        "README": "#heading (\n",
    }
    expect(check, good)

    def bad(path, text, *wanted):
        expect(check, {**good, path: text}, *wanted)

    bad("scripts/a", "#!/bin/sh\necho $1\n", "SC2086")
    bad("scripts/a", "#!/bin/sh\nunused=1\n", "SC2034")
    bad("scripts/a", "#!/bin/sh\n[[ $1 ]]\n", "SC3010")
    bad("scripts/a", "#!/bin/bash\necho $(ls *.x\n", "unexpected EOF")
    bad("scripts/b.py", "print(\n", "never closed")


if __name__ == "__main__":
    sys.exit(run(check, self_test))
