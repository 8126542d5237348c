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
        if (line.startswith("| ") and not line.startswith(("| rule", "| fault", "| status", "| errno", "| reason",
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


def strings(text):
    """The C string literals of text, as one."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))


def wrong_reasons(doc):
    """A row for each reason of shared/reasons.h, with its rule and its usual
    cause; ... stands for a value."""
    literal = r'((?:OF_KEY\s*)?(?:"(?:[^"\\]|\\.)*"\s*)+)'
    table = (ROOT / "kernel-shim/shared/reasons.h").read_text()
    found = re.findall(rf"^REASON\((\w+),\s*{literal},\s*{literal},"
                       rf"\s*{literal}\)", table, re.M)
    errors = 0
    if len(found) != len(re.findall(r"^REASON\(", table, re.M)):
        print("kernel-shim/shared/reasons.h: not all reasons are understood")
        errors += 1
    lines = (ROOT / doc).read_text().splitlines()
    rows = {" | ".join(line.split(" | ")[:3]) for line in lines}
    for name, said, source, cause in found:
        said = re.sub("%[a-z]", "...", strings(said))
        row = f"| `{said}` | {strings(source)} | {strings(cause)}"
        if row not in rows:
            print(f"{doc}: no row of REASON_{name}: {row} |")
            errors += 1
        rows.discard(row)
    for row in rows:
        if re.match(r"\| `[^`]* [^`]*` \| ", row):
            print(f"{doc}: nothing says {row}")
            errors += 1
    return errors


VERBS_H = pathlib.Path("/usr/include/infiniband/verbs.h")


def missing_errors(doc):
    """Each status of the installed verbs.h, and each errno of the provider's
    verbs, has a row that begins with it."""
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
        print(f"{doc}: no row of {name}")
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
