#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs in README.md and in the man pages compile, and those that read stdin run.

A program is a code block with a main() in it. It is built and linked with the library
of the build folder, run with a line on stdin, and must exit with 0.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
from types import SimpleNamespace

from lintlib import Problem, expect, plain_env, read, run, tree_files

FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.M | re.S)


def programs(text, is_scdoc):
    for block in FENCE.findall(text):
        if re.search(r"^int main\(", block, re.M):
            yield block.replace("\\\\", "\\") if is_scdoc else block


def problems_of(code, name, options, folder):
    is_cxx = "<sluice/event.hpp>" in code or "#include <iostream>" in code
    source = folder / (f"{name}.cpp" if is_cxx else f"{name}.c")
    source.write_text(code, encoding="utf-8")
    compiler = options.cxx.split() + ["-std=c++20"] if is_cxx else options.cc.split() + ["-std=c99"]
    program = folder / name
    flags = ["-Wall", "-Wextra", "-Werror", *(f"-I{place}" for place in options.include), str(source), "-o", str(program)]
    if options.library:
        flags += [options.library, f"-Wl,-rpath,{os.path.dirname(options.library)}"]
    built = subprocess.run(compiler + flags, capture_output=True, text=True, env=plain_env())
    if built.returncode:
        return "does not compile: " + built.stderr.strip()
    ran = subprocess.run([str(program)], input="a line\n", capture_output=True, text=True, timeout=60)
    return "" if ran.returncode == 0 else f"exits with {ran.returncode}: {ran.stderr.strip()}"


def check(root, options):
    problems, count = [], 0
    with tempfile.TemporaryDirectory(prefix="lint-") as folder:
        for path in tree_files(root):
            if path.suffix not in {".md", ".scd"}:
                continue
            for code in programs(read(root, path), path.suffix == ".scd"):
                count += 1
                said = problems_of(code, f"example{count}", options, pathlib.Path(folder))
                if said:
                    problems.append(Problem(path, 0, f"example {count} {said}"))
    if not count:
        problems.append(Problem("README.md", 0, "holds no program"))
    return problems


def add_options(parser):
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--library", help="the built libsluice")


def self_test():
    options = SimpleNamespace(cc="cc", cxx="c++", include=[], library=None)
    good = {
        "README.md": "```c\n#include <stdio.h>\n\nint main(void)\n{\n    return getchar() != 'a';\n}\n```\n```sh\nls\n```\n",
        "docs/man/a.3.scd": '```\n#include <iostream>\nint main()\n{\n    std::cout << "a\\\\n";\n}\n```\n',
    }
    expect(check, good, options=options)
    expect(check, {**good, "README.md": good["README.md"].replace("'a'", "'a")}, "README.md: example 1 does not compile",
           options=options)
    expect(check, {**good, "README.md": good["README.md"].replace("'a'", "'b'")}, "README.md: example 1 exits with 1",
           options=options)
    expect(check, {"README.md": "none\n"}, "holds no program", options=options)


if __name__ == "__main__":
    sys.exit(run(check, self_test, add_options))
