#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Every test that docs/{rules,verbs,reliability,errors}.md name must exist, and
docs/verbs.md must name every verb that the provider has.

A test is named as `file.c::test` (files are looked for under tests/).  It
exists if that file defines it with START_TEST and adds it to a suite, or, in
a Python or shell file, if its name stands there.  A rule without a test must
say why: "no test:" and the reason.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = re.compile(r"`([\w./-]+)::(\w+)`")


def find_file(name):
    found = [p for p in (ROOT / "tests").rglob(name.rsplit("/", 1)[-1])
             if str(p).endswith("/" + name)]
    return found[0].read_text() if len(found) == 1 else None


def test_exists(file, test):
    text = find_file(file)
    if text is None:
        return f"no such file, or several: {file}"
    if not file.endswith(".c") or "START_TEST" not in text:
        return None if re.search(rf"\b{test}\b", text) else "no such test"
    if not re.search(rf"^START_TEST\({test}\)", text, re.M):
        return "no START_TEST of it"
    if not re.search(rf"\b\w*add\w*\([^;]*\b{test}\b", text):
        return "it is not added to a suite"
    return None


def check(doc):
    errors = 0
    tests = set()
    for number, line in enumerate((ROOT / doc).read_text().splitlines(), 1):
        named = NAME.findall(line)
        tests.update(named)
        for file, test in named:
            problem = test_exists(file, test)
            if problem:
                print(f"{doc}:{number}: {file}::{test}: {problem}")
                errors += 1
        # a row of a table, not its head
        if (line.startswith("| ") and not line.startswith(("| rule", "| fault", "| status", "| errno", "| of a key",
                                     "| ---"))
                and not named and "no test:" not in line):
            print(f"{doc}:{number}: a rule without a test")
            errors += 1
    print(f"{doc} names {len(tests)} tests; {errors} errors")
    return errors


# operations whose verb has another name
VERBS = {"free_context": "close_device"}


def missing_verbs(doc):
    text = (ROOT / doc).read_text()
    table = (ROOT / "provider/abi/pabi/ops.h").read_text()
    ops = re.findall(r"^(?:CODE|FAST|NONE|MAKE\([^,]+)[(,]\s*(\w+),", table, re.M)
    errors = 0
    if len(ops) < 60:
        print(f"provider/abi/pabi/ops.h: only {len(ops)} operations were found")
        errors += 1
    for op in ops:
        if not re.search(rf"\bibv_{VERBS.get(op, op)}\b", text):
            print(f"{doc}: nothing on ibv_{VERBS.get(op, op)}")
            errors += 1
    return errors


def wrong_places(doc):
    """Files and functions that a page names, and its links."""
    text = (ROOT / doc).read_text()
    errors = 0
    for path, name in re.findall(r"\| `([\w/.-]+\.[ch])` \| `(\w+)` \|", text):
        file = ROOT / path
        if not file.is_file() or not re.search(
                rf"^[^\s#/].*\b{name}\(|^{name}\(", file.read_text(), re.M):
            print(f"{doc}: no {name} in {path}")
            errors += 1
    for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", text):
        if not ((ROOT / doc).parent / link).exists():
            print(f"{doc}: {link} is not there")
            errors += 1
    for folder in re.findall(r"`((?:provider|kernel-shim)/[\w/.-]*)`", text):
        if not (ROOT / folder).exists():
            print(f"{doc}: {folder} is not there")
            errors += 1
    return errors


def unsaid(doc):
    """What a page quotes of URXE_LOG is what the provider says: a capital
    letter, or ..., stands for a value."""
    said = re.sub(r'"\s*"', "", "\n".join(
        path.read_text() for path in (ROOT / "provider").rglob("*.c")))
    errors = 0
    for line in (ROOT / doc).read_text().splitlines():
        quotes = re.findall(r"`([a-zA-Z][^`]* [^`]*)`", line)
        for quote in quotes if line.startswith("| ") else []:
            for part in re.split(r"\b[A-Z]\b|\.\.\.", quote):
                if part.strip(" :,") not in said:
                    print(f"{doc}: nothing says \"{part.strip()}\"")
                    errors += 1
    return errors


def main():
    errors = sum(check(f"docs/{page}.md")
                 for page in ["rules", "verbs", "reliability", "errors"])
    errors += missing_verbs("docs/verbs.md")
    errors += unsaid("docs/errors.md")
    errors += sum(wrong_places(str(doc.relative_to(ROOT)))
                  for doc in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
