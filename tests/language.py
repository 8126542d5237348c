#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""language.py [-n]: words that comments, messages and documents do not use.

A process, a thread or a queue is no "he", a sentence does not begin with "Who ...",
and a standard term is used where one exists (docs/contributing.md, "Wording").  Each
line of a tracked file is read, without regard to whether it is code: an identifier
such as seat_count has an underscore and does not match.  tests/language.allow has the
lines that are right: "PATH: REGULAR EXPRESSION", for a part of the line.  -n prints
the count of each word only."""

import collections
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = {".c", ".h", ".cpp", ".py", ".sh", ".md", ".pml", ".js", ".html", ".css",
        ".build", ".ini", ".1", ".7", ".litmus", ".txt", ".yml", ".yaml", ".spec", ""}
SKIPPED = re.compile(r"(^|/)(corpus|fields)/|^COPYING|^debian/(changelog|copyright)"
                     r"|^tests/language\.|\.(svg|png|patch|supp|tsan)$")
# what is found, and what is written instead
WORDS = {
    r"(?:^|[.:;!?] +|/\* |// |\* |# |- )Who(?:ever)? (?![^.?\n]*\?)": "a noun",
    r"\b[Hh](?:e|im|is)\b(?!'|\")": "the process, the thread, the requester",
    r"\b(?:taker|takers)\b": "destroyer, reclaimer",
    r"\brooms\b": "interposers",
    r"\bin its hands\b": "outstanding",
    r"\bthe (?:short )?way of\b|\bgo(?:es)? the short way\b": "data path, fast path",
    r"\b(?:is|are|was|were|be) told\b": "is notified, is logged, is reported",
    r"\b(?:is|are) said\b|\bsays so\b": "is reported, returns",
    r"\b(?:is|are) asked\b": "is queried, is checked, is requested",
    r"\blooks? at\b|\blooked at\b": "reads, checks, polls",
    r"\b(?:goes|go|went|going) on\b": "continues",
    r"\bcomes? again\b": "is repeated, is retransmitted",
    r"\bstands? in\b|\bstood in\b": "is stored in, replaces",
    r"\bhears?\b|\bheard\b|\bhearers?\b": "receives",
    r"\bseats?\b": "owner slot",
    r"\bnext one on the way\b": "next hop",
    r"\bdeath is noticed\b": "a process exit is detected",
    r"\bdoubt(?:s|ed)?\b": "rechecks, is marked for recheck",
    r"\banimals?\b": "program with a mistake",
    r"\btwins?\b": "corrected program",
    r"\bknobs?\b": "option, parameter",
    r"\bbeside\b": "next to, during, compared with",
    r"\bcarriers?\b": "transport",
    r"\b(?:is|are|was) over\b": "has ended, completes",
    r"\btakes? away\b": "destroys, invalidates",
    r"\bin vain\b": "without success",
    r"\bsomebody\b|\bnobody\b|\banybody\b": "a process, no process, any process",
}
WORDS = {re.compile(word, re.M): instead for word, instead in WORDS.items()}


def listed():
    """Return the names of the files in the checkout, or None without git."""
    if not shutil.which("git"):
        return None
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, check=False,
                         capture_output=True, text=True)
    return None if out.returncode else out.stdout.splitlines()


def files(names):
    for name in names:
        path = ROOT / name
        if path.suffix in TEXT and not SKIPPED.search(name) and path.is_file():
            yield name, path


def allowed():
    for line in (ROOT / "tests/language.allow").read_text().splitlines():
        if line and not line.startswith("#"):
            path, _, pattern = line.partition(": ")
            yield re.compile(path + "$"), re.compile(pattern)


def main():
    allow = list(allowed())
    used = set()
    count = collections.Counter()
    quiet = sys.argv[1:] == ["-n"]
    names = listed()
    if names is None:
        print("git is not installed, or this is not a git checkout: not checked")
        return 0
    for name, path in files(names):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for word, instead in WORDS.items():
            for found in word.finditer(text):
                at = text.rfind("\n", 0, found.end()) + 1
                line = text[at:].partition("\n")[0]
                right = [i for i, (p, pattern) in enumerate(allow)
                         if p.match(name) and pattern.search(line)]
                if right:
                    used.update(right)
                    continue
                count[word.pattern] += 1
                if not quiet:
                    number = text.count("\n", 0, at) + 1
                    print(f"{name}:{number}: {found.group().strip()}: "
                          f"{instead}?\n    {line.strip()}")
    for i, (path, pattern) in enumerate(allow):
        if i not in used and not quiet:
            print(f"tests/language.allow: nothing needs {path.pattern}: "
                  f"{pattern.pattern}")
            count["allow"] += 1
    for pattern, n in count.most_common():
        print(f"{n:5} {pattern}")
    print(f"{sum(count.values())} lines")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
