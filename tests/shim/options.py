#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""options.py URXE SOURCE_ROOT: check that the options of the adversary, with their
defaults in both levels, are the same in the help of the command, in urxe(1) and in
docs/adversary.md."""
import pathlib
import re
import subprocess
import sys

urxe, root = sys.argv[1], pathlib.Path(sys.argv[2])
shown = subprocess.run([urxe, "run", "--adversary=help"], check=True, text=True,
                       stdout=subprocess.PIPE, timeout=120).stdout
options = re.findall(r"^(\w+) +(\d+) +(\d+)  (\S.*)$", shown, re.M)
page = re.findall(r"^\.It Cm (\w+) Pq (\d+), (\d+)\n(.*)$",
                  (root / "docs/man/urxe.1").read_text(), re.M)
rows = [re.split(r" *\| *", row.strip("| ")) for row in re.findall(
    r"^\| `.*$", (root / "docs/adversary.md").read_text().split("## Options")[1]
    .split("\n## ")[0], re.M)]
table = [(row[0].strip("`"), row[1], row[2]) for row in rows]
failures = 0


def expect(good, what):
    global failures
    if not good:
        failures += 1
        print("failed:", what)


expect(len(options) > 10, f"too few options: {options}")
expect(page == options, f"urxe.1 differs: {set(page) ^ set(options)}")
expect(table == [option[:3] for option in options],
       f"docs/adversary.md differs: {set(table) ^ {option[:3] for option in options}}")
for row in rows:
    expect(len(row) == 7 and row[3] and row[6] and
           (row[4] and row[5] or row[0] == "`ticks`"),
           f"docs/adversary.md: {row[0]} wants an effect, a rule, what NICs do and "
           f"a bug: {row}")
code = "".join(path.read_text() for folder in ("provider", "kernel-shim")
               for path in (root / folder).rglob("*.c"))
for name, *_ in options:
    expect(re.search(rf"\bADV_{name}\b", code), f"ADV_{name} is not used in the code")
sys.exit(1 if failures else 0)
