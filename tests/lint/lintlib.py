# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the lints share: the list of files, the report, and the self-test.

A lint is a function `check(root, options) -> list of Problem`. `run()` calls it on
the tree given on the command line, or, with --self-test, calls the lint's own
`self_test()`, which must show on small made-up trees that each kind of fault is
found and that a good tree passes. Exit codes: 0 clean, 1 faults, 77 a needed tool
is missing (1 where CI is set in the environment).
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
SOURCE_SUFFIXES = {".c", ".cpp", ".h", ".hpp"}


class Problem:
    def __init__(self, path, line, text):
        self.path, self.line, self.text = str(path), line, text

    def __str__(self):
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.text}"


class MissingTool(Exception):
    """Raised by `need()`: the lint cannot say anything without this tool."""


def need(*tools):
    """The first of `tools` that is installed."""
    for tool in tools:
        if shutil.which(tool):
            return tool
    raise MissingTool(" or ".join(tools))


def is_build_dir(path):
    return (path / "meson-private").is_dir() or (path / "build.ninja").is_file()


def walk(root):
    """Files below `root`, without build folders and without .git."""
    for folder, dirs, names in os.walk(root):
        here = pathlib.Path(folder)
        dirs[:] = sorted(d for d in dirs if d not in {".git", "__pycache__"} and not is_build_dir(here / d))
        for name in sorted(names):
            yield (here / name).relative_to(root)


def tree_files(root):
    """The tree's own files, relative to `root`: what git tracks or would track, else all there are."""
    root = pathlib.Path(root)
    if (root / ".git").exists() and shutil.which("git"):
        # whoever owns the checkout, it is only read here
        command = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
        listing = subprocess.run(command, capture_output=True)
        if listing.returncode == 0:
            paths = {pathlib.Path(os.fsdecode(name)) for name in listing.stdout.split(b"\0") if name}
            return sorted(path for path in paths if (root / path).is_file())
    return [path for path in walk(root) if (root / path).is_file()]


def source_files(root, *folders):
    """C and C++ files below the given top folders (all of them by default)."""
    for path in tree_files(root):
        if path.suffix in SOURCE_SUFFIXES and (not folders or path.parts[0] in folders):
            yield path


def read(root, path):
    """The text as it is, whatever its line ends."""
    return (pathlib.Path(root) / path).read_bytes().decode("utf-8", errors="replace")


def plain_env():
    """The environment with messages in English, so that output can be compared."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("LC_")}
    env.update(LC_ALL="C.UTF-8", LANGUAGE="", LANG="C.UTF-8")
    return env


class Fixture:
    """A small tree for a self-test, made of a dictionary of path -> text."""

    def __init__(self, files):
        self.files = files

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="lint-")
        root = pathlib.Path(self.dir.name)
        for name, text in self.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        return root

    def __exit__(self, *exc):
        self.dir.cleanup()


def expect(check, files, *wanted, options=None):
    """`check` on a tree of `files` must report exactly one problem for each text in
    `wanted`, which is part of its line, and nothing at all if there is none."""
    with Fixture(files) as root:
        problems = [str(problem) for problem in check(root, options)]
    missing = [text for text in wanted if not any(text in problem for problem in problems)]
    if missing or len(problems) != len(wanted):
        raise AssertionError(f"wanted {list(wanted)}\n  not found: {missing}\n  reported: {problems}")


def run(check, self_test, add_options=None):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("root", nargs="?", default=".", help="top of the source tree")
    parser.add_argument("--self-test", action="store_true", help="show that faults are found")
    if add_options:
        add_options(parser)
    options = parser.parse_args()
    try:
        if options.self_test:
            self_test()
            print("self-test: every fault was found")
            return 0
        problems = check(pathlib.Path(options.root).resolve(), options)
    except MissingTool as missing:
        print(f"not installed: {missing}")
        return 1 if os.environ.get("CI") else SKIP
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problem(s)" if problems else "clean")
    return 1 if problems else 0
