#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""failed.py BUILD: the tests that did not pass in the last "meson test" of
BUILD, each with the end of what it printed.

failed.py --again BUILD: their names, a line each, if they are worth another
run: a few, and no sanitizer has found anything.  Else it prints nothing."""

import json
import sys

LINES = 40
GOOD = ("OK", "SKIP", "EXPECTEDFAIL", "IGNORED")
FEW = 3
REPORTS = ("Sanitizer", "runtime error:")


def said(test):
    return test.get("stdout", "") + test.get("stderr", "")


def failed(build):
    with open(f"{build}/meson-logs/testlog.json", encoding="utf-8") as log:
        tests = [json.loads(line) for line in log]
    return [test for test in tests if test["result"] not in GOOD]


def main(build):
    for test in failed(build):
        print(f"{test['result']} after {test['duration']:.0f} s, status "
              f"{test['returncode']}: {test['name']}")
        for line in said(test).splitlines()[-LINES:]:
            print(f"  {line}")


def again(build):
    tests = failed(build)
    if len(tests) > FEW or any(r in said(t) for t in tests for r in REPORTS):
        return
    for test in tests:
        print(test["name"].partition(" / ")[2] or test["name"])


if __name__ == "__main__":
    if sys.argv[1] == "--again":
        again(sys.argv[2])
    else:
        main(sys.argv[1])
