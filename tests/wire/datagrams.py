#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""datagrams.py FROM TO ADDRESS: send numbered datagrams to port 4791, from the network
namespace of one process to that of another.

Print "lost", "duplicated", "reordered" and "damaged" if some were, and "all" if all
arrived unchanged and in order.
"""
import ctypes
import os
import select
import socket
import struct
import sys
import threading
import zlib

NUMBER = 5000
CLONE_NEWNET = 0x40000000
UDP_NO_CHECK6_RX = 102
libc = ctypes.CDLL(None, use_errno=True)


def socket_of(pid, family):
    """Return a UDP socket in the network namespace of a process."""
    made = []

    def make():  # only this thread changes its namespace
        fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        if libc.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        os.close(fd)
        made.append(socket.socket(family, socket.SOCK_DGRAM))

    t = threading.Thread(target=make)
    t.start()
    t.join()
    return made[0]


def main():
    family = socket.AF_INET6 if ":" in sys.argv[3] else socket.AF_INET
    sender, receiver = socket_of(sys.argv[1], family), socket_of(sys.argv[2], family)
    if family == socket.AF_INET6:
        receiver.setsockopt(17, UDP_NO_CHECK6_RX, 1)
    receiver.bind((sys.argv[3], 4791))
    receiver.setblocking(False)
    seen, last, words = {}, -1, set()

    def take():
        nonlocal last
        while True:
            try:
                data = receiver.recv(2048)
            except BlockingIOError:
                return
            body = data[:-4]
            if struct.pack("<I", zlib.crc32(body)) != data[-4:]:
                words.add("damaged")
                continue
            n = struct.unpack_from("<I", body)[0]
            if n == NUMBER:
                end.set()
                continue
            if n in seen:
                words.add("duplicated")
            elif n < last:
                words.add("reordered")
            seen[n] = True
            last = max(last, n)

    end = threading.Event()

    def send(n):
        body = struct.pack("<I", n) + bytes(100)
        sender.sendto(body + struct.pack("<I", zlib.crc32(body)), (sys.argv[3], 4791))

    for n in range(NUMBER):
        send(n)
        if n % 50 == 49:  # so many fit into the socket
            take()
    while not end.is_set():  # behind all others, and lost once in a while
        send(NUMBER)
        select_a_moment(receiver)
        take()
    while select_a_moment(receiver):
        take()
    if len(seen) < NUMBER:
        words.add("lost")
    print(" ".join(sorted(words)) or "all")


def select_a_moment(s):
    return select.select([s], [], [], 0.2)[0]


main()
