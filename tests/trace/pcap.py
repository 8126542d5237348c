#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""urxe trace --pcap: packets as decoded by tshark, and checks that tshark does not do.
tests/trace/fields contains, for each client, fields of tshark and all their values
("*": any value, but the field must exist).
Usage: pcap.py URXE TRACED [CASE...]"""

import os
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
RPING = os.path.join(HERE, "..", "clients", "rping")
TSHARK = shutil.which("tshark")
ETHERTYPES = {0x0800: 4, 0x86dd: 6, 0x8915: 1}
# size of the extended headers, by the low five bits of the opcode
EXTENSIONS = {0x03: 4, 0x05: 4, 0x06: 16, 0x09: 4, 0x0a: 16, 0x0b: 20,
              0x0c: 16, 0x0d: 4, 0x0f: 4, 0x10: 4, 0x11: 4, 0x12: 12,
              0x13: 28, 0x14: 28, 0x16: 4, 0x17: 4, 0x1c: 20, 0x1d: 16}
failed = []


def expect(what, is_so, said=""):
    if not is_so:
        failed.append(what)
        print(f"FAILED: {what}\n{said}")


# ------------------------------------------------------------------ the file

def options(body):
    found, at = [], 0
    while at < len(body):
        code, n = struct.unpack_from("=HH", body, at)
        found.append((code, body[at + 4:at + 4 + n]))
        at += 4 + (n + 3) // 4 * 4
        if not code:
            break
    expect("options fill their block", at == len(body) and
           (not found or found[-1] == (0, b"")), body)
    return found


def read_pcapng(path):
    """Return (ns, bytes, comment, interface) of each packet; check that all lengths
    agree, and that the interfaces precede the packets."""
    with open(path, "rb") as f:
        data = f.read()
    at, kinds, packets, interfaces = 0, [], [], []
    while at < len(data):
        kind, n = struct.unpack_from("=II", data, at)
        expect("a block's length stands twice", n % 4 == 0 and n >= 12 and
               data[at + n - 4:at + n] == struct.pack("=I", n), (at, n))
        body = data[at + 8:at + n - 4]
        kinds.append(kind)
        if kind == 0x0a0d0d0a:
            expect("section", body[:4] == struct.pack("=I", 0x1a2b3c4d))
            options(body[16:])
        elif kind == 1:
            named = dict(options(body[8:]))
            expect("an interface of ns", named[9] == b"\x09" and named[3],
                   named)
            link, reserved = struct.unpack("=HH", body[:4])
            expect("of Ethernet or ERF", link in (1, 197) and not reserved,
                   body)
            interfaces.append((named[2].decode(), link))
        else:
            number_of, high, low, there, length = struct.unpack_from("=5I", body)
            text = dict(options(body[20 + (there + 3) // 4 * 4:]))
            expect("a whole packet", kind == 6 and there == length, kind)
            packets.append((high << 32 | low, body[20:20 + there],
                            text[1].decode(), interfaces[number_of]))
        at += n
    expect("one section, interfaces, packets", kinds == sorted(
        kinds, key=[0x0a0d0d0a, 1, 6].index) and kinds.count(0x0a0d0d0a) == 1
        and kinds.count(1) == len(set(interfaces)) >= 1, (interfaces, kinds))
    times = [p[0] for p in packets]
    expect("in the order of time", times == sorted(times))
    expect("of today", all(abs(t / 1e9 - time.time()) < 3600 for t in times))
    return packets


def vcrc(data):
    """The variant CRC of IB 7.8.2, x^16 + x^12 + x^3 + x + 1, bit by bit."""
    crc = 0xffff
    for bit in (byte >> i & 1 for byte in data for i in range(8)):
        crc = crc >> 1 ^ (0xd008 if (crc ^ bit) & 1 else 0)
    return crc ^ 0xffff


class Packet:
    """A RoCE or InfiniBand packet, decoded according to the specification, without the
    tables of urxe."""

    def __init__(self, ns, raw, comment, interface):
        self.ns, self.comment = ns, comment
        self.interface, self.link = interface
        if self.link == 197:
            self.infiniband(raw)
            return
        kind = ETHERTYPES[struct.unpack_from(">H", raw, 12)[0]]
        ip = bytearray(raw[14:])
        self.version = kind
        self.head = 20 if kind == 4 else 40
        if kind == 4:
            self.check_ipv4(ip)
        else:
            expect("IPv6's length", struct.unpack_from(">H", ip, 4)[0] ==
                   len(ip) - 40, ip.hex())
        if kind != 1:
            self.check_udp(ip)
        self.check_icrc(ip)
        self.transport(bytes(ip[self.head + (0 if kind == 1 else 8):]))

    def infiniband(self, raw):
        """Decode an ERF record of an InfiniBand packet."""
        ib = raw[16:]
        time, kind, flags = struct.unpack("<QBB", raw[:10])
        record, lost, wire = struct.unpack(">HHH", raw[10:16])
        expect("ERF of InfiniBand", (kind, flags, lost) == (21, 4, 0) and
               record == len(raw) and wire == len(ib), raw[:16])
        ns = (time >> 32) * 10**9 + ((time & 0xffffffff) * 10**9 + 2**31 >> 32)
        expect("its time", ns == self.ns, (ns, self.ns))
        self.sl, self.next = ib[1] >> 4, ib[1] & 3
        self.dlid, words, self.slid = struct.unpack(">HHH", ib[2:8])
        expect("LRH", ib[0] == 0 and ib[1] & 12 == 0 and
               4 * words == len(ib) - 2 and self.next in (2, 3), ib[:8])
        masked = bytearray(ib[:-6])
        bth = 8
        if self.next == 3:  # IB 7.8.1: what routers change
            self.grh = bytes(ib[8:48])
            expect("GRH", ib[8] >> 4 == 6 and ib[14] == 0x1b and
                   struct.unpack(">H", ib[12:14])[0] == len(ib) - 50, self.grh)
            bth = 48
            masked[:8] = b"\xff" * 8
            masked[8] |= 15
            masked[9:12] = b"\xff" * 3
            masked[15] = 255
        else:
            self.grh = None
            masked[0] |= 0xf0
        masked[bth + 4] = 255
        expect("ICRC", struct.pack("<I", zlib.crc32(masked)) == ib[-6:-2],
               ib.hex())
        expect("VCRC", struct.pack("<H", vcrc(ib[:-2])) == ib[-2:], ib.hex())
        self.pkey, = struct.unpack(">H", ib[bth + 2:bth + 4])
        self.transport(bytes(ib[bth:-2]))

    @staticmethod
    def check_ipv4(ip):
        total = sum(struct.unpack(">10H", ip[:20]))
        total = (total & 0xffff) + (total >> 16)
        expect("IPv4's header", (total & 0xffff) + (total >> 16) == 0xffff and
               struct.unpack_from(">H", ip, 2)[0] == len(ip), ip.hex())

    def check_udp(self, ip):
        source, port, n, _ = struct.unpack_from(">4H", ip, self.head)
        expect("UDP", port == 4791 and source >= 0xc000 and
               n == len(ip) - self.head, (source, port, n))

    def check_icrc(self, ip):
        masked = ip[:-4]
        if self.version == 4:
            masked[1] = masked[8] = masked[10] = masked[11] = 255
        else:
            masked[0] |= 15
            masked[1:4] = b"\xff" * 3
            masked[7] = 255
        bth = self.head
        if self.version != 1:
            masked[bth + 6:bth + 8] = b"\xff\xff"
            bth += 8
        masked[bth + 4] = 255
        crc = struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked))
        expect("ICRC", crc == ip[-4:], (ip.hex(), crc.hex()))

    def transport(self, ib):
        self.opcode, flags, _, self.qpn, psn = struct.unpack(">BBHII", ib[:12])
        self.psn, self.ack = psn & 0xffffff, bool(psn >> 31)
        self.solicited = bool(flags >> 7)
        self.kind, self.op = self.opcode >> 5, self.opcode & 31
        more = EXTENSIONS.get(self.op, 0) + {3: 8, 5: 4}.get(self.kind, 0)
        if self.kind == 5 and 0x0d <= self.op <= 0x12:
            more -= 4  # answers have no XRCETH
        self.extensions = ib[12:12 + more]
        self.payload = ib[12 + more:len(ib) - 4 - (flags >> 4 & 3)]

    @property
    def syndrome(self):
        is_answer = 0x0d <= self.op <= 0x12 and self.op != 0x0e
        return self.extensions[0] if is_answer else None


# ------------------------------------------------------------------ tshark

def tshark(path, *words):
    done = subprocess.run([TSHARK, "-r", path, *words], text=True,
                          capture_output=True, timeout=120)
    expect(f"tshark {words}", done.returncode == 0, done.stderr)
    return done.stdout


# expert infos of tshark that are no errors
HARMLESS = {"Comment", "\"Time To Live\" only 1"}


def number(text):
    """The value of a field as an int if it is a number or a boolean.

    tshark 4.0 prints a boolean as 0 or 1, tshark 4.4 as False or True.
    """
    if text in ("False", "True"):
        return int(text == "True")
    try:
        return int(text, 0)
    except ValueError:
        return text


def check_decoded(name, path, *how):
    """Check that tshark finds no error, and the fields of the list."""
    if not TSHARK:
        return
    with open(os.path.join(HERE, "fields", name), encoding="utf-8") as f:
        wanted = dict((line.split()[0], line.split()[1:]) for line in f
                      if line.strip() and line[0] != "#")
    names = ["_ws.malformed", "_ws.expert.message", *wanted]
    words = [word for field in names for word in ("-e", field)]
    rows = [line.split("\t") for line in tshark(
        path, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|",
        *words, *how).splitlines()]
    expect(f"{name}: none is malformed", rows and not any(r[0] for r in rows),
           rows)
    for row in rows:
        said = [text for text in row[1].split("|") if text and
                text not in HARMLESS and not text.startswith("Comment") and
                " WR 0x" not in text and " CM " not in text]
        expect(f"{name}: no complaint", not said, said)
    for i, (field, values) in enumerate(wanted.items()):
        found = {number(v) for r in rows for v in r[i + 2].split("|") if v}
        expect(f"{name}: {field} is {values}", found and
               (values == ["*"] or found == set(map(number, values))),
               found)


# ------------------------------------------------------------------ programs

def free_port():
    with socket.socket(socket.AF_INET6) as s:
        s.bind(("::", 0))
        return str(s.getsockname()[1])


def run(trace, *words, options=("--trace-payload",), **more):
    return subprocess.run([URXE, "run", "--trace", trace, *options, "--",
                           *words], text=True, capture_output=True, **more)


def pair(trace, server, client, options=("--trace-payload",)):
    """Run both programs with one trace; retry the client until the server listens.
    Return their output: (server, client)."""
    script = """
        eval "$SERVER" >"$OUT.server" 2>&1 & pid=$!
        until eval "$CLIENT" >"$OUT.client" 2>&1; do
            kill -0 $pid || exit 1
            sleep 0.05
        done
        wait $pid"""
    done = run(trace, "sh", "-c", script, options=options, timeout=120,
               env={**os.environ, "OUT": trace, "SERVER": server,
                    "CLIENT": client})
    said = []
    for end in "server", "client":
        with open(f"{trace}.{end}", encoding="utf-8") as f:
            said.append(f.read())
    expect(f"{server}", done.returncode == 0, (done, said))
    return said


def pcap(trace):
    out = f"{trace}.pcapng"
    done = subprocess.run([URXE, "trace", "--pcap", out, trace], text=True,
                          capture_output=True, timeout=120)
    expect("urxe trace --pcap", done.returncode == 0, done.stderr)
    return out, [Packet(*p) for p in read_pcapng(out)], done.stderr


def client(trace, name, words):
    """Run a program as server and client.  Return its packets, and the output of the
    server and of the client."""
    if not shutil.which(name):
        print(f"skipped: {name} is not installed")
        return None
    words = f"{name} -p {free_port()} {words}"
    said = pair(trace, words, f"{words} localhost")
    out, packets, _ = pcap(trace)
    check_decoded(name, out)
    expect("one device is one interface",
           {(p.interface, p.link) for p in packets} == {("urxe0", 1)}, packets)
    return packets, *said


def addresses(said, pattern):
    """Return the values that a client prints for both ends."""
    return [[int(x, 16) for x in found] for found in
            re.findall(pattern, said)]


PINGPONG = r"address: .*QPN 0x(\w+), PSN 0x(\w+)"


def sent_to(packets, qpn, ops):
    return [p for p in packets if p.qpn == qpn and p.op in ops]


def check_messages(what, messages, psn, sizes):
    """Check consecutive PSNs, AckReq in the last packet, and all lengths."""
    expect(f"{what}: PSNs", [p.psn for p in messages] ==
           [(psn + i) & 0xffffff for i in range(len(messages))],
           [hex(p.psn) for p in messages])
    expect(f"{what}: lengths", [len(p.payload) for p in messages] == sizes,
           [len(p.payload) for p in messages])


def rc_pingpong(trace):
    done = client(trace, "ibv_rc_pingpong", "-g 1 -n 5 -s 3500")
    if not done:
        return
    packets, _, said = done
    (mine, my_psn), (other, other_psn) = addresses(said, PINGPONG)
    for qpn, psn, back in ((other, my_psn, mine), (mine, other_psn, other)):
        there = sent_to(packets, qpn, (0, 1, 2))
        check_messages("pingpong", there, psn, 5 * [1024, 1024, 1024, 428])
        expect("AckReq on the last one", [p.ack for p in there] ==
               5 * [False, False, False, True])
        acks = sent_to(packets, back, [0x11])
        expect("five ACKs, by their MSN, of the last PSN",
               [(p.syndrome, int.from_bytes(p.extensions[1:], "big"), p.psn)
                for p in acks] == [(31, i, (psn + 4 * i - 1) & 0xffffff)
                                   for i in range(1, 6)], acks)
    expect("no others", len(packets) == 50, len(packets))
    first = [p for p in packets if p.op == 0]
    expect("the program's bytes, as far as they are recorded", all(
        p.payload == b"\x7b" * 256 + bytes(768) or
        p.payload == b"\x7c" * 256 + bytes(768) or
        p.payload[256:] == bytes(768) and any(p.payload[:256])
        for p in first), first[0].payload[:8])
    expect("comments have the WR, the program and the recorded length", all(
        "WR 0x" in p.comment and p.comment.startswith("ibv_rc_pingpong[") and
        "the first 256 bytes" in p.comment for p in first), first[0].comment)


def ud_pingpong(trace):
    done = client(trace, "ibv_ud_pingpong", "-g 3 -n 5 -s 100")
    if not done:
        return
    packets, _, said = done
    (mine, my_psn), (other, other_psn) = addresses(said, PINGPONG)
    for qpn, psn, back in ((other, my_psn, mine), (mine, other_psn, other)):
        there = sent_to(packets, qpn, [4])
        check_messages("datagrams", there, psn, 5 * [100])
        expect("Q_Key and QPN", all(p.kind == 3 and p.extensions ==
                                    struct.pack(">II", 0x11111111, back)
                                    for p in there), there)
    expect("IPv4", all(p.version == 4 for p in packets) and
           len(packets) == 10, len(packets))


PERFTEST = r"address: .*QPN 0x(\w+) PSN 0x(\w+)"


def atomic_lat(trace):
    done = client(trace, "ib_atomic_lat", "-n 5")
    if not done:
        return
    packets, _, said = done
    (mine, my_psn), (other, _) = addresses(said, PERFTEST)
    asked = sent_to(packets, other, [0x14])
    answers = sent_to(packets, mine, [0x12])
    check_messages("atomics", asked, my_psn, 5 * [0])
    expect("FETCH & ADD of 1", all(p.extensions[12:20] ==
                                   struct.pack(">Q", 1) for p in asked))
    found = [int.from_bytes(p.extensions[4:], "big") for p in answers]
    expect("each finds one more", len(found) == 5 and
           found == list(range(found[0], found[0] + 5)), found)


def read_bw(trace):
    done = client(trace, "ib_read_bw", "-n 5 -s 10000 -m 1024")
    if not done:
        return
    packets, _, said = done
    ends = addresses(said, PERFTEST + r".*RKey 0x(\w+) VAddr 0x(\w+)")
    (mine, my_psn, _, _), (other, _, rkey, addr) = ends
    asked = sent_to(packets, other, [0x0c])
    expect("a READ takes a PSN for each packet of its response",
           [p.psn for p in asked] ==
           [(my_psn + 10 * i) & 0xffffff for i in range(5)],
           [p.psn for p in asked])
    expect("what the server told of its memory", all(
        p.extensions[8:] == struct.pack(">II", rkey, 10000) and
        0 <= int.from_bytes(p.extensions[:8], "big") - addr < 1 << 20
        for p in asked), [p.extensions.hex() for p in asked])
    answers = sent_to(packets, mine, (0x0d, 0x0e, 0x0f))
    check_messages("responses", answers, my_psn, 5 * (9 * [1024] + [784]))
    expect("an AETH with the first and the last", [p.op for p in answers] ==
           5 * ([0x0d] + 8 * [0x0e] + [0x0f]), answers)


def rping(trace):
    if not shutil.which("rping"):
        return
    port = free_port()
    words = f"-a 127.0.0.1 -p {port} -C 2"
    pair(trace, f"{RPING} -s {words}", f"{RPING} -c {words}")
    out, packets, _ = pcap(trace)
    check_decoded("rping", out)
    expect("READs and WRITEs of the same bytes, and SENDs of 16",
           {p.op for p in packets if p.kind == 0} ==
           {0x04, 0x0a, 0x0c, 0x10, 0x11}, packets)
    brought = [p.payload for p in packets if p.op == 0x10]
    written = [p.payload for p in packets if p.op == 0x0a]
    expect("rping's text", len(brought) == 2 and brought == written and
           all(b"rdma-ping-" in b for b in brought), brought)


# ------------------------------------------------------------------ other operations

def traced(trace, mode, *words, options=("--trace-payload",)):
    done = run(trace, TRACED, mode, *words, options=options)
    expect(f"traced {mode}", done.returncode == 0, done)
    out, packets, said = pcap(trace)
    # tshark guesses the protocol of a payload, and takes eight bytes for RPC over RDMA
    check_decoded(f"traced-{mode}", out, "--disable-protocol", "rpcordma")
    return packets, said


def kinds(trace):
    """Operations that those clients do not use."""
    packets, _ = traced(trace, "kinds", options=["--trace-payload=4096"])
    ops = [p.op for p in packets if p.op != 0x11]
    expect("their packets, in order", ops[:20] == [
        0x06, 0x07, 0x09,  # WRITE WITH IMM
        0x00, 0x01, 0x03,  # SEND WITH IMM
        0x05, 0x0b,
        0x0c, 0x0d, 0x0e, 0x0f,
        0x13, 0x12, 0x14, 0x12,
        0x0a, 0x0c, 0x10,  # of nothing
        0x1d], [hex(op) for op in ops])
    imms = [p.extensions[-4:].hex() for p in packets
            if p.op in (0x09, 0x03, 0x05, 0x0b)]
    expect("immediates", imms == 4 * ["12345678"], imms)
    whole = b"".join(p.payload for p in packets if p.op in (0, 1, 3))
    expect("its 3000 bytes", len(whole) == 3000 and
           whole == b"".join(p.payload for p in packets
                             if p.op in (6, 7, 9))[:3000], len(whole))
    expect("and those that a READ brought", whole == b"".join(
        p.payload for p in packets if p.op in (0xd, 0xe, 0xf)), len(whole))
    long = [p for p in packets if "of 200" in p.comment]
    expect("of a long message the beginning and the end",
           len(long) == 64 and (long[-1].psn - long[0].psn) & 0xffffff == 199
           and ["are left out" in p.comment for p in long].count(True) == 1 and
           "136 packets before this one are left out" in long[32].comment,
           [p.comment for p in long])


def waiting(trace):
    """A peer that is not ready, RNR NAKs, and other NAKs."""
    packets, _ = traced(trace, "packets")
    first = [p for p in packets if p.op in (0x06, 0x07, 0x08)]
    expect("the message is retransmitted until the peer is ready", len(first) >= 6 and
           len(first) % 3 == 0 and len({p.psn for p in first}) == 3,
           [p.psn for p in first])
    expect("and then there is an ACK", [p.syndrome for p in packets
                                        if p.op == 0x11][:1] == [31])
    expect("only a receive can be a solicited event",
           {p.op for p in packets if p.solicited} == {4}, packets)
    expect("an SRQ's number", any(p.kind == 5 and len(p.extensions) == 4
                                  for p in packets), packets)


def refused(trace):
    packets, _ = traced(trace, "wrong")
    said = [p.syndrome for p in packets if p.syndrome is not None]
    # min_rnr_timer is 1, rnr_retry 1; then an invalid key
    expect("RNR NAKs, then a NAK of the access", said[:2] == [0x21, 0x21] and
           0x62 in said, said)
    rnr = [p for p in packets if p.op == 4][:2]
    expect("the message without a receive was sent twice", len(rnr) == 2 and
           rnr[0].psn == rnr[1].psn, rnr)
    packets, _ = traced(trace, "psn")
    sent = [p for p in packets if p.op == 0x0a]
    naks = [p for p in packets if p.op == 0x11]
    expect("a wrong PSN gets a NAK with the expected PSN", sent and naks and
           {p.syndrome for p in naks} == {0x60} and
           {p.psn for p in naks} == {(sent[0].psn + 1) & 0xffffff},
           [(p.syndrome, p.psn) for p in packets])


def version_1(trace):
    """RoCE v1, and no payload."""
    done = run(trace, TRACED, "writes", "3", options=())
    expect("writes", done.returncode == 0, done)
    out, packets, _ = pcap(trace)
    check_decoded("traced-writes", out)
    expect("a GRH, and zeros that the comment mentions", len(packets) == 6 and
           all(p.version == 1 for p in packets) and all(
               p.payload == bytes(8) and p.comment.endswith(
                   "the payload is not recorded, and is zeros")
               for p in packets if p.op == 0x0a), packets)
    done = subprocess.run([URXE, "trace", "--pcap", "/dev/full", trace],
                          text=True, capture_output=True)
    expect("a full disk", done.returncode == 1 and "space" in done.stderr,
           done)


def names(trace):
    """Names of programs need not be UTF-8; texts in pcapng must be."""
    program = os.path.join(os.fsencode(os.path.dirname(trace)),
                           b"n\xc3\xa4\xff")
    os.symlink(os.path.realpath(TRACED), program)
    done = run(trace, program, "writes", "1")
    expect("a name", done.returncode == 0, done)
    _, packets, _ = pcap(trace)
    expect("what is none is another character", packets and all(
        p.comment.startswith("n\u00e4?[") for p in packets),
        [p.comment for p in packets])


def in_flight(trace):
    """Several atomics are executed before the first response."""
    if not shutil.which("ib_atomic_bw"):
        return
    words = f"ib_atomic_bw -p {free_port()} -n 50"
    pair(trace, words, f"{words} localhost", options=["--adversary=3"])
    _, packets, _ = pcap(trace)
    found = [int.from_bytes(p.extensions[4:], "big") for p in packets
             if p.op == 0x12]
    text = subprocess.run([URXE, "trace", trace], text=True,
                          capture_output=True).stdout
    expect("each response has what its atomic found", len(found) == 50 and
           found == [int(old, 16) for old in re.findall(
               r" fetched .* old=0x(\w+)", text)], found)


def damage(trace):
    """Damage the trace at random: it is converted or refused."""
    with open(trace, "rb") as f:
        good = f.read()
    some = random.Random(2)
    for i in range(60):
        bad = bytearray(good)
        for _ in range(some.randrange(1, 60)):
            at = some.randrange(8192, min(len(bad), 8192 + 64 * 300))
            bad[at] = some.choice([0, 255, some.randrange(256)])
        with open(trace, "wb") as f:
            f.write(bad)
        done = subprocess.run([URXE, "trace", "--pcap", f"{trace}.out", trace],
                              capture_output=True, timeout=60)
        expect(f"damage {i} is no crash", done.returncode in (0, 1), done)


def damaged(trace):
    done = run(trace, TRACED, "kinds")
    expect("kinds", done.returncode == 0, done)
    damage(trace)


def lost(trace):
    """The start of the records was overwritten; the connection of a QP has its own ring."""
    done = run(trace, TRACED, "writes", "5000",
               options=["--trace-records", "1000"])
    expect("writes", done.returncode == 0, done)
    _, packets, said = pcap(trace)
    expect("it is not overwritten with the rest", packets and
           "not in the trace" not in said, said)
    with open(trace, "r+b") as f:
        slots, = struct.unpack("I", f.read(16)[12:])
        f.seek(4096 + 4096 + 64 * slots)
        magic = f.read(8)
        f.seek(-8, os.SEEK_CUR)
        f.write(bytes(8))
    expect("there is a second ring", magic[:6] == b"xtring", magic)
    _, packets, said = pcap(trace)
    expect("that is reported, and no packet is invented", not packets and
           "not in the trace" in said, said)


# ------------------------------------------------------------------ several devices

RAILS = os.path.join(HERE, "..", "..", "examples", "clusters",
                     "rail-isolated.cluster")
ADDRESSES = {"10.0.0.1": "alice/mlx5_0", "10.0.1.1": "alice/mlx5_1",
             "10.0.0.2": "bob/mlx5_0", "10.0.1.2": "bob/mlx5_1"}


def rails(trace, server, client):
    """Run programs of two hosts in a fabric of their own."""
    return pair(trace, f"URXE_HOST=bob {server}", f"URXE_HOST=alice {client}",
                options=["--fabric", "rails", "--cluster", RAILS])


def decoded(path, *fields, only=""):
    """Return a list of the fields' values for each packet."""
    words = [word for field in fields for word in ("-e", field)]
    return [line.split("\t") for line in tshark(
        path, "-T", "fields", "-Y", only, *words).splitlines()]


def devices(trace):
    """Each packet is in the interface of the device that sends it."""
    if not shutil.which("rping") or not shutil.which("ibv_rc_pingpong"):
        return
    rping_words = f"-a 10.0.1.2 -p {free_port()} -C 2"
    words = f"ibv_rc_pingpong -d mlx5_0 -g 3 -n 3 -p {free_port()}"
    rails(trace, f"sh -c '{RPING} -s {rping_words} && {words}'",
          f"sh -c '{RPING} -c {rping_words} && "
          f"until {words} localhost; do sleep 0.05; done'")
    out, packets, _ = pcap(trace)
    expect("a device of each end, of both programs",
           {p.interface for p in packets} == set(ADDRESSES.values()),
           {p.interface for p in packets})
    if not TSHARK:
        return
    rows = decoded(out, "ip.src", "frame.interface_name",
                   "frame.interface_description", "infiniband.bth.destqp")
    expect("tshark: the address and the interface are of one device", rows and
           all(name == ADDRESSES[source] and
               description == f"urxe trace: packets that {name} would have sent"
               for source, name, description, _ in rows), rows)
    expect("also messages of the CM", {name for _, name, _, qpn in rows
                                       if number(qpn) == 1} ==
           {"alice/mlx5_1", "bob/mlx5_1"}, rows)
    text = subprocess.run([URXE, "trace", trace], text=True,
                          capture_output=True).stdout
    expect("whose device is in the trace", set(re.findall(
        r" CM RE[QP] .* on=(\S+)", text)) == {"alice/mlx5_1", "bob/mlx5_1"},
        text)


def untraced_peer(trace):
    """The device of a QP that is not in the trace is unknown."""
    if not shutil.which("ibv_rc_pingpong"):
        return
    words = f"ibv_rc_pingpong -d mlx5_0 -g 3 -n 3 -p {free_port()}"
    rails(trace, f"env -u URXE_TRACE {words}", f"{words} localhost")
    _, packets, _ = pcap(trace)
    expect("its responses are in another interface",
           {(p.interface, p.op) for p in packets} ==
           {("alice/mlx5_0", 0), ("alice/mlx5_0", 1), ("alice/mlx5_0", 2),
            ("unknown", 0x11)}, [(p.interface, p.op) for p in packets])


def main():
    for case in (rc_pingpong, ud_pingpong, atomic_lat, read_bw, rping, kinds,
                 waiting, refused, version_1, names, in_flight,
                 devices, untraced_peer, damaged, lost):
        if len(sys.argv) > 3 and case.__name__ not in sys.argv[3:]:
            continue
        with tempfile.TemporaryDirectory() as directory:
            case(os.path.join(directory, "trace"))
    if not failed and not TSHARK:
        print("tshark is not installed: packets were not decoded by it")
        return 77
    return 1 if failed else 0


URXE, TRACED = sys.argv[1:3]
if __name__ == "__main__":
    sys.exit(main())
