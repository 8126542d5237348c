#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""help.py URXE COMPLETION: interactive features of the urxe command.

The shell of "urxe run" on a terminal, with each installed shell; colours; the JSON of
urxe doctor; the completion of bash."""
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile

URXE, COMPLETION = sys.argv[1:3]
LIMIT = 120

base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
home = tempfile.mkdtemp(prefix="urxe-test.", dir=base)
ENV = dict(os.environ, URXE_DIR=home, HOME=home, TERM="xterm", PS1="old> ",
           PATH=os.path.dirname(URXE) + ":" + os.environ["PATH"])
for name in ("NO_COLOR", "URXE_FABRIC", "SHELL", "XDG_DATA_HOME", "ZDOTDIR"):
    ENV.pop(name, None)
failures = []


def expect(good, what):
    if not good:
        failures.append(what)
        print("failed:", what)


def on_terminal(argv, env, typed=()):
    """Run argv on a terminal, and type each line of `typed` when the text before it has
    been printed.  Return the output."""
    pid, fd = pty.fork()
    if not pid:
        os.closerange(3, 1024)
        os.execvpe("timeout", ["timeout", "--foreground", str(LIMIT)] + argv, env)
    got, typed = b"", list(typed)
    while True:
        if typed and typed[0][0] in got:
            os.write(fd, typed.pop(0)[1] + b"\r")
        try:
            part = os.read(fd, 4096)
        except OSError:
            break
        if not part:
            break
        got += part
    os.waitpid(pid, 0)
    os.close(fd)
    return got


def try_shell(name, fabric="here"):
    path = shutil.which(name)
    if not path:
        print("not installed:", name)
        return
    prompt = b"(urxe:%s)" % fabric.encode()
    with open(os.path.join(home, ".bashrc"), "w") as f:
        f.write("own=yes; PS1='mine> '\n")
    open(os.path.join(home, ".zshrc"), "w").close()
    # otherwise fish first reads all manual pages, which takes minutes
    os.makedirs(os.path.join(home, ".local/share/fish/generated_completions"),
                exist_ok=True)
    last = b"exit"
    if name == "bash":
        last = b"readlink /proc/$$/fd/* | grep -c pipe; exit"
    got = on_terminal(
        [URXE, "run", "--fabric", fabric],
        dict(ENV, SHELL=path),
        [(prompt, b"command ls --color=never /sys/class/infiniband; echo a$own'b'"),
         (b"urxe0\r\n", last)])
    expect(prompt in got, f"{name}: no prompt: {got!r}")
    expect(b"urxe0\r\n" in got, f"{name}: no device: {got!r}")
    expect(b"in fabric " + fabric.encode() in got, f"{name}: {got!r}")
    if name == "bash":
        expect(b"ayesb" in got, f".bashrc was not read: {got!r}")
        expect(b"mine>" in got, f"the prompt of the user is lost: {got!r}")
        expect(b"\r0\r\n" in got, f"an open descriptor is inherited: {got!r}")


def try_without_terminal():
    """An empty command must fail."""
    done = subprocess.run([URXE, "run"], env=ENV, stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, timeout=LIMIT, check=False)
    expect(done.returncode == 2 and b"no command" in done.stderr, f"{done}")


def try_colours():
    doctor = [URXE, "doctor"]
    expect(b"\033[" in on_terminal(doctor, ENV), "no colour on a terminal")
    expect(b"\033[" not in on_terminal(doctor, dict(ENV, NO_COLOR="1")),
           "colour with NO_COLOR")
    expect(b"\033[" not in on_terminal(doctor, dict(ENV, TERM="dumb")),
           "colour on a dumb terminal")
    plain = subprocess.run([URXE, "doctor"], env=ENV, stdout=subprocess.PIPE,
                           timeout=LIMIT, check=False).stdout
    expect(plain and b"\033" not in plain, "colour in a file")


def doctor_json(*options, **more):
    done = subprocess.run([URXE, "doctor", "--json", *options],
                          env=dict(ENV, **more), stdout=subprocess.PIPE,
                          timeout=LIMIT, check=False)
    said = json.loads(done.stdout)
    expect((done.returncode == 1) == (said["failed"] > 0), "exit code")
    expect(said["failed"] == sum(c["verdict"] == "fail"
                                 for c in said["checks"]), "failed")
    return said["checks"]


def try_json():
    checks = doctor_json()
    names = {c["check"] for c in checks}
    for name in ("shared-memory", "libibverbs", "libraries", "yama"):
        expect(name in names, f"the check {name} is missing")
    # names with characters that JSON must escape, and invalid UTF-8
    for name in ('a "b\\c', "\u00e9\u4e2d", os.fsdecode(b"\xff\xc3("), "a\nb\x7f"):
        os.mkdir(os.path.join(home, name), 0o755)
        bad = [c for c in doctor_json(URXE_FABRIC=name)
               if c["verdict"] == "fail" and c["check"] == "fabric"]
        expect(len(bad) == 1 and "cost" in bad[0] and "mend" in bad[0],
               f"{name!r}: {bad}")
        shown = "\u00ff\u00c3(" if "\udcff" in name else name
        expect(bad and f"{home}/{shown}:" in bad[0]["found"], f"{bad}")
        os.rmdir(os.path.join(home, name))
    expect(doctor_json("--fabric", "nosuch")[0]["verdict"] == "fail", "nosuch")


def complete(*words):
    """Return the words that bash proposes for the last one of these."""
    script = (f". '{COMPLETION}'; COMP_WORDS=(\"$@\"); "
              "COMP_CWORD=$(($# - 1)); _urxe; printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "-c", script, "bash", *words], env=ENV,
                          stdout=subprocess.PIPE, timeout=LIMIT, check=True)
    return done.stdout.decode().split()


def try_completion():
    subprocess.run([URXE, "port", "up", "--fabric", "alpha"], env=ENV,
                   timeout=LIMIT, stdout=subprocess.DEVNULL, check=True)
    shown = subprocess.run([URXE, "--help"], stdout=subprocess.PIPE, env=ENV,
                           timeout=LIMIT, check=True).stdout.decode()
    commands = re.findall(r"^  (\w+)  +[A-Z]", shown, re.M)
    expect(len(commands) >= 11, f"{commands}")
    for command in commands:
        expect(complete("urxe", command[:-1]).count(command) == 1, command)
        # every option of the help, one a line
        usage = subprocess.run([URXE, command, "--help"], env=ENV, check=True,
                               stdout=subprocess.PIPE, timeout=LIMIT)
        words = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", usage.stdout.decode(),
                           re.M)
        expect(words or command == "profile", f"{command} --help lists no options")
        for word in words:
            expect(word in complete("urxe", command, word[:-1]),
                   f"{command} {word}")
        expect(usage.stdout.count(b"]\n") >= len(words),
               f"{command}: an option without a default")
        expect(max(map(len, usage.stdout.decode().splitlines())) < 80,
               f"{command} --help is wider than a terminal")
    expect(complete("urxe", "rm", "al") == ["alpha"], "a fabric's name")
    expect(complete("urxe", "run", "--fabric", "") == ["alpha"], "fabrics")
    expect(complete("urxe", "port", "d") == ["down"], "down")


try:
    for shell in ("bash", "dash", "zsh", "fish"):
        try_shell(shell)
    try_shell("bash", "$(echo no)")
    if shutil.which("bash"):
        try_without_terminal()
    try_colours()
    try_json()
    try_completion()
finally:
    shutil.rmtree(home)
sys.exit(1 if failures else 0)
