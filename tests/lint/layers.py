#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A file includes from its own layer and from those it stands on, and from no other.

    base <- glib <- event <- {net, async} <- relay <- {tunnel, disk} <- {helper, proxyd, cli}

Layers in braces are peers and do not know each other, but for net, which may use
async. The public headers (include/sluice) belong to event. docs/dev/ARCHITECTURE.md
says what each layer is for.
"""

import re
import sys

from lintlib import Problem, expect, read, run, source_files

# layer -> folder; the order is that of the diagram
FOLDERS = {
    "base": "src/util/base",
    "glib": "src/util/glib",
    "event": "src/util/event",
    "async": "src/util/async",
    "net": "src/util/net",
    "relay": "src/remote/relay",
    "tunnel": "src/remote/tunnel",
    "disk": "src/remote/disk",
    "helper": "src/remote/helper",
    "proxyd": "src/remote/proxyd",
    "cli": "src/remote/cli",
}
DIRECT = {
    "base": [],
    "glib": ["base"],
    "event": ["glib"],
    "async": ["event"],
    "net": ["async"],
    "relay": ["net"],
    "tunnel": ["relay"],
    "disk": ["relay"],
    "helper": ["tunnel", "disk"],
    "proxyd": ["tunnel", "disk"],
    "cli": ["tunnel", "disk"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def below(layer):
    """Every layer that `layer` may include from, itself included."""
    allowed = {layer}
    for lower in DIRECT[layer]:
        allowed |= below(lower)
    return allowed


def layer_of(path):
    """The layer a path of the tree is in, or None."""
    text = path if isinstance(path, str) else path.as_posix()
    if text.startswith("include/sluice/"):
        return "event"
    for layer, folder in FOLDERS.items():
        if text.startswith(folder + "/"):
            return layer
    return None


def target_of(path, quote, name, present):
    """The file of the tree that an include line means, or None for one from outside."""
    if name.startswith("sluice/"):
        return "include/" + name
    places = ["src/" + name]
    if quote == '"':
        places.insert(0, (path.parent / name).as_posix())
    for place in places:
        parts = []
        for part in place.split("/"):
            if part == "..":
                parts = parts[:-1]
            elif part != ".":
                parts.append(part)
        if "/".join(parts) in present:
            return "/".join(parts)
    # a file that is not there yet still shows its layer by its folder
    return "src/" + name if layer_of("src/" + name) else None


def check(root, options):
    problems = []
    files = list(source_files(root, "src", "include"))
    present = {path.as_posix() for path in files}
    for path in files:
        layer = layer_of(path)
        if layer is None:
            problems.append(Problem(path, 0, "is in no layer; tests/lint/layers.py knows " + ", ".join(FOLDERS)))
            continue
        allowed = below(layer)
        for number, line in enumerate(read(root, path).splitlines(), 1):
            include = INCLUDE.match(line)
            if not include:
                continue
            target = target_of(path, include[1], include[2], present)
            if target is None:
                if include[1] == '"' and include[2] != "config.h":
                    problems.append(Problem(path, number, f"{include[2]} is not in the tree; use <> for others' headers"))
                continue
            other = layer_of(target)
            if other not in allowed:
                problems.append(Problem(path, number, f"{layer} may not include from {other} ({include[2]})"))
    return problems


def self_test():
    good = {
        "include/sluice/event.h": "#include <sluice/version.h>\n",
        "src/util/base/ring.hpp": "#include <cstddef>\n",
        "src/util/event/loop.cpp": '#include "config.h"\n#include "util/base/ring.hpp"\n#include "loop.hpp"\n'
                                   "#include <sluice/event.h>\n",
        "src/util/event/loop.hpp": '#include "../base/ring.hpp"\n',
        "src/util/net/connect.cpp": '#include "util/async/task.hpp"\n',
        "src/util/async/task.hpp": "#include <sluice/event.hpp>\n",
        "src/remote/helper/main.cpp": '#include "remote/relay/pump.hpp"\n#include "util/base/ring.hpp"\n',
        "src/remote/relay/pump.hpp": "",
    }
    expect(check, good)

    def bad(path, line, text):
        expect(check, {**good, path: line + "\n"}, text)

    bad("src/util/base/a.cpp", '#include "util/glib/source.hpp"', "base may not include from glib")
    bad("src/util/base/a.cpp", "#include <sluice/event.h>", "base may not include from event")
    bad("src/util/event/a.cpp", '# include "util/net/connect.hpp"', "event may not include from net")
    bad("src/util/async/a.hpp", '#include "util/net/connect.hpp"', "async may not include from net")
    bad("src/util/async/a.hpp", '#include "../net/connect.cpp"', "async may not include from net")
    bad("src/remote/relay/a.cpp", '#include "remote/helper/options.hpp"', "relay may not include from helper")
    bad("src/remote/tunnel/a.cpp", '#include "remote/disk/nbd.hpp"', "tunnel may not include from disk")
    bad("src/remote/helper/a.cpp", '#include "remote/cli/main.hpp"', "helper may not include from cli")
    bad("src/util/event/a.cpp", '#include "no_such_file.hpp"', "not in the tree")
    bad("src/other/a.cpp", "", "is in no layer")


if __name__ == "__main__":
    sys.exit(run(check, self_test))
