#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""packets.py FILE.pcapng: check packets of the traces of two hosts.

Each packet is RoCE v2 over IPv4, with its payload and a correct ICRC, and each received
packet was sent before."""
import collections
import struct
import sys
import zlib


def blocks(path):
    with open(path, "rb") as f:
        data = f.read()
    at = 0
    while at < len(data):
        kind, n = struct.unpack_from("=II", data, at)
        if kind == 6:
            yield data[at + 8:at + n - 4]
        at += n


def packets(path):
    """Yield (ns, comment that says whether it was sent or received, bytes from the IP header
    on)."""
    for body in blocks(path):
        _, high, low, there, length = struct.unpack_from("=5I", body)
        if there != length:
            sys.exit(f"{path}: {there} of {length} bytes")
        end = 20 + (there + 3) // 4 * 4
        n = struct.unpack_from("=H", body, end + 2)[0]
        said = body[end + 4:end + 4 + n].decode()
        yield high << 32 | low, said, body[20 + 14:20 + there]


def check_icrc(path, said, ip):
    masked = bytearray(ip[:-4])
    for at in (1, 8, 10, 11, 26, 27, 32):
        masked[at] = 255
    icrc = zlib.crc32(b"\xff" * 8 + masked)
    got = struct.unpack("<I", ip[-4:])[0]
    if icrc != got or f"ICRC 0x{got:08x}" not in said:
        sys.exit(f"{path}: ICRC {got:#x}, not {icrc:#x}; {said}")


def load(path):
    sent, received = collections.Counter(), collections.Counter()
    times = collections.defaultdict(lambda: [2**64, 0])
    for ns, said, ip in packets(path):
        port, n = struct.unpack_from(">2H", ip, 22)
        if ip[9] != 17 or port != 4791 or n != len(ip) - 20:
            sys.exit(f"{path}: not RoCE: {ip.hex()}")
        check_icrc(path, said, ip)
        key = ip[12:20] + ip[28:]
        if " sent this packet;" in said:
            sent[key] += 1
            times[key][0] = min(ns, times[key][0])
        else:
            received[key] += 1
            times[key][1] = ns
    return sent, received, times


def main():
    sent, received, times = load(sys.argv[1])
    if not received or received - sent:
        sys.exit(f"{len(received)} packets were received, and of those "
                 f"{len(received - sent)} were not sent")
    for key in received:
        if times[key][1] < times[key][0]:
            sys.exit("a packet came before it was sent")
    print(f"{sum(sent.values())} sent, {sum(received.values())} received")


main()
