#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each wrong program is found, and for what it is; its corrected twin never.
Those of the rule `none` are right at the level that is told if none is asked for.
Usage: cases.py URXE PROGRAM... (CASE=name in the environment: only that)"""

import os
import subprocess
import sys
import tempfile


NOT_HERE = ("fork", "late", "exit", "full-then-exit",
            "event-then-exit")  # those of reports.py
# what some of them are told as well: it is how they are wrong
ALSO = {name: {"mr-unmapped"} for name in (
    "memory-gone+freed", "memory-gone+unmapped", "memory-gone+read",
    "source-reused+freed")}
# what the wrong one is told
SAYS = {"destroy-stuck+other": "1 too many: was the wrong CQ acknowledged?",
        "verb-refused+name": "verb-refused: ibv_attach_mcast: QP"}


def found(urxe, level, command):
    """The rules that were broken, and what was said."""
    with tempfile.TemporaryDirectory() as tmp:
        with open(f"{tmp}/supp", "w") as supp:
            # a matter of the machine
            supp.write("" if command[1].startswith("memlock") else
                       "memlock-exceeded:*\n")
        # what is used after it was freed is of no use then
        env = dict(os.environ, URXE_CHECK=level,
                   GLIBC_TUNABLES="glibc.malloc.perturb=165:"
                                  "glibc.malloc.tcache_count=0",
                   URXE_CHECK_SUPPRESSIONS=f"{tmp}/supp",
                   URXE_CHECK_FOUND=f"{tmp}/found")
        run = subprocess.run([urxe, "run", "--", *command], env=env,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True)
        if run.returncode:
            return {f"status {run.returncode}"}, run.stdout
        try:
            with open(f"{tmp}/found") as notes:
                lines = [line.split("\t") for line in notes]
        except FileNotFoundError:
            lines = []
        return {line[3] for line in lines if line[0] == "F"}, run.stdout


# what other mistakes lead to
EFFECTS = {"wr-failed", "verb-refused"}


def main():
    urxe, *programs = sys.argv[1:]
    failed = tried = 0
    for program in programs:
        names = subprocess.run([program, "-l"], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.split()
        for name in names:
            if os.environ.get("CASE", name) != name or name in NOT_HERE:
                continue
            tried += 1
            wrong = {name.split("+")[0]} | ALSO.get(name, set())
            for how, expected in (("wrong", wrong),
                                  ("right", set())):
                level = "note"
                if name.startswith("none+"):
                    level, expected = "warning", set()
                rules, said = found(urxe, level, [program, name, how])
                if name.split("+")[0] not in EFFECTS:
                    rules -= EFFECTS
                text = SAYS.get(name, "") if how == "wrong" else ""
                if rules != expected or text not in said:
                    failed += 1
                    print(f"{name} {how}: {rules or 'nothing'} was found\n"
                          f"{said}")
    print(f"{tried} cases, {failed} failures")
    return failed > 0 or not tried


if __name__ == "__main__":
    sys.exit(main())
