#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""prereq.py BUILD SUITE...: print the ninja targets that the tests of these suites need,
one a line.  "ninja $(prereq.py BUILD unit)" builds only those."""

import json
import os
import subprocess
import sys


def introspect(build, what):
    return json.loads(subprocess.check_output(
        ["meson", "introspect", build, "--" + what]))


def main(build, suites):
    needed = {target for test in introspect(build, "tests")
              if any(s.rpartition(":")[2] in suites for s in test["suite"])
              for target in test["depends"]}
    top = os.path.realpath(build)
    for target in introspect(build, "targets"):
        if target["id"] in needed:
            print(os.path.relpath(target["filename"][0], top))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], set(sys.argv[2:]))
