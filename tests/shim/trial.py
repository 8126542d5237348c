#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""trial.py URXE HOLD: options with which urxe run waits for the program: --adversary,
--timeout.

Exit status, signals and terminal must be the same for the caller as if urxe run had
replaced itself with the program.  Also checks the seeds, the end of a sweep, and the
messages."""
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

URXE, HOLD = (os.path.realpath(path) for path in sys.argv[1:3])
LIMIT = 120

base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
home = tempfile.mkdtemp(prefix="urxe-test.", dir=base)
ENV = dict(os.environ, URXE_DIR=home)
for variable in ("URXE_ADVERSARY", "URXE_FABRIC", "URXE_KEEP"):
    ENV.pop(variable, None)
failures = []

# nohup and shells without job control start programs with these signals ignored
for given in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    signal.signal(given, signal.SIG_DFL)

# prints when it is ready, and each signal that it receives
LISTENER = os.path.join(home, "listener.py")
with open(LISTENER, "w") as program:
    program.write("""
import os, signal, sys
come, go = os.pipe2(os.O_NONBLOCK)
os.set_blocking(come, True)
for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(sig, lambda sig, frame: None)
signal.set_wakeup_fd(go)  # one byte for each signal, also if two arrive at once
print("ready", os.getpid(), flush=True)
while True:
    sig = os.read(come, 1)[0]
    print("got", signal.Signals(sig).name, flush=True)
    if sig == signal.SIGTERM:
        sys.exit(5)
""")


def expect(good, what):
    if not good:
        failures.append(what)
        print("failed:", what)


def urxe(*words, env=None):
    return subprocess.run([URXE, "run", *words], env=dict(ENV, **(env or {})),
                          capture_output=True, text=True, timeout=LIMIT,
                          check=False)


def await_(what, true):
    last = time.monotonic() + LIMIT
    while not true():
        if time.monotonic() > last:
            expect(False, what)
            return
        time.sleep(0.02)


def state(pid):
    """Return the process state as in ps, or "-" if the process does not exist."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "-"


def start(*words, **more):
    return subprocess.Popen([URXE, "run", *words], env=ENV, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            **more)


def listen(*words, **more):
    """Start a listener under urxe run.  Return the process of urxe, and the listener's PID."""
    run = start(*words, "--", sys.executable, LISTENER, **more)
    return run, int(run.stdout.readline().split()[1])


def finish(run):
    out, err = run.communicate(timeout=LIMIT)
    return run.returncode, out, err


def try_statuses():
    for words in ([], ["--adversary=7"], ["--timeout", "90"]):
        for command, want in (("exit 0", 0), ("exit 7", 7),
                              ("kill -SEGV $$", -signal.SIGSEGV),
                              ("kill -KILL $$", -signal.SIGKILL)):
            done = urxe(*words, "--", "sh", "-c", command)
            expect(done.returncode == want, f"{words} {command}: {done}")
            said = "seed 7" in done.stderr
            expect(said == (want != 0 and "--adversary=7" in words), f"{done}")
        expect(urxe(*words, "--", "/etc/passwd").returncode == 126, "126")
        done = urxe(*words, "--", "no-such-program")
        expect(done.returncode == 127 and "repeat" not in done.stderr, f"{done}")
    # without these options urxe executes the program directly
    run, pid = listen()
    expect(run.pid == pid, "urxe run did not execute the program directly")
    run.terminate()
    expect(finish(run)[0] == 5, "SIGTERM")
    # also with SIGCHLD ignored
    run = start("--adversary=7", "--", "sh", "-c", "exit 3",
                preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    expect(finish(run)[0] == 3, "with SIGCHLD ignored")


def try_signals():
    # in its own process group: SIGTSTP has no effect in an orphaned group
    run, pid = listen("--adversary=7", preexec_fn=lambda: os.setpgid(0, 0))
    expect(run.pid != pid, "executed")
    for sig in (signal.SIGUSR1, signal.SIGHUP, signal.SIGINT):
        run.send_signal(sig)
        line = run.stdout.readline()
        expect(line == f"got {sig.name}\n", f"{sig.name}: {line}")
    run.send_signal(signal.SIGTSTP)
    # a shell, too, continues a job when all of it has stopped
    await_("the program does not stop",
           lambda: state(pid) == "T" and state(run.pid) == "T")
    run.send_signal(signal.SIGCONT)
    await_("the program does not continue", lambda: state(pid) == "S")
    run.terminate()
    code, out, err = finish(run)
    expect(code == 5 and out == "got SIGTERM\n", f"SIGTERM: {code} {out}")
    expect("failed" not in err, f"ended by a signal, but reported as failed: {err}")

    run, pid = listen("--adversary=7")
    run.kill()
    await_("the program outlives urxe run", lambda: state(pid) in "-Z")
    finish(run)

    # ignored signals remain ignored
    run, pid = listen("--adversary=sweep:3",
                      preexec_fn=lambda: signal.signal(signal.SIGHUP,
                                                       signal.SIG_IGN))
    run.send_signal(signal.SIGHUP)
    run.send_signal(signal.SIGUSR1)
    line = run.stdout.readline()
    expect(line == "got SIGUSR1\n", f"ignored: {line}")
    run.terminate()
    code, out, err = finish(run)
    expect(code == 5 and "ready" not in out, f"the sweep continues: {code} {out}")


def try_terminal():
    """Ctrl-C and Ctrl-Z of a job that a shell started."""
    leader, fd = pty.fork()
    if not leader:
        job = os.fork()
        if not job:
            os.setpgid(0, 0)
            # done by the shell; possible in a background process with SIGTTOU ignored
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execve(URXE, [URXE, "run", "--adversary=7", "--",
                             sys.executable, LISTENER], ENV)
        _, status = os.waitpid(job, os.WUNTRACED)
        stopped = os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTSTP
        print("stopped" if stopped else status, flush=True)
        os.killpg(job, signal.SIGCONT)
        _, status = os.waitpid(job, os.WUNTRACED)
        print("ended", os.WEXITSTATUS(status), flush=True)
        os._exit(0)
    got = b""

    def until(text, times=1):
        nonlocal got
        while got.count(text) < times:
            try:
                part = os.read(fd, 4096)
            except OSError:
                break
            if not part:
                break
            got += part
        expect(text in got, f"terminal: no {text!r} in {got!r}")
        return text in got

    if until(b"ready ") and until(b"\n"):
        pid = int(got.split(b"ready ")[1].split()[0])
        # a second signal may be lost while the first is pending: repeat this
        for n in range(20):
            os.write(fd, b"\x03")
            until(b"got SIGINT\r\n", n + 1)
            time.sleep(0.02)
        os.write(fd, b"\x1a")
        until(b"stopped\r\n")
        await_("the program does not continue", lambda: state(pid) == "S")
        os.kill(pid, signal.SIGTERM)
        until(b"ended 5")
        expect(got.count(b"got SIGINT") == 20, f"{got!r}")
    os.close(fd)
    os.waitpid(leader, 0)


def seeds(text):
    return re.findall(r"seed=(\d+)", text)


def try_sweep():
    show = "echo seed=${URXE_ADVERSARY%%,*}"
    done = urxe("--adversary=sweep:3", "--", "sh", "-c", show)
    expect(done.returncode == 0 and seeds(done.stdout) == ["1", "2", "3"],
           f"{done}")
    # up to the first seed that fails; the printed command line repeats it
    script = show + "; test $URXE_ADVERSARY != 6,loss=2% || exit '4'"
    done = urxe("--fabric", "a b", "--adversary=sweep:5-9,loss=2%", "--", "sh",
                "-c", script)
    expect(done.returncode == 4 and seeds(done.stdout) == ["5", "6"], f"{done}")
    line = done.stderr.splitlines()[-1]
    again = subprocess.run(["sh", "-c", line], env=ENV, capture_output=True,
                           text=True, timeout=LIMIT, check=False)
    expect(again.returncode == 4 and seeds(again.stdout) == ["6"],
           f"{line}: {again}")
    expect(again.stderr.splitlines()[-1] == line, f"{again.stderr}")

    # a signal that ends a run also ends the sweep
    run, _ = listen("--adversary=sweep:3")
    run.send_signal(signal.SIGINT)
    run.stdout.readline()
    run.terminate()
    code, out, err = finish(run)
    expect(code == 5 and "ready" not in out and "fail" not in err,
           f"{code} {out} {err}")
    run = start("--adversary=sweep:3", "--", "sh", "-c",
                "trap 'exit 0' TERM; echo ready; while :; do sleep 0.02; done")
    run.stdout.readline()
    run.terminate()
    code, out, err = finish(run)
    expect(code == -signal.SIGTERM and "ready" not in out, f"{code} {out}")


def try_levels():
    show = "echo is=$URXE_ADVERSARY."
    for value, want in (("hardware", r"\d+,hardware"),
                        ("hardware,7", "7,hardware"), ("7,hardware", "7,hardware"),
                        ("specification,0x10,loss=2%", "16,specification,loss=2%"),
                        ("hardware,loss=2%", r"\d+,hardware,loss=2%"),
                        ("hardware,sweep:1", "1,hardware")):
        done = urxe(f"--adversary={value}", "--", "sh", "-c", show)
        expect(re.fullmatch(rf"is={want}\.\n", done.stdout), f"{value}: {done}")
    # a failed seed is run again with the other level
    for other, words in (("exit 0", "seed 2 passes with --adversary=hardware:"),
                         ("exit 3", "seed 2 fails with --adversary=hardware,")):
        script = f"case $URXE_ADVERSARY in *,*) {other};; 2*) exit 4;; esac"
        done = urxe("--trace", os.path.join(home, "trace"), "--adversary=sweep:3",
                    "--", "sh", "-c", "echo traced=${URXE_TRACE+yes}; " + script)
        expect(done.returncode == 4 and words in done.stderr, f"{done}")
        expect("urxe run --trace" in done.stderr.splitlines()[-1] and
               "--adversary=2" in done.stderr.splitlines()[-1], f"{done}")
        expect(done.stdout == "traced=yes\n" * 2 + "traced=\n",
               f"not a trace of the failed seed: {done}")
        for value in ("sweep:3,loss=0", "2,specification", "hardware,sweep:3",
                      "specification,sweep:3"):
            done = urxe(f"--adversary={value}", "--", "sh", "-c", "exit 4")
            expect(done.returncode == 4 and "with --adversary=hardware" not in
                   done.stderr, f"{value}: {done}")


def try_apart():
    """Each run has a new fabric; processes of the previous run are killed."""
    device = "test -e /sys/class/infiniband/urxe0; "
    script = (device + "urxe port down >&2; echo fabric=$URXE_FABRIC; "
              "sleep 1000 & echo pid=$!; setsid sh -c 'echo pid=$$; trap : TERM; "
              "while :; do sleep 1; done' & ")
    run = start("--adversary=sweep:2", "--", "sh", "-c",
                f"PATH={os.path.dirname(URXE)}:$PATH\n" + script)
    _, out, err = finish(run)
    fabrics = re.findall(r"fabric=(\S+)", out)
    expect(len(set(fabrics)) == 2, f"fabrics {fabrics}: {out} {err}")
    for fabric in fabrics:
        expect(not os.path.exists(os.path.join(home, fabric)), f"left {fabric}")
    for pid in re.findall(r"pid=(\d+)", out):
        expect(state(pid) in "-Z", f"{pid} is left: {state(pid)}")
    # a fabric that the user names is used for all runs
    done = urxe("--fabric", "mine", "--adversary=sweep:2", "--", "sh", "-c",
                "echo fabric=$URXE_FABRIC")
    expect(re.findall(r"fabric=(\S+)", done.stdout) == ["mine", "mine"],
           f"{done}")


def late(far, *command, option=None):
    """Run a command that hangs; use a longer time limit until far(done) is true, as a busy
    machine needs more time."""
    for limit in ("0.3s", "3s", "30s"):
        done = urxe(*([option] if option else []), "--timeout", limit, "--",
                    *command)
        if far(done):
            break
    return done


def try_timeout():
    done = late(lambda done: done.stdout.count("pid=") == 2, "sh", "-c",
                "trap '' TERM; setsid sh -c 'echo pid=$$; exec sleep 1000' & "
                "echo pid=$$; while :; do sleep 1; done")
    pids = re.findall(r"pid=(\d+)", done.stdout)
    expect(done.returncode == 124 and len(pids) == 2, f"{done}")
    for pid in pids:
        expect(state(pid) in "-Z", f"{pid} outlives the time limit: {state(pid)}")
    # a program that ends on SIGTERM, with a child that does not
    done = late(lambda done: "pid=" in done.stdout, "sh", "-c",
                "setsid sh -c 'trap \"\" TERM; echo pid=$$; while :; do sleep 1;"
                "done' & sleep 1000")
    pids = re.findall(r"pid=(\d+)", done.stdout)
    expect(done.returncode == 124 and len(pids) == 1, f"{done}")
    for pid in pids:
        expect(state(pid) in "-Z", f"{pid} outlives the time limit: {state(pid)}")
    # a hang is a failure, also if the program is stopped, or exits with 0 on SIGTERM
    for script in ("kill -STOP $$", "trap 'exit 0' TERM; while :; do sleep 0.05;"
                   "done"):
        done = late(lambda done: "seed 2:" in done.stderr, "sh", "-c",
                    f"[ $URXE_ADVERSARY != 2 ] || {{ {script}; }}",
                    option="--adversary=sweep:3")
        expect(done.returncode == 124 and "seed 2:" in done.stderr, f"{done}")
    done = urxe("--timeout", "1m", "--", "true")
    expect(done.returncode == 0 and not done.stderr, f"{done}")
    for bad in ("", "0", "-1", "x", "1x", "1ss", "inf", "nan"):
        done = urxe("--timeout", bad, "--", "echo", "ran")
        expect(done.returncode == 2 and not done.stdout, f"{done}")


def try_values():
    listed = urxe("--adversary=help")
    options = re.findall(r"^(\w+) +\d+ +\d+  \S", listed.stdout, re.M)
    expect(listed.returncode == 0 and len(options) > 5, f"{listed}")
    done = urxe("--adversary=0x10", "--", "false")
    expect("--adversary=16 " in done.stderr, f"0x10 is 16: {done}")
    for bad in ("x", "-1", "1x", "0x", "0x1g", "18446744073709551616", "1,", "1,,",
                "1,no=1", "1,=1", "1,ticks", "1,ticks=", "1,ticks=x",
                "1,ticks=1%", "1,loss=1001", "1,loss=101%", "1,loss=100.1%",
                "1,loss=1.5", "1,loss=1.%", "1,loss=.5%", "1,loss=%",
                "1,loss=1%%", "sweep", "sweep:", "sweep:0", "sweep:x",
                "sweep:2-1", "sweep:1-", "sweep:3,no=1", "hard", "hardware,",
                "hardware,x", "hardware,1,x", "hardware,sweep:x", "1,hardware=1"):
        for done in (urxe(f"--adversary={bad}", "--", "echo", "ran"),
                     urxe("--", "echo", "ran", env={"URXE_ADVERSARY": bad})):
            expect(done.returncode == 2 and not done.stdout,
                   f"{bad} was accepted: {done}")
    done = urxe("--adversary=1,no=1", "--", "echo", "ran")
    for option in options:
        expect(f" {option}" in done.stderr, f"{option} is not listed: {done.stderr}")
    for good in ("0", "18446744073709551615", "1,none", "1,none,loss=1000",
                 "1,loss=100%,ticks=1", "1,loss=0.5%", "sweep:2-2",
                 "1,hardware,none", "specification,1,none,loss=1"):
        done = urxe(f"--adversary={good}", "--", "echo", "ran")
        expect(done.returncode == 0 and done.stdout == "ran\n", f"{good}: {done}")
    # a random seed, which is printed
    for value in ("", "=", "=,loss=3"):
        done = urxe(f"--adversary{value}", "--", "sh", "-c",
                    "echo $URXE_ADVERSARY; exit 1")
        seed = re.search(r"seed is (\d+)\n", done.stderr)
        expect(seed and done.stdout == seed[1] + value[1:] + "\n", f"{done}")
    one = urxe("--adversary", "--", "sh", "-c", "echo $URXE_ADVERSARY")
    two = urxe("--adversary", "--", "sh", "-c", "echo $URXE_ADVERSARY")
    expect(one.stdout != two.stdout, f"the same seed twice: {one.stdout}")

    # invalid URXE_ADVERSARY without urxe run: the device is not opened, and the reason is
    # printed without URXE_LOG
    if shutil.which("ibv_devinfo"):
        done = urxe("--", "sh", "-c", "URXE_ADVERSARY=7,no=1 exec ibv_devinfo")
        expect(done.returncode and "URXE_ADVERSARY: \"no=1\"" in done.stderr,
               f"{done}")
        done = urxe("--adversary=7", "--", "ibv_devinfo")
        expect(done.returncode == 0 and "urxe0" in done.stdout, f"{done}")


def try_shown():
    """urxe doctor and urxe info show the adversary."""
    for value, want in (("", "ok    adversary: none"),
                        ("7,loss=2", "warn  adversary: URXE_ADVERSARY is 7,loss=2;"),
                        ("7,no=2", "FAIL  adversary: URXE_ADVERSARY: \"no=2\"")):
        done = subprocess.run([URXE, "doctor"], capture_output=True, text=True,
                              env=dict(ENV, URXE_ADVERSARY=value),
                              timeout=LIMIT, check=False)
        expect(want in done.stdout, f"doctor {value}: {done.stdout}")
    run = start("--adversary=7,loss=2", "--", HOLD)

    def info():
        return subprocess.run([URXE, "info"], capture_output=True, text=True,
                              env=ENV, timeout=LIMIT, check=False).stdout

    await_("no context", lambda: "shim-hold" in info())
    expect("under the adversary 7,loss=2\n" in info(), info())
    run.terminate()
    finish(run)


try:
    try_shown()
    try_statuses()
    try_signals()
    try_terminal()
    try_sweep()
    try_levels()
    try_apart()
    try_timeout()
    try_values()
finally:
    shutil.rmtree(home)
sys.exit(1 if failures else 0)
