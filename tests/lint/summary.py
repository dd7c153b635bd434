#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""scripts/test-summary counts rightly, on made-up logs: what passed, failed and was
skipped, and that a skip without a reason is a failure where skips are not allowed."""

import json
import os
import subprocess
import sys

from lintlib import Fixture


def log(*results, stdout=""):
    lines = [{"name": f"sluice:unit / t{number}", "result": result, "stdout": stdout}
             for number, result in enumerate(results)]
    return "".join(json.dumps(line) + "\n" for line in lines)


def main():
    summary = os.path.abspath(f"{sys.argv[1]}/scripts/test-summary")
    cases = "[  SKIPPED ] Vsock.Connects\n[  SKIPPED ] Vsock.Connects (0 ms)\n[       OK ] Vsock.Parses (0 ms)\n"
    files = {
        "good": log("OK", "OK", "EXPECTEDFAIL"),
        "bad": log("OK", "FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS"),
        "skip": log("OK", "SKIP"),
        "case": log("OK", stdout=cases),
        "empty": "",
        "allowed": "# why\nt1: there is no such device here\nVsock.Connects: no vsock in the kernel\n",
        "mute": "t1:\n",
    }
    wanted = [
        (["good"], 0, "3 passed, 0 failed"),
        (["good", "good"], 0, "6 passed, 0 failed"),
        (["bad"], 1, "1 passed, 5 failed"),
        (["good", "--also-failed", "a build"], 1, "3 passed, 1 failed"),
        (["skip"], 0, "1 passed, 0 failed, 1 skipped"),
        (["skip", "--strict"], 1, "1 passed, 1 failed"),
        (["skip", "--strict", "--allowed-skips", "allowed"], 0, "1 passed, 0 failed, 1 skipped"),
        (["case"], 0, "1 passed, 0 failed, 1 skipped"),
        (["case", "--strict"], 1, "1 passed, 1 failed"),
        (["case", "--strict", "--allowed-skips", "allowed"], 0, "1 passed, 0 failed, 1 skipped"),
        (["empty"], 1, "0 passed, 0 failed"),
        ([], 1, "0 passed, 0 failed"),
        (["skip", "--allowed-skips", "mute"], 1, ""),
    ]
    wrong = 0
    with Fixture(files) as root:
        for args, status, last in wanted:
            done = subprocess.run([sys.executable, summary, *args], cwd=root, capture_output=True, text=True)
            lines = done.stdout.splitlines() or [""]
            if (done.returncode, lines[-1]) != (status, last):
                print(f"{args}: wanted {status} and {last!r}, got {done.returncode} and {lines}\n{done.stderr}")
                wrong += 1
    print(f"{len(wanted) - wrong} of {len(wanted)} as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
