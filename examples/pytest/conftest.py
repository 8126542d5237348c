# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The fixture `rdma`: an RDMA device for each test, emulated by urxe.

    def test_it(rdma):
        server = rdma.start("./server")
        server.says("listening")
        assert "ok" in rdma.run("./client", "127.0.0.1")
        server.end()

The programs of one test can reach each other; programs of other tests cannot
reach them, so tests may run in parallel (pytest -n).  The report of a failed
test contains the output of its programs, and the reasons that urxe logged.
"""

import os
import shutil
import signal
import subprocess
import threading
import time

import pytest

LIMIT = 60  # time limit of a program, in seconds


class Program:
    """A running program that uses the device."""

    def __init__(self, command, env):
        self.command = command
        self.text = ""
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)  # its children are killed with it
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.text += line

    def fail(self, why):
        pytest.fail(f"{' '.join(self.command)}: {why}\n{self.text}",
                    pytrace=False)

    def says(self, text):
        """Wait until the program has printed @text."""
        end = time.monotonic() + LIMIT
        while text not in self.text:
            if not self.reader.is_alive():
                self.fail(f"exited without printing {text!r}")
            if time.monotonic() > end:
                self.fail(f"has not printed {text!r} within {LIMIT} s")
            time.sleep(0.01)

    def end(self, status=0):
        """Wait until the program exits.  Return its output."""
        try:
            got = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.kill()
            self.fail(f"still running after {LIMIT} s")
        self.reader.join(LIMIT)
        if got != status:
            self.fail(f"exit status {got}, expected {status}")
        return self.text

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Rdma:
    """A device, and the programs that use it."""

    device = "urxe0"

    def __init__(self, urxe, fabric):
        self.urxe, self.fabric = urxe, fabric
        lines = subprocess.run([urxe, "env", "--github", "--fabric", fabric],
                               check=True, capture_output=True, text=True)
        self.env = {**os.environ, "URXE_LOG": "1"}
        self.env.update(line.split("=", 1)
                        for line in lines.stdout.splitlines())
        self.programs = []

    def start(self, *command):
        self.programs.append(Program([str(c) for c in command], self.env))
        return self.programs[-1]

    def run(self, *command, status=0):
        return self.start(*command).end(status)

    def port(self, state):
        """Set the port of the device "down" or "up"."""
        self.run(self.urxe, "port", state)

    def close(self):
        for program in self.programs:
            program.kill()
        subprocess.run([self.urxe, "rm", self.fabric], capture_output=True)


@pytest.fixture
def rdma():
    urxe = shutil.which("urxe")
    if not urxe:
        pytest.skip("urxe is missing")
    device = Rdma(urxe, f"pytest-{os.getpid()}-{time.monotonic_ns()}")
    yield device
    device.close()
