#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Check that the spec can be parsed, and lists exactly the files that meson installs.
Usage: rpm.py SOURCE BUILD.  Skipped without rpmspec."""

import fnmatch
import json
import pathlib
import re
import shutil
import subprocess
import sys

source, build = map(pathlib.Path, sys.argv[1:])
if not shutil.which("rpmspec"):
    print("rpmspec is not installed (Debian: rpm)")
    sys.exit(77)

# Directories of Fedora, and macros for those of this distribution
dirs = {"_prefix": "/usr", "_libdir": "/usr/lib64", "_bindir": "/usr/bin",
        "_datadir": "/usr/share", "_mandir": "/usr/share/man"}
defines = [word for name, path in dirs.items()
           for word in ("--define", f"{name} {path}")]
spec = subprocess.run(
    ["rpmspec", "-P", *defines, source / "packaging/rpm/urxe.spec"],
    check=True, stdout=subprocess.PIPE, text=True).stdout

section = re.search(r"^%files\n(.*?)(?=^%(?!doc|license|dir)|\Z)", spec,
                    re.MULTILINE | re.DOTALL)[1]
named = []
for line in section.splitlines():
    if line.startswith(("%license ", "%doc ")):
        for path in line.split()[1:]:
            assert (source / path).exists(), f"{path} does not exist"
    elif line and not line.startswith("#"):
        named.append(line)


def option(name):
    out = subprocess.run(["meson", "introspect", "--buildoptions", build],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    return next(o["value"] for o in json.loads(out) if o["name"] == name)


def plan():
    """Return the path of an installed file with the macros of the spec."""
    prefix, lib = option("prefix"), option("libdir")
    out = subprocess.run(["meson", "introspect", "--installed", build],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    for path in json.loads(out).values():
        path = path.removeprefix(prefix).lstrip("/")
        if path.startswith(lib + "/"):
            path = "lib64" + path.removeprefix(lib)
        yield "/usr/" + path


def covers(line, path):
    return fnmatch.fnmatch(path, line) or \
        line.endswith("/") and path.startswith(line)


installed = list(plan())
assert len(installed) >= 6, installed
forgotten = [p for p in installed if not any(covers(n, p) for n in named)]
missing = [n for n in named if not any(covers(n, p) for p in installed)]
for path in forgotten:
    print(f"%files lacks {path}")
for name in missing:
    print(f"%files has {name}, which is not installed")
sys.exit(1 if forgotten or missing else 0)
