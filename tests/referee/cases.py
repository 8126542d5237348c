#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Check that the referee reports each buggy program with the expected rule, and
nothing for its corrected version.  The cases named none+... must have no finding at
the default level.
Usage: cases.py URXE PROGRAM... (CASE=name in the environment: only that case)"""

import os
import subprocess
import sys
import tempfile


NOT_HERE = ("fork", "late", "exit", "full-then-exit",
            "event-then-exit")  # those of reports.py
# further findings of the same mistake
ALSO = {name: {"mr-unmapped"} for name in (
    "memory-gone+freed", "memory-gone+unmapped", "memory-gone+read",
    "source-reused+freed")}
# text that the finding of the buggy program must contain
SAYS = {"destroy-stuck+other": "1 acknowledgement too many: the wrong CQ may have been acknowledged",
        "verb-refused+name": "verb-refused: ibv_attach_mcast: QP"}


def found(urxe, level, command):
    """Run a case.  Return the violated rules and the output."""
    with tempfile.TemporaryDirectory() as tmp:
        with open(f"{tmp}/supp", "w") as supp:
            # depends on RLIMIT_MEMLOCK of the machine
            supp.write("" if command[1].startswith("memlock") else
                       "memlock-exceeded:*\n")
        # make uses of freed memory fail
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


# rules whose findings are consequences of other mistakes
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
                    print(f"{name} {how}: found {rules or 'nothing'}, expected {expected or 'nothing'}\n"
                          f"{said}")
    print(f"{tried} cases, {failed} failures")
    return failed > 0 or not tried


if __name__ == "__main__":
    sys.exit(main())
