#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Check that packages, documents, tool and man pages have the version of meson.build.
Usage: versions.py SOURCE [BUILD]; without BUILD, built files are not checked."""

import pathlib
import re
import subprocess
import sys

source = pathlib.Path(sys.argv[1])
build = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None


def find(pattern, text, what):
    """Return the first group of the pattern in the text."""
    match = re.search(pattern, text, re.MULTILINE)
    assert match, f"{what}: no version in it"
    return match[1]


def read(name, pattern):
    return find(pattern, (source / name).read_text(), name)


wanted = read("meson.build", r"^  version: '(.*)',$")
assert re.fullmatch(r"\d+\.\d+\.\d+", wanted), wanted

seen = {
    "CHANGELOG.md": read("CHANGELOG.md", r"^## \[(\d\S*)\]"),
    "debian/changelog": read("debian/changelog", r"^urxe \((.*)\) "),
    "packaging/rpm/urxe.spec": read("packaging/rpm/urxe.spec",
                                    r"^Version: +(\S+)$"),
}
apkbuild = "packaging/alpine/APKBUILD"
if (source / apkbuild).exists():
    seen[apkbuild] = read(apkbuild, r"^pkgver=(\S+)$")
# tags of releases in examples
for name in ("README.md", "docs/ci.md"):
    tags = re.findall(r"\bv(\d+\.\d+\.\d+)\b", (source / name).read_text())
    assert tags, f"{name}: no version in it"
    seen[name] = next((tag for tag in tags if tag != wanted), wanted)
if build:
    tool = subprocess.run([build / "tools/urxe", "--version"], check=True,
                          capture_output=True, text=True).stdout
    seen["urxe --version"] = find(r"^urxe (\S+)$", tool, "urxe --version")
    for name, pattern in (("meson-private/urxe.pc", r"^Version: (\S+)$"),
                          ("docs/urxe.1", r"^\.Os urxe (\S+)$"),
                          ("docs/urxe.7", r"^\.Os urxe (\S+)$")):
        seen[name] = find(pattern, (build / name).read_text(), name)

wrong = {name: v for name, v in seen.items() if v != wanted}
for name, v in wrong.items():
    print(f"{name} is {v}, but meson.build says {wanted}")
sys.exit(1 if wrong else 0)
