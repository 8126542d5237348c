#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Check that the table of rules in docs/referee.md equals provider/referee/report/rules.h,
and that each rule has a buggy program that violates it.
Usage: table.py SOURCE_ROOT [PROGRAM...]; table.py --print SOURCE_ROOT"""

import pathlib
import re
import subprocess
import sys


def rules(root):
    """Yield the name, level, source and meaning of each rule."""
    text = (root / "provider/referee/report/rules.h").read_text()
    text = text[text.index("#define REFEREE_RULES"):text.index("enum rule {")]
    text = re.sub(r"\s*\\\n\s*", " ", text)
    for name, level, strings in re.findall(
            r"RULE\((\w+), (\w+), ((?:[^\"()]|\"(?:[^\"\\]|\\.)*\")*)\)", text):
        parts = re.split(r",(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", strings)
        source, meaning, _ = ("".join(re.findall(r"\"(.*?)\"", p))
                              for p in parts)
        yield name.replace("_", "-"), level, source, meaning


def table(root):
    lines = ["| rule | level | source | what is wrong |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {level} | {source} | {meaning} |"
              for name, level, source, meaning in rules(root)]
    return lines


def main():
    if sys.argv[1] == "--print":
        print("\n".join(table(pathlib.Path(sys.argv[2]))))
        return 0
    root = pathlib.Path(sys.argv[1])
    doc = (root / "docs/referee.md").read_text().splitlines()
    begin = doc.index("| rule | level | source | what is wrong |")
    there = doc[begin:]
    there = there[:there.index("")]
    bad = [f"docs/referee.md lacks: {line}"
           for line in table(root) if line not in there]
    bad += [f"docs/referee.md has a row without a rule: {line}"
            for line in there if line not in table(root)]
    cases = set()
    for program in sys.argv[2:]:
        out = subprocess.run([program, "-l"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
        cases |= {name.split("+")[0] for name in out.split()}
    bad += [f"no buggy program violates {name}"
            for name, *_ in rules(root) if name not in cases]
    print("\n".join(bad))
    print(f"{len(list(rules(root)))} rules, {len(bad)} errors")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
