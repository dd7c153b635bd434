#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The options of a program are the same in four places: `--help`, the man page, and
the completions for bash, zsh and fish. An option that takes a value takes one
everywhere. `--program` is the built program; its name is that of the files. Where
`--help` lists commands, the other places have the same ones, and the options are those
of the program and of its commands together.
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
    # a short one is completed without its value, so whether it takes one is not to be seen
    return {word.rstrip("="): None if re.fullmatch(r"-\w", word) else word.endswith("=")
            for word in words if re.fullmatch(r"--?[a-zA-Z][a-z-]*=?", word)}


def from_zsh(text):
    """The same from the specs of `_arguments`: `'(-r --readonly)'{-r,--readonly}'[Text]'`, `'--size=[Text]:...'` or
    `{-s+,--size=}'[Text]:...'`."""
    options = {}
    for line in text.splitlines():
        spec = re.match(r"""\s*(?:'\([^)]*\)')?(?:\{([^}]*)\}|'\*?(--?[a-zA-Z][a-z-]*))(=?)""", line)
        if spec and (spec[1] or spec[2]) and not line.lstrip().startswith("#"):
            for name in (spec[1] or spec[2]).split(","):
                options[name.rstrip("+=")] = bool(spec[3]) or name[-1] in "+="
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


# The commands of a program: a regular expression for the part of the file where they are, and one for each of them.
COMMANDS_IN_HELP = (r"^Commands:\n((?:  .*\n?)+)", r"^  ([a-z-]+)")
COMMANDS_IN_MAN = (r"^# COMMANDS$(.*?)(?=^# |\Z)", r"^\*([a-z-]+)\*")
COMMANDS_IN_BASH = (r"\bcommands='([^']*)'", r"[a-z-]+")
COMMANDS_IN_ZSH = (r"\bcommands=\($(.*?)^\s*\)$", r"^\s*'([a-z-]+):")
COMMANDS_IN_FISH = (r"(.*)", r"^complete (?:.* )?-a ([a-z-]+) -d ")


def commands_in(text, where):
    part = re.search(where[0], text, re.M | (0 if where == COMMANDS_IN_HELP else re.S))
    return set(re.findall(where[1], part[1], re.M)) if part else set()


def help_of(*command):
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, env=plain_env(),
                           stdin=subprocess.DEVNULL)
    return shown.returncode, shown.stdout, from_help(shown.stdout)


def check(root, options):
    name = os.path.basename(options.program)
    status, text, wanted = help_of(options.program)
    if status or not wanted:
        return [Problem(name, 0, f"--help exits with {status} and lists {len(wanted)} options")]
    commands = commands_in(text, COMMANDS_IN_HELP)
    for command in sorted(commands):
        status, _, of_command = help_of(options.program, command)
        if status or not of_command:
            return [Problem(name, 0, f"{command} --help exits with {status} and lists {len(of_command)} options")]
        wanted.update(of_command)
    # daemons are in section 8
    section = 8 if (root / f"docs/man/{name}.8.scd").is_file() else 1
    places = [
        (f"docs/man/{name}.{section}.scd", from_man, COMMANDS_IN_MAN),
        (f"completions/{name}.bash", from_bash, COMMANDS_IN_BASH),
        (f"completions/_{name}", from_zsh, COMMANDS_IN_ZSH),
        (f"completions/{name}.fish", from_fish, COMMANDS_IN_FISH),
    ]
    problems = []
    for path, parse, where in places:
        if not (root / path).is_file():
            problems.append(Problem(path, 0, "is missing"))
            continue
        if commands:
            there = commands_in(read(root, path), where)
            problems += [Problem(path, 0, f"the command {one} is missing") for one in sorted(commands - there)]
            problems += [Problem(path, 0, f"there is no command {one}") for one in sorted(there - commands)]
        found = parse(read(root, path))
        for option in sorted(set(wanted) - set(found)):
            problems.append(Problem(path, 0, f"{option} of --help is missing"))
        for option in sorted(set(found) - set(wanted)):
            problems.append(Problem(path, 0, f"{option} is not in --help"))
        for option in sorted(set(found) & set(wanted)):
            if found[option] is not None and found[option] != wanted[option]:
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


MANY_HELP = HELP + """
Commands:
  look THING          Look at it
  go                  Go away
"""
# what `many look --help` says, and `many go --help`
LOOK_HELP = "Options:\n  -h, --help          Show this\n  --far               Farther\n"
GO_HELP = "Options:\n  -h, --help          Show this\n"
MANY = f"""#!/bin/sh
case $1 in
look) cat <<'END'
{LOOK_HELP}END
;;
go) cat <<'END'
{GO_HELP}END
;;
*) cat <<'END'
{MANY_HELP}END
;;
esac
"""
MANY_GOOD = {
    "docs/man/many.1.scd": "# COMMANDS\n\n*look* _THING_\n\ttext\n\n*go*\n\ttext *nothing*\n\n"
                           + GOOD["docs/man/tool.1.scd"].replace("# NEXT", "*--far*\n\ttext\n\n# NEXT"),
    "completions/many.bash": GOOD["completions/tool.bash"].replace("--help", "--help --far")
                             + "commands='look go'\n",
    "completions/_many": "commands=(\n    'look:text'\n    'go:text'\n)\n" + GOOD["completions/_tool"]
                         + "_arguments \\\n  '--far[Farther]'\n",
    "completions/many.fish": GOOD["completions/tool.fish"] + "complete -c many -n first -a look -d 'text'\n"
                             "complete -c many -a go -d 'text'\ncomplete -c many -l far -d 'Farther'\n",
}


def self_test():
    with Fixture({"many": MANY, "half": MANY.replace(LOOK_HELP, "no options\n")}) as root:
        for name in ("many", "half"):
            (root / name).chmod(stat.S_IRWXU)
        options = SimpleNamespace(program=str(root / "many"))
        expect(check, MANY_GOOD, options=options)
        for path, look in (("docs/man/many.1.scd", "*look*"), ("completions/many.bash", "look"),
                           ("completions/_many", "'look:"), ("completions/many.fish", "look")):
            changed = MANY_GOOD[path].replace(look, look.replace("look", "stare"), 1)
            expect(check, {**MANY_GOOD, path: changed}, path + ": the command look is missing",
                   path + ": there is no command stare", options=options)
            expect(check, {**MANY_GOOD, path: MANY_GOOD[path].replace("far", "near")}, "--far of --help is missing",
                   "--near is not in --help", options=options)
        expect(check, MANY_GOOD, "look --help exits with 0 and lists 0 options",
               options=SimpleNamespace(program=str(root / "half")))
    with Fixture({"tool": "#!/bin/sh\ncat <<'END'\n" + HELP + "END\n", "broken": "#!/bin/sh\nexit 3\n"}) as root:
        for name in ("tool", "broken"):
            (root / name).chmod(stat.S_IRWXU)
        options = SimpleNamespace(program=str(root / "tool"))
        expect(check, GOOD, options=options)
        daemon = {path.replace(".1.scd", ".8.scd"): text for path, text in GOOD.items()}
        expect(check, daemon, options=options)
        expect(check, {**daemon, "docs/man/tool.8.scd": "# OPTIONS\n\n*-h*, *--help*\n"},
               *(f"docs/man/tool.8.scd: {option} of --help is missing"
                 for option in ("--progress", "--readonly", "--size", "-r")), options=options)
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
        bad("completions/_tool", "'--size=[", "'*--sizes=[", "--size of --help is missing", "--sizes is not in --help")
        bad("completions/_tool", "'--size=[", "{-s+,--size=}'[", "-s is not in --help")
        bad("completions/_tool", "{-r,--readonly}", "{-r+,--readonly=}", "-r takes no value", "--readonly takes no value")
        bad("completions/_tool", "{-r,--readonly}", "{-r,--read}", "--readonly of --help is missing",
            "--read is not in --help")
        bad("completions/tool.fish", " -l size -x", " -l sizes -x", "--size of --help is missing",
            "--sizes is not in --help")
        bad("completions/tool.fish", "-l size -x", "-l size", "--size takes a value")
        expect(check, GOOD, "--help exits with 3", options=SimpleNamespace(program=str(root / "broken")))


if __name__ == "__main__":
    sys.exit(run(check, self_test, lambda parser: parser.add_argument("--program", help="the built program")))
