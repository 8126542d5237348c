# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The fixture `rdma`: an RDMA device for each test, by urxe.

    def test_it(rdma):
        server = rdma.start("./server")
        server.says("listening")
        assert "ok" in rdma.run("./client", "127.0.0.1")
        server.end()

The programs of a test see one another's device, and those of another test do
not, so tests may run in parallel (pytest -n).  What a program printed is in the
report of a test that fails, and with it why urxe refused something.
"""

import os
import shutil
import signal
import subprocess
import threading
import time

import pytest

LIMIT = 60  # seconds for one program: only a hang takes longer


class Program:
    """A program that runs with the device."""

    def __init__(self, command, env):
        self.command = command
        self.text = ""
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)  # so that its children end with it
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.text += line

    def fail(self, why):
        pytest.fail(f"{' '.join(self.command)}: {why}\n{self.text}",
                    pytrace=False)

    def says(self, text):
        """Wait until it prints that."""
        end = time.monotonic() + LIMIT
        while text not in self.text:
            if not self.reader.is_alive():
                self.fail(f"ended without {text!r}")
            if time.monotonic() > end:
                self.fail(f"does not say {text!r}")
            time.sleep(0.01)

    def end(self, status=0):
        """Wait for its end; what it printed."""
        try:
            got = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.kill()
            self.fail(f"still runs after {LIMIT} s")
        self.reader.join(LIMIT)
        if got != status:
            self.fail(f"exit status {got}, not {status}")
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
        """Pull the cable ("down"), or plug it in ("up")."""
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
