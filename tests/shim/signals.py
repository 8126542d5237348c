#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""signals.py PROGRAM LIBRARY: SIGSEGV and SIGBUS in a program whose preload library
handles faults of the provider.

PROGRAM is shim-signals.  Each of its cases "same" and "die" is run without the library,
and with it in three ways; output, wait status and core must be the same.  The cases
"nofault" check themselves.  Programs built with AddressSanitizer must have the same
report, and gdb must stop at the same instruction.

All core files, and AddressSanitizer of clang, are compared with URXE_TEST_LONG only."""

import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

PROGRAM, LIBRARY = map(os.path.abspath, sys.argv[1:3])
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
SOURCES = [str(PROGRAMS / f"signals{part}.c") for part in ("", "_same", "_die", "_nofault")]
TOP = str(PROGRAMS.parents[2])
WITH = ("never", "early", "late", "off")
HANDLED = ("early", "late")
CORES = ("null", "past_end", "queue", "raise_nodefer", "jump", "report", "not_canonical",
         "trap") if os.environ.get("URXE_TEST_LONG") else ("past_end", "trap")
COMPILERS = (["gcc"], ["clang"], ["clang", "-shared-libasan"])
# A case takes seconds.  A longer one hangs.
LIMIT = 300
GDB = ["gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off"]
SHOW = ["-ex", "info symbol $pc", "-ex", "print $_siginfo.si_signo",
        "-ex", "print $_siginfo.si_code", "-ex",
        "print $_siginfo._sifields._sigfault.si_addr"]

failures = []


def fail(*lines):
    failures.append(lines[0])
    print(*lines, sep="\n")


def environment(mode):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("URXE_", "LD_PRELOAD", "ASAN_OPTIONS"))}
    if mode != "none":
        env.update(LD_PRELOAD=LIBRARY, URXE_FABRIC="signals", URXE_DIR=os.getcwd())
    if mode == "off":
        env["URXE_FAULT_HANDLER"] = "0"
    return env


def run(case, mode, program=PROGRAM):
    """Return the wait status and the output; a core file remains."""
    for file in glob.glob("core*"):
        os.unlink(file)
    with open("out", "wb") as out:
        pid = os.posix_spawn(program, [program, case, mode], environment(mode),
                             file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1),
                                           (os.POSIX_SPAWN_DUP2, out.fileno(), 2)])
    signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
    signal.alarm(LIMIT)
    status = os.waitpid(pid, 0)[1]
    signal.alarm(0)
    return status, pathlib.Path("out").read_text(encoding="utf-8", errors="replace")


def show(status):
    if os.WIFEXITED(status):
        return f"exit {os.WEXITSTATUS(status)}"
    return f"signal {os.WTERMSIG(status)}{', core' * os.WCOREDUMP(status)}"


def cases(kind):
    return subprocess.run([PROGRAM, "list", kind], check=True, capture_output=True,
                          text=True).stdout.split()


def core():
    """Return what the core file has: the instruction and the siginfo."""
    files = glob.glob("core*")
    text = None
    if files and shutil.which("gdb"):
        text = subprocess.run([*GDB, *SHOW, PROGRAM, files[0]], check=False,
                              capture_output=True, text=True).stdout
        # a process id, or the address of a mapping
        text = re.sub(r"0x[0-9a-f]{1,12}\b", "...", text)
        text = "\n".join(line for line in text.splitlines()
                         if re.match(r"\$\d|.* in section |No symbol", line))
    return text


def compare(case, with_core):
    status, out = run(case, "none")
    want = core() if with_core else None
    for mode in WITH:
        got = run(case, mode)
        if got != (status, out):
            fail(f"{case}, {mode}: {show(got[0])} instead of {show(status)}",
                 f"with urxe:\n{got[1]}", f"without:\n{out}")
        found = core() if with_core and mode in HANDLED else want
        if found != want:
            fail(f"{case}, {mode}: another core", f"with urxe:\n{found}",
                 f"without:\n{want}")


def check(case):
    """The cases of urxe_nofault(): no_section dies, the others succeed."""
    status, out = run(case, "off" if case == "off" else "early")
    died = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV
    if out or not (died if case == "no_section" else status == 0):
        fail(f"{case}: {show(status)}", out)


def report(text):
    """The report of AddressSanitizer without addresses and process ids"""
    return re.sub(r"0x[0-9a-f]+|==\d+==|T\d+\b", "", text)


def sanitizer(compiler, *flags):
    program = os.path.abspath("asan")
    if "-shared-libasan" in flags:
        name = subprocess.run(
            [compiler, f"-print-file-name=libclang_rt.asan-{os.uname().machine}.so"],
            check=False, capture_output=True, text=True).stdout.strip()
        flags += (f"-Wl,-rpath,{os.path.dirname(name)}",)
    build = subprocess.run(
        [compiler, "-g", "-fsanitize=address", "-D_GNU_SOURCE", f"-I{TOP}/kernel-shim",
         *flags, *SOURCES, "-o", program, "-pthread", "-ldl", "-w"],
        check=False, capture_output=True, text=True)
    if build.returncode or run("sent", "none", program)[0]:
        print(f"{compiler} {' '.join(flags)}: AddressSanitizer cannot be used")
        return
    for case, what in (("null", "SEGV on unknown address"), ("past_end", "BUS"),
                       ("use_after_free", "heap-use-after-free"), ("raise", "SEGV"),
                       ("siginfo", "info 11"), ("blocked", "")):
        status, out = run(case, "none", program)
        if what not in out:
            fail(f"{compiler}, {case}: no {what}: {show(status)}", out)
        for mode in HANDLED:
            got = run(case, mode, program)
            if (got[0], report(got[1])) != (status, report(out)):
                fail(f"{compiler}, {case}, {mode}: {show(got[0])}", got[1],
                     f"without urxe: {show(status)}", out)


def debugger(case):
    """gdb stops at the program's instruction, and at no other one before."""
    texts = []
    for mode in ("none", "early"):
        env = [f"set environment {name} {value}" for name, value in
               environment(mode).items() if name.startswith(("LD_", "URXE_"))]
        out = subprocess.run(
            [*GDB, *(word for line in env for word in ("-ex", line)), "-ex", "run",
             *SHOW, "--args", PROGRAM, case, mode], check=False, env=environment("none"),
            capture_output=True, text=True, timeout=LIMIT)
        texts.append([line for line in out.stdout.splitlines()
                      if re.match(r"\$\d|.* in section |Program ", line)])
    if not texts[0]:
        print("gdb cannot run programs here")
    elif texts[0] != texts[1]:
        fail(f"{case}: gdb", *texts[1], "without urxe:", *texts[0])


def main():
    if subprocess.run([PROGRAM, "list", "same"], check=False,
                      stdout=subprocess.DEVNULL).returncode == 77:
        print("skip: faults are not handled on this machine")
        return 77
    for case in cases("same"):
        compare(case, False)
    for case in cases("die"):
        compare(case, case in CORES)
    for case in cases("nofault"):
        check(case)
    for compiler, *flags in COMPILERS if os.environ.get("URXE_TEST_LONG") else COMPILERS[:1]:
        if shutil.which(compiler):
            sanitizer(compiler, *flags)
    if shutil.which("gdb"):
        debugger("null")
        debugger("report")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        STATUS = main()
        os.chdir("/")
    sys.exit(STATUS)
