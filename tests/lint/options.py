#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The options of a program are the same in four places: `--help`, the man page, and
the completions for bash, zsh and fish. An option that takes a value takes one
everywhere. `--program` is the built program; its name is that of the files.
"""

import os
import re
import stat
import subprocess
import sys
from types import SimpleNamespace

from lintlib import Fixture, Problem, expect, plain_env, read, run


def from_help(text):
    """Option -> whether it takes a value, from lines such as `  -r, --readonly  Text` or `  --size=BYTES  Text`.

    Short options count as options of their own."""
    options = {}
    for line in text.splitlines():
        match = re.match(r"\s+(?:(-\w), )?(--[a-z][a-z-]*)(\[?=\S+)?(?=\s|$)", line) or \
            re.match(r"\s+(-\w)()(?=\s)", line)
        if match:
            groups = match.groups()
            value = bool(len(groups) > 2 and groups[2])
            for name in groups[:2]:
                if name:
                    options[name] = value
    return options


def from_man(text):
    """The same from the definition lines (`*-r*, *--readonly*`) of an scdoc page's OPTIONS."""
    section = re.search(r"^# OPTIONS$(.*?)(?=^# |\Z)", text, re.M | re.S)
    options = {}
    for line in (section[1] if section else "").splitlines():
        if not line.startswith("*-"):
            continue
        names = re.findall(r"\*(--?[a-zA-Z][a-z-]*)\*", line)
        for name in names:
            options[name] = "=" in line
    return options


def from_bash(text):
    """The same from the quoted word lists of a bash completion: an option that takes a value ends with `=`."""
    lists = [words for words in re.findall(r"'([^']*)'", text) if "--" in words]
    words = " ".join(lists).split()
    return {word.rstrip("="): word.endswith("=") for word in words if re.fullmatch(r"--?[a-zA-Z][a-z-]*=?", word)}


def from_zsh(text):
    """The same from the specs of `_arguments`: `'(-r --readonly)'{-r,--readonly}'[Text]'` or `'--size=[Text]:...'`."""
    options = {}
    for line in text.splitlines():
        spec = re.match(r"""\s*(?:'\([^)]*\)')?(?:\{([^}]*)\}|'(--?[a-zA-Z][a-z-]*))(=?)""", line)
        if spec and (spec[1] or spec[2]) and not line.lstrip().startswith("#"):
            for name in (spec[1] or spec[2]).split(","):
                options[name] = bool(spec[3])
    return options


def from_fish(text):
    """The same from `complete -c PROGRAM -s r -l readonly [-r|-x]` lines."""
    options = {}
    for line in text.splitlines():
        if not line.startswith("complete "):
            continue
        line = re.sub(r"'(?:\\.|[^'\\])*'|\"[^\"]*\"", "''", line)
        value = bool(re.search(r"\s-(?:x|r|[a-z]*[xr]a?)(?=\s|$)|--require-parameter|--exclusive", line))
        names = ["--" + name for name in re.findall(r"\s-l ([a-z][a-z-]*)", line)]
        names += ["-" + name for name in re.findall(r"\s-s (\w)", line)]
        for name in names:
            options[name] = value
    return options


def check(root, options):
    name = os.path.basename(options.program)
    shown = subprocess.run([options.program, "--help"], capture_output=True, text=True, env=plain_env(),
                           stdin=subprocess.DEVNULL)
    wanted = from_help(shown.stdout)
    if shown.returncode or not wanted:
        return [Problem(name, 0, f"--help exits with {shown.returncode} and lists {len(wanted)} options")]
    places = [
        (f"docs/man/{name}.1.scd", from_man),
        (f"completions/{name}.bash", from_bash),
        (f"completions/_{name}", from_zsh),
        (f"completions/{name}.fish", from_fish),
    ]
    problems = []
    for path, parse in places:
        if not (root / path).is_file():
            problems.append(Problem(path, 0, "is missing"))
            continue
        found = parse(read(root, path))
        for option in sorted(set(wanted) - set(found)):
            problems.append(Problem(path, 0, f"{option} of --help is missing"))
        for option in sorted(set(found) - set(wanted)):
            problems.append(Problem(path, 0, f"{option} is not in --help"))
        for option in sorted(set(found) & set(wanted)):
            if found[option] != wanted[option]:
                problems.append(Problem(path, 0, f"{option} takes {'a' if wanted[option] else 'no'} value in --help"))
    return problems


HELP = """Usage:
  tool [OPTION...] ADDRESS

Options:
  -h, --help          Show this
  -r, --readonly      Look, but do not touch --other
  --size=BYTES        How much
  --progress[=WHEN]   Show it
"""
GOOD = {
    "docs/man/tool.1.scd": "# NAME\n\n*--foreign*\n\n# OPTIONS\n\n*-h*, *--help*\n\ttext\n\n*-r*, *--readonly*\n\ttext"
                           " with *--foreign*\n\n*--size*=_BYTES_\n\ttext\n\n*--progress*[=_WHEN_]\n\ttext\n\n# NEXT\n"
                           "\n*--foreign*\n",
    "completions/tool.bash": "# --comment\n_tool()\n{\n    COMPREPLY=($(compgen -W '-h --help -r --readonly --size="
                             " --progress=' -- \"$cur\"))\n}\ncomplete -F _tool tool\n",
    "completions/_tool": "#compdef tool\n_arguments \\\n  '(-h --help)'{-h,--help}'[Show]' \\\n"
                         "  '(-r --readonly)'{-r,--readonly}'[Look]' \\\n  '--size=[How much]:bytes:' \\\n"
                         "  '--progress=[Show]::when:(always)'\n",
    "completions/tool.fish": "complete -c tool -s h -l help -d 'Show -l this'\n"
                             "complete -c tool -s r -l readonly -d 'Look'\ncomplete -c tool -l size -x -d 'How much'\n"
                             "complete -c tool -l progress -xa 'always' -d 'Show'\n",
}


def self_test():
    with Fixture({"tool": "#!/bin/sh\ncat <<'END'\n" + HELP + "END\n", "broken": "#!/bin/sh\nexit 3\n"}) as root:
        for name in ("tool", "broken"):
            (root / name).chmod(stat.S_IRWXU)
        options = SimpleNamespace(program=str(root / "tool"))
        expect(check, GOOD, options=options)
        for path in GOOD:
            expect(check, {name: text for name, text in GOOD.items() if name != path}, path + ": is missing",
                   options=options)

        def bad(path, old, new, *wanted):
            expect(check, {**GOOD, path: GOOD[path].replace(old, new)}, *wanted, options=options)

        bad("docs/man/tool.1.scd", "*--size*=_BYTES_", "*--bytes*=_SIZE_", "--size of --help is missing",
            "--bytes is not in --help")
        bad("docs/man/tool.1.scd", "*--size*=_BYTES_", "*--size*", "--size takes a value")
        bad("docs/man/tool.1.scd", "*-r*, *--readonly*", "*--readonly*", "-r of --help is missing")
        bad("completions/tool.bash", " --size=", "", "--size of --help is missing")
        bad("completions/tool.bash", "--help", "--help --extra", "--extra is not in --help")
        bad("completions/tool.bash", "--readonly", "--readonly=", "--readonly takes no value")
        bad("completions/_tool", "'--size=[", "'--size[", "--size takes a value")
        bad("completions/_tool", "{-r,--readonly}", "{-r,--read}", "--readonly of --help is missing",
            "--read is not in --help")
        bad("completions/tool.fish", " -l size -x", " -l sizes -x", "--size of --help is missing",
            "--sizes is not in --help")
        bad("completions/tool.fish", "-l size -x", "-l size", "--size takes a value")
        expect(check, GOOD, "--help exits with 3", options=SimpleNamespace(program=str(root / "broken")))


if __name__ == "__main__":
    sys.exit(run(check, self_test, lambda parser: parser.add_argument("--program", help="the built program")))
