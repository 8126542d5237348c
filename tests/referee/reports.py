#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Output and exit status of urxe run --check, in each report format.
Usage: reports.py URXE PROGRAM"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

failed = []


def expect(what, is_so, said=""):
    if not is_so:
        failed.append(what)
        print(f"FAILED: {what}\n{said}")


def run(*words, **variables):
    """Return the exit status and the output on stderr.  Objects left at exit are
    warnings."""
    env = dict(os.environ, URXE_CHECK_LEAKS="1")
    env.update(variables)
    done = subprocess.run([URXE, "run", *words], env=env, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return done.returncode, done.stderr


def text():
    code, said = run("--check", "--", *LEFT)
    expect("without --exitcode: the exit status of the program", code == 0, said)
    expect("the finding has rule, object and source", re.search(
        r"^urxe\[\d+\]: check: warning: object-left: MR of 64 bytes at "
        r"0x[0-9a-f]+ \(lkey 0x[0-9a-f]+\): was not destroyed before the process "
        r"ended \[man ibv_close_device\]$", said, re.M), said)
    place = (r" \(\S*objects\.c:\d+\)$" if shutil.which("addr2line") else
             r"\+0x[0-9a-f]+ \(\S+\+0x[0-9a-f]+\)$")
    expect("call stack with functions, also static ones, files and lines",
           re.search(r"^    created:\n    #0 in left_mr" + place, said, re.M), said)
    expect("the call stack has no functions of urxe",
           "liburxe" not in said and "libibverbs" not in said, said)
    expect("the finding has a hint", "    hint: destroy it" in said, said)
    expect("the summary counts the findings",
           "urxe: check: 0 errors, 2 warnings, 0 notes" in said, said)


def elsewhere():
    """If a program redirects its stderr to a file, its findings are written there."""
    with tempfile.TemporaryDirectory() as tmp:
        code, said = run("--check", "--exitcode", "9", "--", "sh", "-c",
                         'log=$1; shift; "$@" 2>"$log"', "sh", f"{tmp}/log", *LEFT)
        with open(f"{tmp}/log") as lines:
            log = lines.read()
        expect("findings are in the program's stderr", code == 9 and
               log.count("check: warning: object-left") == 2 and
               "#0 in left_mr+0x" in log, log)
        expect("findings are not printed by urxe run", "object-left" not in said, said)


def at_once():
    """Findings are printed while the program runs."""
    with tempfile.TemporaryDirectory() as tmp:
        os.mkfifo(f"{tmp}/go")
        with subprocess.Popen(
                [URXE, "run", "--check", "--", "sh", "-c",
                 'go=$1; shift; "$@"; read line <"$go"', "sh", f"{tmp}/go", *LEFT],
                env=dict(os.environ, URXE_CHECK_LEAKS="1"), text=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as p:
            line = p.stderr.readline()
            expect("a finding is printed before the program ends",
                   "object-left" in line and p.poll() is None, line)
            with open(f"{tmp}/go", "w") as go:
                go.write("on\n")
            p.communicate()


def levels():
    code, said = run("--check=error", "--exitcode", "9", "--", *LEFT)
    expect("--check=error: no warnings", (code, said) == (0, ""), said)
    code, said = run("--check=note", "--exitcode", "9", "--", *UNPOLLED)
    expect("--check=note: notes", code == 9 and "completion-unpolled" in said,
           said)
    code, said = run("--check", "--exitcode", "9", "--", *UNPOLLED)
    expect("--check: no notes", (code, said) == (0, ""), said)


def leaks():
    """Objects that exit releases do not make the check fail."""
    code, said = run("--check", "--exitcode", "9", "--", *LEFT,
                     URXE_CHECK_LEAKS="")
    expect("objects left at exit are counted in one line", code == 0 and
           re.fullmatch(r"urxe\[\d+\]: check: objects that still exist when the "
                        r"process ends: 2; run with --check --leaks to list "
                        r"them\n", said), said)
    code, said = run("--check=note", "--exitcode", "9", "--", *LEFT,
                     URXE_CHECK_LEAKS="")
    expect("objects left at exit are notes", code == 9 and
           said.count("check: note: object-left") == 2, said)
    code, said = run("--check", "--leaks", "--exitcode", "9", "--", *LEFT,
                     URXE_CHECK_LEAKS="")
    expect("--leaks: objects left at exit are warnings", code == 9 and
           said.count("check: warning: object-left") == 2, said)
    code, said = run("--check", "--exitcode", "9", "--", QUEUES,
                     "event-then-exit", "wrong", URXE_CHECK_LEAKS="")
    expect("unacknowledged events of objects left at exit are notes", code == 0 and
           "event-unacked" not in said, said)
    code, said = run("--check", "--leaks", "--exitcode", "9", "--", QUEUES,
                     "event-then-exit", "wrong", URXE_CHECK_LEAKS="")
    expect("--leaks: unacknowledged events at exit are warnings", code == 9 and
           said.count("check: warning: event-unacked") == 1, said)
    code, said = run("--check=error", "--", *LEFT, URXE_CHECK_LEAKS="")
    expect("--check=error: no count of objects left at exit", said == "", said)
    code, said = run("--check", "--exitcode", "9", "--", PROGRAM,
                     "object-left+close", "wrong", URXE_CHECK_LEAKS="")
    expect("objects left when the device is closed are warnings", code == 9 and
           said.count("check: warning: object-left") == 1, said)


def codes():
    expect("no findings: no output",
           run("--check", "--exitcode", "9", "--", *RIGHT) == (0, ""))
    expect("--exitcode", run("--check", "--exitcode", "9", "--",
                             *LEFT)[0] == 9)
    expect("a failed program: its own exit status",
           run("--check", "--exitcode", "9", "--", "sh", "-c",
               '"$@"; exit 3', "sh", *LEFT)[0] == 3)
    expect("findings of a child process count",
           run("--check", "--exitcode", "9", "--", "sh", "-c",
               '"$@"; true', "sh", *LEFT)[0] == 9)
    for words in (["--check=fatal"], ["--exitcode", "9"],
                  ["--check", "--exitcode", "many"],
                  ["--check", "--exitcode", "256"],
                  ["--leaks"],
                  ["--check", "--report", "html"],
                  ["--check", "--report", "json:"],
                  ["--check", "--report", "json:/nonexistent/report"],
                  ["--check", "--suppressions", "/nonexistent"]):
        code, said = run(*words, "--", "true")
        expect(f"{words} is refused", code == 2 and said, said)


def again():
    """Equal findings from one place are reported once, with a count."""
    code, said = run("--check", "--", PROGRAM, "object-left+many", "wrong")
    expect("reported once", len(re.findall("check: warning: object-left: AH",
                                       said)) == 1, said)
    expect("counted", "object-left at the same place: 5 times" in said, said)
    with tempfile.TemporaryDirectory() as tmp:
        run("--check", "--report", f"json:{tmp}/it", "--", PROGRAM,
            "object-left+many", "wrong")
        with open(f"{tmp}/it") as lines:
            notes = [json.loads(line) for line in lines]
        expect("counted in JSON",
               [n["count"] for n in notes if n["object"].startswith("AH")]
               == [5], notes)
    expect(code, code == 0)


DEBUGGED = """#include <infiniband/verbs.h>
int main(void)
{
	struct ibv_context *c = ibv_open_device(*ibv_get_device_list(NULL));
	struct ibv_cq_init_attr_ex a = { .cqe = 1 };
	return !ibv_create_cq_ex(c, &a);
}
"""


def debugged(tmp):
    """Without optimization, inline functions of verbs.h are functions of the program."""
    with open(f"{tmp}/left.c", "w") as source:
        source.write(DEBUGGED)
    subprocess.run(["cc", "-g", "-O0", "-o", f"{tmp}/left", f"{tmp}/left.c",
                    "-libverbs"], check=True)
    _, said = run("--check", "--report", "github", "--", f"{tmp}/left")
    expect("text: the header of an inline verb",
           re.search(r"#0 in ibv_create_cq_ex \(infiniband/verbs\.h\)\n    #1 in main "
                     r"\(\S*left\.c:6\)", said), said)
    expect("GitHub: the caller of an inline verb", "left.c,line=6,title=object-left" in said,
           said)


def forms():
    with tempfile.TemporaryDirectory() as tmp:
        _, said = run("--check", "--report", f"json:{tmp}/json", "--report",
                      f"junit:{tmp}/junit", "--report", f"github:{tmp}/github",
                      "--", *LEFT)
        with open(f"{tmp}/json") as lines:
            notes = [json.loads(line) for line in lines]
        expect("JSON: two findings", [n["rule"] for n in notes] == 2 * ["object-left"],
               notes)
        expect("JSON: a unique id for each", len({n["id"] for n in notes}) == 2 and
               all(re.fullmatch(r"\d+\.\d+", n["id"]) for n in notes), notes)
        calls = notes[-1]["calls"]
        expect("JSON: calls", calls[0]["what"] == "created" and
               calls[0]["function"] == "left_mr" and calls[0]["address"] > 0,
               calls)
        suite = xml.etree.ElementTree.parse(f"{tmp}/junit").getroot()[0]
        expect("JUnit: two failures", suite.get("failures") == "2" and
               len(suite.findall("testcase/failure")) == 2, suite.attrib)
        expect("JUnit: message", "was not destroyed" in
               suite.find("testcase/failure").get("message"))
        with open(f"{tmp}/github") as lines:
            github = lines.read()
        expect("GitHub: two commands", len(re.findall(
            r"^::warning (file=.*,line=\d+,)?title=object-left::.*", github,
            re.M)) == 2, github)
        if shutil.which("addr2line"):
            expect("GitHub: source file and line", re.search(
                r"file=\S*objects\.c,line=\d+", github), github)
            if shutil.which("cc"):
                debugged(tmp)
        run("--check", "--report", f"junit:{tmp}/junit", "--", *RIGHT)
        suite = xml.etree.ElementTree.parse(f"{tmp}/junit").getroot()[0]
        expect("JUnit: no findings: passed",
               suite.get("failures") == "0" and len(suite) == 1)
        _, said = run("--check", "--report", "github", "--", *LEFT)
        expect("GitHub: on stderr", "::warning " in said, said)
        run("--check", "--", *LEFT, URXE_CHECK_LOG=f"{tmp}/log")
        with open(f"{tmp}/log") as lines:
            expect("URXE_CHECK_LOG", "object-left" in lines.read())


def suppressions():
    for line, left in (("object-left:left_mr", 0), ("*:left_*", 0),
                       ("object-left:referee-objects", 0),
                       ("object-left:someone_else", 2),
                       ("sq-stuck:left_mr", 2)):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write(f"# why\n{line}\n")
            f.flush()
            code, said = run("--check", "--exitcode", "9", "--suppressions",
                             f.name, "--", *LEFT)
        expect(f"{line} leaves {left}",
               said.count("check: warning: object-left") == left and
               code == (9 if left else 0), said)
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("#" * 600 + " a long line\nwhat is this\n")
        f.flush()
        code, said = run("--check", "--suppressions", f.name, "--", *LEFT)
        expect("an invalid suppression is refused", code != 0 and
               f"{f.name}:2: not RULE:PATTERN" in said, said)
    with tempfile.NamedTemporaryFile("w", suffix=":") as f:
        code, said = run("--check", "--suppressions", f.name, "--", "true")
        expect("a path with a colon is refused", code == 2 and "contain a colon" in said,
               said)


def forks():
    code, said = run("--check", "--exitcode", "9", "--", PROGRAM, "fork",
                     "right")
    expect("objects inherited by a forked child are not its own",
           (code, said) == (0, ""), said)
    code, said = run("--check", "--exitcode", "9", "--", PROGRAM, "fork",
                     "wrong")
    expect("objects created by a forked child are its own", code == 9 and
           said.count("check: warning: object-left") == 1, said)


def late():
    for how, left in (("wrong", 2), ("right", 0)):
        _, said = run("--", PROGRAM, "late", how, URXE_CHECK="")
        expect(f"a program sets URXE_CHECK itself: {how}",
               said.count("check: warning: object-left") == left, said)


def gives_up():
    """Objects left by a failed program are not reported."""
    code, said = run("--check", "--exitcode", "9", "--", PROGRAM, "exit",
                     "wrong")
    expect("failed program: objects left at exit are not reported", (code, said) == (3, ""),
           said)
    code, said = run("--check", "--exitcode", "9", "--", PROGRAM, "exit",
                     "right")
    expect("successful program: objects left at exit are reported", code == 9 and
           said.count("check: warning: object-left") == 2, said)


def resets():
    _, said = run("--check=note", "--", QUEUES, "receive-late+reset", "wrong")
    expect("a reset ends the wait for a receive",
           re.search(r"found no posted receive on QP 0x[0-9a-f]+ \(2 times", said), said)


def fails(*case):
    """Return a command that runs the case and then fails."""
    return ["sh", "-c", '"$@"; exit 3', "sh", QUEUES, *case]


def failed_wrs():
    """Failed WRs and refused verbs are warnings if the command fails."""
    code, said = run("--check", "--exitcode", "9", "--", *fails("wr-failed", "wrong"))
    expect("a failed command: the reason of the failed WR is a warning",
           code == 3 and re.search(
               r"check: warning: wr-failed: QP 0x[0-9a-f]+, wr_id 0x1 \(RDMA_WRITE\): "
               r"failed with REM_ACCESS_ERR: rkey .*; usual cause: .*\n    posted:\n"
               r"    #0 in ", said), said)
    code, said = run("--check", "--exitcode", "9", "--",
                     *fails("wr-failed+receive", "wrong"))
    expect("a failed command: both ends of a failed receive", code == 3 and
           re.search(r"\(receive\): failed with LOC_PROT_ERR: lkey of a receive .*"
                     r" the key allows .*, but LOCAL_WRITE is required", said) and
           re.search(r"\(SEND\): failed with REM_OP_ERR: lkey of a receive", said),
           said)
    code, said = run("--check", "--", *fails("verb-refused", "wrong"))
    expect("a failed command: a refused verb", re.search(
        r"check: warning: verb-refused: ibv_resize_cq: cqe is 1073741824.*\n"
        r"    here:\n    #0 in verb_refused", said), said)
    code, said = run("--check", "--", *fails("verb-refused+full", "wrong"))
    expect("a failed command: a full queue", "verb-refused: ibv_post_send: QP" in said and
           "the send queue is full" in said, said)
    for case in ("wr-failed", "verb-refused"):
        code, said = run("--check", "--exitcode", "9", "--", QUEUES, case, "wrong")
        expect(f"{case}, handled by the program: no finding", (code, said) == (0, ""), said)
        code, said = run("--check=note", "--exitcode", "9", "--", QUEUES, case,
                         "wrong")
        expect(f"{case}, handled by the program: a note", code == 9 and
               f"check: note: {case}" in said and "0 warnings, 1 note" in said, said)
        code, said = run("--check=error", "--", *fails(case, "wrong"))
        expect(f"{case}: not at level error", (code, said) == (3, ""), said)
    # the aborted process cannot print
    code, said = run("--check", "--", "sh", "-c", '"$@"; kill -ABRT $$', "sh",
                     QUEUES, "wr-failed", "wrong")
    expect("a process ended by a signal has failed", "warning: wr-failed" in said, said)


def outlives():
    """Findings of a process that outlives urxe run."""
    for level, told in (("warning", False), ("note", True)):
        code, said = run(f"--check={level}", "--", "sh", "-c",
                         '{ while [ -e "$URXE_CHECK_FOUND" ]; do sleep 0.1; done; '
                         'exec "$@"; } &', "sh", QUEUES, "wr-failed", "wrong")
        expect(f"after urxe run, level {level}", code == 0 and
               ("check: note: wr-failed" in said) == told and (told or not said), said)


def explained():
    """Without --check, one line at the end says how to get the reason of a failure."""
    last = (r"urxe\[\d+\]: {}; for the reason use urxe run --check or URXE_LOG=1\n")
    _, said = run("--", QUEUES, "wr-failed", "wrong")
    expect("a failed WR", re.fullmatch(last.format("1 work request failed"), said), said)
    for how in ("wrong", "right"):
        _, said = run("--", QUEUES, "verb-refused+full", how)
        expect(f"a full queue, handled by the program: {how}", said == "", said)
    _, said = run("--", QUEUES, "full-then-exit", "wrong")
    expect("a full queue before a program fails", re.fullmatch(last.format(
        r"1 post to a full queue failed \(ENOMEM\)"), said), said)
    _, said = run("--", QUEUES, "wr-failed", "wrong", URXE_LOG="1")
    expect("with URXE_LOG no such line", "for the reason" not in said and "REM_ACCESS" in said, said)
    _, said = run("--check", "--", *fails("wr-failed", "wrong"))
    expect("with --check no such line", "for the reason" not in said, said)
    env = subprocess.run([URXE, "env"], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    said = subprocess.run(["sh", "-c", env + 'exec "$@"', "sh", QUEUES, "wr-failed",
                           "wrong"], check=True, stdout=subprocess.DEVNULL,
                          env={k: v for k, v in os.environ.items() if k != "URXE_RUN"},
                          stderr=subprocess.PIPE, text=True).stderr
    expect("without urxe run no such line", said == "", said)


def unread():
    """--timeout works although stderr is a full pipe."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while os.write(write, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(write, True)
    for option in ([], ["--check"]):
        command = [URXE, "run", *option, "--timeout", "1", "--", "sh", "-c",
                   '"$@"; exec sleep 1000', "sh", *LEFT]
        env = dict(os.environ, URXE_CHECK_LEAKS="1")
        with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL,
                              stderr=write) as done:
            try:
                code = done.wait(120)
            except subprocess.TimeoutExpired:
                done.kill()
                code = "a hang"
        expect(f"--timeout {option} with a full stderr", code == 124, code)
    os.close(read)
    os.close(write)


def sweep():
    code, said = run("--check", "--exitcode", "9", "--adversary=sweep:5", "--",
                     *LEFT)
    expect("a sweep stops at the first finding", code == 9 and
           "failed under the adversary with seed 1:" in said, said)


URXE, PROGRAM = sys.argv[1:]
LEFT = [PROGRAM, "object-left", "wrong"]
RIGHT = [PROGRAM, "object-left", "right"]
QUEUES = PROGRAM.replace("-objects", "-queues")
UNPOLLED = [QUEUES, "completion-unpolled", "wrong"]
for test in (text, elsewhere, at_once, levels, leaks, codes, again, forms, suppressions, forks, late,
             gives_up, resets, failed_wrs, outlives, explained, unread, sweep):
    test()
print(f"{len(failed)} failures")
sys.exit(bool(failed))
