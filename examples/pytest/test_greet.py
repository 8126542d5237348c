# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests of an RDMA program, with the fixture of conftest.py."""

import pathlib
import subprocess

import pytest


@pytest.fixture(scope="session")
def greet(tmp_path_factory):
    """Build the program under test."""
    program = tmp_path_factory.mktemp("bin") / "greet"
    source = pathlib.Path(__file__).parent.parent / "greet.c"
    subprocess.run(["cc", "-o", program, source, "-lrdmacm", "-libverbs"],
                   check=True)
    return program


def test_greeting(rdma, greet):
    server = rdma.start(greet, "server")
    server.says("listening")
    assert "Hello, world!" in rdma.run(greet, "client", "127.0.0.1")
    server.end()


def test_no_server(rdma, greet):
    assert "refused" in rdma.run(greet, "client", "127.0.0.1", status=1)


def test_port_down(rdma, greet):
    """While the port is down the client waits; then it continues."""
    server = rdma.start(greet, "server")
    server.says("listening")
    rdma.port("down")
    client = rdma.start(greet, "client", "127.0.0.1")
    with pytest.raises(subprocess.TimeoutExpired):
        client.process.wait(0.5)
    rdma.port("up")
    assert "Hello, world!" in client.end()
    server.end()


def test_server_dies(rdma, greet):
    server = rdma.start(greet, "server")
    server.says("listening")
    server.kill()
    assert "refused" in rdma.run(greet, "client", "127.0.0.1", status=1)
