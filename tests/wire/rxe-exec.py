#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Run commands in the user-mode kernel, over TCP:
  rxe-exec.py --serve ADDRESS PORT      server, the last command of its init
  rxe-exec.py ADDRESS PORT COMMAND...   client, with output and status of COMMAND

Each connection runs one command: its words are a line of JSON.  The response consists
of frames with a letter and a length: o and e are output, s is the status.  Closing the
connection kills the command.
"""
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading


def run(conn):
    with conn, conn.makefile("rb") as f:
        words = json.loads(f.readline())
        try:
            p = subprocess.Popen(words, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 start_new_session=True)
        except OSError as e:
            text = f"{words[0]}: {e.strerror}\n".encode()
            conn.sendall(b"e" + struct.pack(">I", len(text)) + text +
                         b"s" + struct.pack(">I", 127))
            return
        kinds = {p.stdout.fileno(): b"o", p.stderr.fileno(): b"e"}
        try:
            while kinds:
                for fd in select.select([*kinds, conn], [], [])[0]:
                    if fd is conn:  # the client sends nothing more: it has closed the connection
                        raise ConnectionResetError
                    data = os.read(fd, 65536)
                    if data:
                        conn.sendall(kinds[fd] + struct.pack(">I", len(data)) + data)
                    else:
                        del kinds[fd]
            status = p.wait()
            conn.sendall(b"s" + struct.pack(">I", status if status >= 0 else 128 - status))
        except OSError:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()


def serve(address, port):
    with socket.create_server((address, port), backlog=64) as s:
        print("ready", flush=True)
        while True:
            conn, _ = s.accept()
            threading.Thread(target=run, args=(conn,), daemon=True).start()


def take(f, n):
    data = f.read(n)
    if len(data) < n:
        sys.exit("rxe-exec: the kernel has gone")
    return data


def ask(address, port, words):
    with socket.create_connection((address, port), 60) as conn:
        conn.settimeout(None)
        conn.sendall(json.dumps(words).encode() + b"\n")
        f = conn.makefile("rb")
        while True:
            kind, n = struct.unpack(">cI", take(f, 5))
            if kind == b"s":
                return n
            os.write(1 if kind == b"o" else 2, take(f, n))


if sys.argv[1] == "--serve":
    serve(sys.argv[2], int(sys.argv[3]))
else:
    sys.exit(ask(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
