# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Containers as docker and podman make them, by bubblewrap: user, mount, PID,
IPC and network namespaces of their own, no capabilities, this machine's files
as a root that cannot be written, 64 MiB of /dev/shm, and the runtimes' default
seccomp filter.

The program that uses this runs as root of namespaces of its own (apart()).
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

LIMIT = 600  # seconds: only a hang takes longer
SHM = 64 << 20


def apart():
    """Go on as root of new namespaces; 77 where that is not permitted."""
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
                    pass  # the other end is down: lost


class Machine:
    """What containers share: a /dev/shm, and a file system that ends with us."""

    def __init__(self, *files):
        """files: what containers see of the host's, be it in its /tmp."""
        self.files = [w for f in files for w in ("--ro-bind", f, f)]
        self.top = tempfile.mkdtemp(prefix="machine.")
        atexit.register(os.rmdir, self.top)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.top], check=True)
        atexit.register(subprocess.run, ["umount", "-l", self.top])
        self.shm = self.make_shm()
        self.used = 0

    def make_shm(self):
        shm = tempfile.mkdtemp(dir=self.top)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SHM},mode=1777",
                        "shm", shm], check=True)
        return shm

    def name(self, what):
        self.used += 1
        return f"{self.top}/{self.used}.{what}"


class Container:
    """A running container; `run` starts a program in it."""

    def __init__(self, machine, shm=None, old=False, net=None, beside=None):
        """net: the end of the cable that it has, and its address; beside: the
        container whose network it shares."""
        self.machine = machine
        filter_ = machine.name("seccomp")
        with open(filter_, "wb") as file:
            file.write(seccomp.program(old))
        self.holder = beside.holder if beside else self.make_net()
        self.address = beside.address if beside else "127.0.0.1"
        if net:
            self.plug(*net)
        self.words = ["nsenter", "-n", "-t", str(self.holder.pid), "bash", "-c",
                      f'exec 9<{filter_}; exec "$@"', "bash",
                      *self.bwrap(shm or machine.shm), *machine.files]

    def make_net(self):
        """A process that has a network namespace of its own."""
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
        """Wait until somebody in there listens, by TCP or rdma_cm."""
        tables = [f"/proc/{self.holder.pid}/net/{n}" for n in ("tcp", "tcp6")]
        end = time.monotonic() + LIMIT
        while not any(f":{port:04X} " in line and " 0A " in line
                      for table in tables for line in open(table)):
            assert process.process.poll() is None and time.monotonic() < end, \
                f"nobody listens: {process.command}\n{process.printed()}"
            time.sleep(0.02)

    def inside(self, *words):
        subprocess.run(["nsenter", "-n", "-t", str(self.holder.pid), *words],
                       check=True)

    @staticmethod
    def bwrap(shm):
        return ["bwrap", "--die-with-parent", "--new-session", "--unshare-user",
                "--unshare-pid", "--unshare-ipc", "--unshare-uts",
                "--unshare-cgroup-try", "--uid", "1001", "--gid", "1001",
                "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc",
                "--dev", "/dev", "--bind", shm, "/dev/shm", "--tmpfs", "/tmp",
                "--tmpfs", "/run", "--chdir", "/tmp", "--seccomp", "9"]

    def start(self, *command, **env):
        """Start a command, as the first process of the container."""
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
        """Run a command to its end; what it printed."""
        return self.start(*command, **env).end(status)


class Running:
    """A container's program."""

    def __init__(self, process, command, out):
        self.process, self.command, self.out = process, command, out

    def printed(self):
        with open(self.out, errors="replace") as file:
            return file.read()

    def end(self, status=0):
        """Wait for it; what it printed.  status: several, or None: any but 0."""
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
        """With all of its container's processes."""
        self.process.kill()
        self.process.wait()

    def says(self, text):
        """Wait until it prints that."""
        end = time.monotonic() + LIMIT
        while text not in self.printed():
            assert self.process.poll() is None and time.monotonic() < end, \
                f"no {text!r}: {self.command}\n{self.printed()}"
            time.sleep(0.02)
