# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Containers like those of docker and podman, made with bubblewrap: separate user,
mount, PID, IPC and network namespaces, no capabilities, the files of this machine as
a read-only root, 64 MiB of /dev/shm, and the default seccomp filter of the runtimes.

The program that uses this module runs as root in its own namespaces (apart()).
"""

import atexit
import fcntl
import os
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time

import seccomp

LIMIT = 600  # time limit of a program, in seconds
SHM = 64 << 20


def apart():
    """Execute this program again as root in new namespaces.  Exit with 77 if these are
    not permitted."""
    if os.environ.get("URXE_TEST_APART"):
        return
    words = ["unshare", "-Urnmp", "--fork", "--kill-child", "--mount-proc"]
    for probe in (words + ["true"], ["bwrap", "--version"],
                  ["ip", "-Version"], ["test", "-c", "/dev/net/tun"]):
        try:
            subprocess.run(probe, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print("SKIP:", error)
            sys.exit(77)
    os.environ["URXE_TEST_APART"] = "1"
    os.execvp(words[0], [*words, sys.executable, *sys.argv])


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Cable:
    """An Ethernet cable between two network namespaces."""

    made = 0

    def __init__(self):
        Cable.made += 1
        self.left, self.right = f"left{self.made}", f"right{self.made}"
        self.ends = [self.tap(self.left), self.tap(self.right)]
        threading.Thread(target=self.carry, daemon=True).start()

    @staticmethod
    def tap(name):
        end = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        tap_without_header = 0x1002
        fcntl.ioctl(end, 0x400454ca,  # TUNSETIFF
                    struct.pack("16sH22x", name.encode(), tap_without_header))
        return end

    def carry(self):
        there = dict(zip(self.ends, self.ends[::-1]))
        while True:
            for end in select.select(self.ends, [], [])[0]:
                try:
                    os.write(there[end], os.read(end, 65536))
                except OSError:
                    pass  # the other end is down: the packet is lost


class Machine:
    """Common parts of containers: a /dev/shm, and a file system that is removed at exit."""

    def __init__(self, *files):
        """files: files of the host that containers see, also if they are in /tmp."""
        self.files = [w for f in files for w in ("--ro-bind", f, f)]
        self.top = tempfile.mkdtemp(prefix="machine.")
        atexit.register(os.rmdir, self.top)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.top], check=True)
        atexit.register(subprocess.run, ["umount", "-l", self.top])
        self.shm = self.make_shm()
        self.used = 0

    def make_shm(self, size=SHM, mode="1777"):
        shm = tempfile.mkdtemp(dir=self.top)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode={mode}",
                        "shm", shm], check=True)
        return shm

    def name(self, what):
        self.used += 1
        return f"{self.top}/{self.used}.{what}"


class Container:
    """A running container; `run` runs a program in it."""

    def __init__(self, machine, shm=None, old=False, net=None, next_to=None,
                 user=1001, more=()):
        """net: its end of a cable, and its address; next_to: a container whose network
        it shares; more: further words for bubblewrap."""
        self.machine = machine
        filter_ = machine.name("seccomp")
        with open(filter_, "wb") as file:
            file.write(seccomp.program(old))
        self.holder = next_to.holder if next_to else self.make_net()
        self.address = next_to.address if next_to else "127.0.0.1"
        if net:
            self.plug(*net)
        self.words = ["nsenter", "-n", "-t", str(self.holder.pid), "bash", "-c",
                      f'exec 9<{filter_}; exec "$@"', "bash",
                      *self.bwrap(shm or machine.shm, str(user)), *machine.files,
                      *more]

    def make_net(self):
        """Start a process in a new network namespace."""
        ours = os.stat("/proc/self/ns/net").st_ino
        self.holder = subprocess.Popen(["unshare", "-n", "cat"],
                                       stdin=subprocess.PIPE)
        while os.stat(f"/proc/{self.holder.pid}/ns/net").st_ino == ours:
            time.sleep(0.01)
        self.inside("ip", "link", "set", "lo", "up")
        return self.holder

    def plug(self, end, address):
        self.address = address
        ip("link", "set", end, "netns", str(self.holder.pid))
        self.inside("ip", "link", "set", end, "name", "eth0")
        self.inside("ip", "addr", "add", address + "/24", "dev", "eth0")
        self.inside("ip", "link", "set", "eth0", "up")

    def listens(self, port, process):
        """Wait until a process in the container listens, over TCP or rdma_cm."""
        tables = [f"/proc/{self.holder.pid}/net/{n}" for n in ("tcp", "tcp6")]
        end = time.monotonic() + LIMIT
        while not any(f":{port:04X} " in line and " 0A " in line
                      for table in tables for line in open(table)):
            assert process.process.poll() is None and time.monotonic() < end, \
                f"the server does not listen: {process.command}\n{process.printed()}"
            time.sleep(0.02)

    def inside(self, *words):
        subprocess.run(["nsenter", "-n", "-t", str(self.holder.pid), *words],
                       check=True)

    @staticmethod
    def root():
        """The files of this machine, in a root in which mount points can be made."""
        words = []
        for entry in os.scandir("/"):
            if entry.is_symlink():
                words += ["--symlink", os.readlink(entry.path), entry.path]
            elif entry.name not in ("dev", "opt", "proc", "run", "tmp"):
                words += ["--ro-bind", entry.path, entry.path]
        return words

    @classmethod
    def bwrap(cls, shm, user):
        return ["bwrap", "--die-with-parent", "--new-session", "--unshare-user",
                "--unshare-pid", "--unshare-ipc", "--unshare-uts",
                "--unshare-cgroup-try", "--uid", user, "--gid", user,
                "--cap-drop", "ALL", *cls.root(), "--proc", "/proc",
                "--dev", "/dev", "--bind", shm, "/dev/shm", "--tmpfs", "/tmp",
                "--tmpfs", "/run", "--chdir", "/tmp", "--seccomp", "9"]

    def start(self, *command, **env):
        """Start a command as the first process of the container."""
        out = self.machine.name("out")
        now = {k: v for k, v in os.environ.items()
               if not k.startswith(("URXE_", "LD_"))}
        now.update(HOME="/tmp", TMPDIR="/tmp", URXE_LOG="1", **env)
        with open(out, "wb") as to:
            process = subprocess.Popen([*self.words, *command], env=now,
                                       stdin=subprocess.DEVNULL, stdout=to,
                                       stderr=to)
        return Running(process, command, out)

    def run(self, *command, status=0, **env):
        """Run a command.  Return its output."""
        return self.start(*command, **env).end(status)


class Running:
    """A program in a container."""

    def __init__(self, process, command, out):
        self.process, self.command, self.out = process, command, out

    def printed(self):
        with open(self.out, errors="replace") as file:
            return file.read()

    def end(self, status=0):
        """Wait for the program.  Return its output.  status: the expected exit status, a tuple
        of them, or None for any but 0."""
        try:
            got = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"hangs: {self.command}\n{self.printed()}")
        wanted = (status,) if isinstance(status, int) else status
        fine = got in wanted if wanted else got != 0
        assert fine, f"status {got}: {self.command}\n{self.printed()}"
        return self.printed()

    def kill(self):
        """Kill all processes of the container."""
        self.process.kill()
        self.process.wait()

    def says(self, text):
        """Wait until the program has printed @text."""
        end = time.monotonic() + LIMIT
        while text not in self.printed():
            assert self.process.poll() is None and time.monotonic() < end, \
                f"no {text!r}: {self.command}\n{self.printed()}"
            time.sleep(0.02)
