#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Messages of the connection manager in a capture, decoded by tshark.
Usage: cm_pcap.py URXE FIELDS

FIELDS lists the messages of each client with their fields and values.  A value $name
is the same at each place with this name; different names of a client have different
values, except $either..., which stands for a value of either end, as it is not known
which end disconnects first.  Fields that are not listed are 0."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import pcap
from pcap import expect

ATTRIBUTES = {0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x14: "RTU",
              0x15: "DREQ", 0x16: "DREP", 0x17: "SIDR_REQ", 0x18: "SIDR_REP"}
# tshark decodes these from the wrong byte
MISREAD = {"prim_flowlabel", "prim_reserved0", "prim_pktrate"}
# fields that tshark also shows in parts
WHOLE = {"data", "ip_cm"}


def flat(layer):
    for name, value in layer.items():
        if isinstance(value, dict):
            yield from flat(value)
        else:
            yield name, value


def number(text):
    return int(text, 16) if text.startswith("0x") else int(text)


class Message:
    def __init__(self, layer):
        fields = dict(flat(layer))
        self.psn = number(fields["infiniband.bth.psn"])
        self.to = [number(fields[f"infiniband.{field}"]) for field in
                   ("bth.opcode", "bth.destqp", "deth.q_key", "deth.srcqp")]
        self.name = ATTRIBUTES[number(fields["infiniband.mad.attributeid"])]
        self.tid = fields["infiniband.mad.transactionid"]
        self.data = bytes.fromhex(
            fields["infiniband.mad.data"].replace(":", ""))
        self.fields = {
            name.removeprefix("infiniband."): value
            for name, value in fields.items()
            if re.match(r"infiniband\.(cm|mad)\.", name) and
            name.split(".")[-1] not in MISREAD | WHOLE}


class Capture:
    def __init__(self, trace):
        """Capture of an existing trace"""
        path, self.packets, _ = pcap.pcap(trace)
        self.lines = subprocess.run(
            [URXE, "trace", trace], check=True, text=True,
            capture_output=True).stdout.splitlines()
        # tshark guesses the protocol of a payload, and takes some for RPC over RDMA
        read = pcap.tshark(path, "-T", "json", "--disable-protocol",
                           "rpcordma")
        self.layers = [p["_source"]["layers"]["infiniband"]
                       for p in json.loads(read)]
        expect("no packet is malformed", "_ws.malformed" not in read)
        expect("tshark decodes all packets", self.packets and
               len(self.packets) == len(self.layers))
        self.messages = [Message(layer) for layer in self.layers
                         if "infiniband.mad" in str(layer)]
        expect("each on QP 1", all(m.to == [0x64, 1, 0x80010000, 1]
                                   for m in self.messages))
        recorded = [match[1] for match in
                    (re.search(r" CM ([A-Z_]+) ", line)
                     for line in self.lines) if match]
        expect("each is in the trace", recorded ==
               [m.name for m in self.messages], recorded)

    def received(self):
        """Messages, except requests that were rejected before the server listened."""
        refused = {m.tid for m in self.messages if m.name == "REJ"}
        return [m for m in self.messages if m.tid not in refused]


# --------------------------------------------------------------- contents

def listed(path):
    """Return the messages of each client: {client: [(name, fields)]}."""
    clients = {}
    with open(path, encoding="ascii") as f:
        for line in f:
            words = line.split()
            if not words or words[0] == "#":
                continue
            if words[0] == "client":
                messages = clients.setdefault(words[1], [])
            elif len(words) == 1:
                messages.append((words[0], {}))
            else:
                messages[-1][1][words[0]] = words[1]
    return clients


def is_zero(value):
    return not str(value).strip("0:x.")


def compare(client, messages, wanted):
    """Compare the messages with the list.  Return the values of the names."""
    names = [m.name for m in messages]
    bound = {}
    expect(f"{client}: its messages", names == [name for name, _ in wanted],
           names)
    for message, (name, fields) in zip(messages, wanted):
        for field in message.fields.keys() | fields.keys():
            value = message.fields.get(field)
            want = fields.get(field)
            if want and want.startswith("$"):
                want = bound.setdefault(want, value)
            if want or IS_KNOWN:
                expect(f"{client}: {name} {field}",
                       value == want if want else is_zero(value),
                       (value, want))
    of_one = [value for name, value in bound.items() if "either" not in name]
    expect(f"{client}: all of them differ",
           len(set(of_one)) == len(of_one), bound)
    expect(f"{client}: an end is one of both",
           set(of_one) >= set(bound.values()), bound)
    return bound


def check_psns(capture, fabrics=1):
    psns = [m.psn for m in capture.messages]
    expect("PSNs count from 0, in each fabric", psns ==
           fabrics * list(range(len(psns) // fabrics)), psns)


def data_begins(capture, qpn, psn):
    """Check the PSN of the first request to that QP."""
    asked = [p.psn for p in capture.packets
             if p.qpn == number(qpn) and p.op < 0x0d]
    return asked and asked[0] == number(psn)


def connection(trace, name, server, client):
    pcap.pair(trace, server, client)
    c = Capture(trace)
    check_psns(c)
    bound = compare(name, c.received(), WANTED[name])
    for end in ("client", "server"):
        qpn = bound.get(f"${end}_qpn", "0x0")
        expect(f"{name}: the {end}'s QP was made", any(
            f" QP 0x{number(qpn):x} made " in line for line in c.lines), qpn)
        expect(f"{name}: data to the {end} begins with the PSN it wants",
               data_begins(c, qpn, bound.get(f"${end}_psn", "0x0")))


def rping(trace):
    connection(trace, "rping", f"{pcap.RPING} -s -V -a 127.0.0.1 -C 3",
               f"{pcap.RPING} -c -V -a 127.0.0.1 -C 3")


def rdma_client(trace):
    connection(trace, "rdma_client", "rdma_server",
               "rdma_client -s 127.0.0.1")


def refused(trace):
    """No process listens, in two fabrics: each port has its own QP 1."""
    for name in ("a", "b"):
        done = subprocess.run(
            [URXE, "run", "--fabric", name, "--", "rdma_client", "-s",
             "127.0.0.1"], env=dict(os.environ, URXE_TRACE=trace), text=True,
            capture_output=True)
        expect("no listener: the connection is refused", done.returncode and "refused" in done.stderr,
               done)
    c = Capture(trace)
    check_psns(c, 2)
    for messages in c.messages[:2], c.messages[2:]:
        compare("refused", messages, WANTED["refused"])


def udaddy(trace):
    """tshark does not decode SIDR: the test does."""
    pcap.pair(trace, "udaddy", "udaddy -s 127.0.0.1")
    c = Capture(trace)
    check_psns(c)
    request, reply = c.messages[-2:]
    compare("udaddy", [request, reply], WANTED["udaddy"])
    request_id, pkey, service, version, ip, port, src, dst = \
        struct.unpack(">IHxxQBBH12x4s12x4s", request.data[:52])
    expect("SIDR_REQ", request_id and pkey == 0xffff and
           service == 0x1110000 + 7174 and version == 0 and ip == 0x40 and
           port and src == dst == bytes([127, 0, 0, 1]), request.data)
    answer_id, status, length, _, qpn, answered, qkey = \
        struct.unpack(">IBBHIQI", reply.data[:24])
    expect("SIDR_REP", answer_id == request_id and status == length == 0 and
           answered == service and qkey == 0x01234567, reply.data)
    expect("and the QP is the server's", any(
        f" QP 0x{qpn >> 8:x} made type=UD " in line for line in c.lines), qpn)
    expect("to which the datagrams go", any(p.qpn == qpn >> 8
                                            for p in c.packets))


def main():
    for program in ("tshark", "rping", "rdma_client", "udaddy"):
        if not shutil.which(program):
            print(f"skipped: {program} is not installed")
            return 77
    for case in (rping, rdma_client, refused, udaddy):
        with tempfile.TemporaryDirectory() as directory:
            case(os.path.join(directory, "trace"))
    return bool(pcap.failed)


URXE = sys.argv[1]
WANTED = listed(sys.argv[2])
# other releases may decode more fields
IS_KNOWN = shutil.which("tshark") and " 4.0." in subprocess.run(
    ["tshark", "--version"], text=True, capture_output=True).stdout
sys.exit(main())
