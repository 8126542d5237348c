#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""container.py URXE [VERBS-TEST...]: urxe in a container, and in two containers that
communicate (containers.py).

The given tests of the suite verbs are run in a container as well.
"""

import os
import shutil
import sys
import time

from containers import LIMIT, Cable, Container, Machine, apart

apart()
urxe = os.path.realpath(sys.argv[1])
verbs_tests = [os.path.realpath(path) for path in sys.argv[2:]]
in_fabric = os.path.realpath(os.path.dirname(__file__) + "/../in-fabric")
rping = os.path.realpath(os.path.dirname(__file__) + "/../clients/rping")
machine = Machine(os.path.dirname(os.path.dirname(urxe)),
                  os.path.dirname(in_fabric))
PINGPONG = ["ibv_rc_pingpong", "-d", "urxe0", "-g", "0"]
BOTH = """
timeout 60 ibv_rc_pingpong -d urxe0 -g 0 &
for i in {1..600}; do
	grep -q ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6 && break
	sleep 0.1
done
timeout 60 ibv_rc_pingpong -d urxe0 -g 0 127.0.0.1
wait $!
"""
SERVER, CLIENT = "10.9.0.1", "10.9.0.2"


def has(text, *wanted):
    for want in wanted:
        assert want in text, f"no {want!r} in\n{text}"


def run(container, *command, **how):
    return container.run(urxe, "run", *command, **how)


def pair(server, client, *command, port=18515, **how):
    """Run the command as server in one container and as client in the other."""
    waiting = server.start(urxe, "run", *command)
    server.listens(port, waiting)
    printed = run(client, *command, server.address, **how)
    return printed, waiting


def connected(server, client):
    """Connect with rdma_cm; retry until the server listens."""
    waiting = server.start(urxe, "run", rping, "-s", "-a", server.address,
                           "-C", "5", "-S", "60000")
    end = time.monotonic() + LIMIT
    while client.start(urxe, "run", rping, "-c", "-a", server.address,
                       "-C", "5", "-S", "60000").process.wait(LIMIT):
        assert waiting.process.poll() is None and time.monotonic() < end, \
            waiting.printed()
    waiting.end()


def writer_outlives_its_peer(server, client):
    write = ["stdbuf", "-oL", "ib_write_bw", "-d", "urxe0", "-F", "-D", "600"]
    peer = server.start(urxe, "run", *write)
    server.listens(18515, peer)
    writer = client.start(urxe, "run", *write, server.address)
    writer.says("#bytes")
    peer.kill()
    has(writer.end(None), "RETRY_EXC_ERR")


def alone(old):
    c = Container(machine, old=old)
    printed = c.run(urxe, "doctor")
    has(printed, "64 MiB", "docker run --shm-size")
    if old:
        has(printed, "process_vm_readv or _writev: Operation not permitted")
    has(run(c, "bash", "-ec", BOTH), "usec/iter")
    if old and not os.environ.get("URXE_TEST_LONG"):
        return  # the suite bounce has the same tests without process_vm_*
    for test in verbs_tests:
        print("  ", os.path.basename(test), flush=True)
        c.run(in_fabric, urxe, test, status=(0, 77))


DM = """
from pyverbs.device import AllocDmAttr, Context, DM
DM(Context(name="urxe0"), AllocDmAttr(128 << 20))
"""


def too_little_memory():
    """The error is reported, and no program gets SIGBUS."""
    python = "/usr/bin/python3"
    c = Container(machine, shm=machine.make_shm())
    if not os.system(f"{python} -c 'import pyverbs.device' 2>/dev/null"):
        has(run(c, python, "-c", DM, status=1), "ibv_alloc_dm",
            "exceeds the 16777216 bytes of device memory", "Errno: 12")
        has(run(c, python, "-c", DM, status=1, URXE_DM_SIZE="1G"),
            "ibv_alloc_dm", "no room for 134217728 bytes", "Errno: 12")
    c.run("dd", "if=/dev/zero", "of=/dev/shm/full", "bs=1M", status=1)
    has(run(c, *PINGPONG, status=1), "urxe: no device", "no room for")
    has(c.run(urxe, "doctor", status=1), "FAIL  /dev/shm", "0 of 64 MiB")


def two(old):
    cable = Cable()
    a = Container(machine, old=old, net=(cable.left, SERVER))
    b = Container(machine, old=old, net=(cable.right, CLIENT))
    for command in (PINGPONG, [*PINGPONG, "-e"],
                    ["ib_write_bw", "-d", "urxe0", "-F", "-n", "100"]):
        if not shutil.which(command[0]):
            print("   no", command[0])
            continue
        print("  ", *command, flush=True)
        _, server = pair(a, b, *command)
        server.end()

    if shutil.which("rping"):
        print("   rping", flush=True)
        connected(a, b)

    if shutil.which("ib_write_bw"):
        print("   one of them is killed", flush=True)
        writer_outlives_its_peer(a, b)

    print("   not in the same /dev/shm", flush=True)
    stranger = Container(machine, machine.make_shm(), old, next_to=b)
    printed, server = pair(a, stranger, *PINGPONG, status=1)
    has(printed + server.end(1),
        "no device of this fabric has the destination GID")


for old in (False, True):
    print("a container", "without process_vm_*" if old else "", flush=True)
    alone(old)
    print("two containers", "without process_vm_*" if old else "", flush=True)
    two(old)
print("too little memory", flush=True)
too_little_memory()
