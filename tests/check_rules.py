#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Check that each test named in docs/{rules,verbs,reliability,errors}.md exists, and
that docs/verbs.md describes each verb of the provider.

A test is named as `file.c::test`; the file is below tests/.  The test exists if the
file defines it with START_TEST and adds it to a suite, or, in a Python or shell file,
if the file contains its name.  A rule without a test must state the reason after
"no test:".
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
        return f"none or several files have this name: {file}"
    if not file.endswith(".c") or "START_TEST" not in text:
        return None if re.search(rf"\b{test}\b", text) else "no such test"
    if not re.search(rf"^START_TEST\({test}\)", text, re.M):
        return "not defined with START_TEST"
    if not re.search(rf"\b\w*add\w*\([^;]*\b{test}\b", text):
        return "not added to a suite"
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
        # a row of a table, except its head
        if (line.startswith("| ") and not line.startswith(("| rule", "| fault", "| status", "| errno", "| reason",
                                     "| ---"))
                and not named and "no test:" not in line):
            print(f"{doc}:{number}: the rule names no test, and has no \"no test:\"")
            errors += 1
    print(f"{doc} names {len(tests)} tests; {errors} errors")
    return errors


# operations whose verb has a different name
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
            print(f"{doc}: ibv_{VERBS.get(op, op)} is not described")
            errors += 1
    return errors


def wrong_places(doc):
    """Check the files, functions and links that a page contains."""
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
            print(f"{doc}: broken link {link}")
            errors += 1
    for folder in re.findall(r"`((?:provider|kernel-shim)/[\w/.-]*)`", text):
        if not (ROOT / folder).exists():
            print(f"{doc}: {folder} does not exist")
            errors += 1
    return errors


def strings(text):
    """Concatenate the C string literals of text."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))


def wrong_reasons(doc):
    """Check that the page has a row for each reason of shared/reasons.h, with its
    rule and its usual cause; values are written as "..."."""
    literal = r'((?:OF_KEY\s*)?(?:"(?:[^"\\]|\\.)*"\s*)+)'
    table = (ROOT / "kernel-shim/shared/reasons.h").read_text()
    found = re.findall(rf"^REASON\((\w+),\s*{literal},\s*{literal},"
                       rf"\s*{literal}\)", table, re.M)
    errors = 0
    if len(found) != len(re.findall(r"^REASON\(", table, re.M)):
        print("kernel-shim/shared/reasons.h: not all reasons can be parsed")
        errors += 1
    lines = (ROOT / doc).read_text().splitlines()
    rows = {" | ".join(line.split(" | ")[:3]) for line in lines}
    for name, said, source, cause in found:
        said = strings(said).replace("%b", "... bytes")
        said = re.sub("%[a-z]", "...", said)
        row = f"| `{said}` | {strings(source)} | {strings(cause)}"
        if row not in rows:
            print(f"{doc}: no row for REASON_{name}: {row} |")
            errors += 1
        rows.discard(row)
    for row in rows:
        if re.match(r"\| `[^`]* [^`]*` \| ", row):
            print(f"{doc}: row without a reason in reasons.h: {row}")
            errors += 1
    return errors


VERBS_H = pathlib.Path("/usr/include/infiniband/verbs.h")


def missing_errors(doc):
    """Check that the page has a row for each status of the installed verbs.h, and
    for each errno of the provider's verbs."""
    rows = re.findall(r"^\| ((?:`[A-Z_]+`(?:, )?)+) \|",
                      (ROOT / doc).read_text(), re.M)
    have = set(re.findall(r"[A-Z_]+", " ".join(rows)))
    header = VERBS_H.read_text() if VERBS_H.exists() else ""
    statuses = re.search(r"enum ibv_wc_status \{(.*?)\}", header, re.S)
    want = set(re.findall(r"IBV_WC_(\w+)", statuses[1] if statuses else ""))
    want.discard("SUCCESS")
    for path in [*(ROOT / "provider/verbs").rglob("*.c"),
                 *(ROOT / "kernel-shim/fabric").rglob("*.c")]:
        text = path.read_text()
        want.update(re.findall(r"(?:urxe_fail\(-|fabric_fail\(\s*)(E[A-Z]+)\b",
                               text))
        if path.parent.name == "verbs":
            want.update(re.findall(r"\b(?:return|ret =) -?(E[A-Z]+)\b", text))
    for name in sorted(want - have):
        print(f"{doc}: no row for {name}")
    return len(want - have)


def main():
    errors = sum(check(f"docs/{page}.md")
                 for page in ["rules", "verbs", "reliability", "errors"])
    errors += missing_verbs("docs/verbs.md")
    errors += wrong_reasons("docs/errors.md")
    errors += missing_errors("docs/errors.md")
    errors += sum(wrong_places(str(doc.relative_to(ROOT)))
                  for doc in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
