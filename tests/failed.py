#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""failed.py BUILD: the tests that did not pass in the last "meson test" of
BUILD, each with the end of what it printed."""

import json
import sys

LINES = 40
GOOD = ("OK", "SKIP", "EXPECTEDFAIL", "IGNORED")


def main(build):
    with open(f"{build}/meson-logs/testlog.json", encoding="utf-8") as log:
        tests = [json.loads(line) for line in log]
    for test in tests:
        if test["result"] in GOOD:
            continue
        print(f"{test['result']} after {test['duration']:.0f} s, status "
              f"{test['returncode']}: {test['name']}")
        said = test.get("stdout", "") + test.get("stderr", "")
        for line in said.splitlines()[-LINES:]:
            print(f"  {line}")


if __name__ == "__main__":
    main(sys.argv[1])
