#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Results of the last "meson test" of a build directory.

results.py --sum BUILD: print three numbers: passed, failed, skipped.
results.py --failed BUILD: print for each failed test its name, the last 40 lines of its
output, and the command that repeats it; each report ends with a zero byte."""

import glob
import json
import os
import shlex
import sys

LINES = 40
PASSED = ("OK", "EXPECTEDFAIL")
SKIPPED = ("SKIP", "IGNORED")


def results(build):
    """A test setup such as "long" has a log file of its own: the newest one counts."""
    newest = max(glob.glob(f"{build}/meson-logs/testlog*.json"), key=os.path.getmtime)
    with open(newest, encoding="utf-8") as log:
        return [json.loads(line) for line in log]


def has_failed(test):
    return test["result"] not in PASSED + SKIPPED


def print_sum(tests):
    bad = sum(map(has_failed, tests))
    good = sum(test["result"] in PASSED for test in tests)
    print(good, bad, len(tests) - good - bad)


def repeat(build, test):
    """Return the command that runs this test alone.  --suite is needed for tests that
    "meson test" omits by default."""
    suites, _, name = test["name"].partition(" / ")
    suite = suites.partition(":")[2].split("+")[0]
    if not name:
        suite, name = "", test["name"]
    words = ["meson", "test", "-C", build, "--print-errorlogs"]
    return shlex.join(words + (["--suite", suite] if suite else []) + [name])


def report(build, test):
    said = test.get("stdout", "") + test.get("stderr", "")
    lines = [f"  {line}" for line in said.splitlines()[-LINES:]]
    return "\n".join([
        f"FAILED: {test['name']} in {build}: {test['result']} after "
        f"{test['duration']:.0f} s, status {test['returncode']}",
        *lines, f"  repeat: {repeat(build, test)}"])


def main(what, build):
    tests = results(build)
    if what == "--sum":
        print_sum(tests)
    elif what == "--failed":
        for test in filter(has_failed, tests):
            sys.stdout.write(report(build, test) + "\0")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
