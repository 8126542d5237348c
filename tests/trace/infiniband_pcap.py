#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""urxe trace --pcap: packets over InfiniBand, as decoded by tshark and by the test.
Usage: infiniband_pcap.py URXE VERBS_INFINIBAND [CASE...]

VERBS_INFINIBAND is the test program of the verbs tests for InfiniBand."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import pcap
from pcap import expect, number

# urxe1 and urxe2 are InfiniBand devices with LIDs 1 and 2, urxe0 is an Ethernet device.
FABRIC = ["--devices", "3", "--link-layer", "ethernet,infiniband,infiniband",
          "--trace-payload"]
FIELDS = ["frame.interface_name", "infiniband.lrh.slid", "infiniband.lrh.dlid",
          "infiniband.lrh.sl", "infiniband.lrh.lnh", "infiniband.grh.sgid",
          "infiniband.grh.dgid", "infiniband.grh.hoplmt",
          "infiniband.bth.opcode", "infiniband.bth.destqp",
          "infiniband.bth.p_key", "infiniband.bth.psn",
          "infiniband.deth.srcqp", "infiniband.aeth.syndrome",
          "infiniband.reth.va", "infiniband.reth.r_key",
          "infiniband.reth.dmalen", "infiniband.variant.crc"]
# of the pingpongs, and of ibv_ud_pingpong from rdma-core 65 on
HOP_LIMITS = 1, 64
# addresses that pingpongs print
PINGPONG = r"address: +LID 0x(\w+), QPN 0x(\w+), PSN 0x(\w+)[:,] GID (\S+)"


class Row:
    """The fields of a packet, as tshark decodes them."""

    def __init__(self, fields):
        for name, value in zip(FIELDS, fields):
            setattr(self, name.split(".", 1)[1].replace(".", "_"),
                    number(value))

    def __repr__(self):
        return str(self.__dict__)


def rows(out):
    """Let tshark decode the file; check that it finds no error."""
    if not pcap.TSHARK:
        return None
    names = ["_ws.malformed", "_ws.expert.message", *FIELDS]
    found = [r + [""] * (len(names) - len(r)) for r in
             pcap.decoded(out, *names)]
    expect("none is malformed", found and not any(r[0] for r in found), found)
    expect("no complaint", all(" WR 0x" in r[1] or " CM " in r[1]
                               for r in found), found)
    return [Row(r[2:]) for r in found]


def client(trace, name, server, words):
    """Run a program on urxe2, and as client on urxe1.  Return the packets, and what tshark
    says of them, or None if the program is not installed."""
    if not shutil.which(name.split("/")[-1]):
        print(f"skipped: {name} is not installed")
        return None
    words = f"{name} -p {pcap.free_port()} {words}"
    said = pcap.pair(trace, f"{words} {server}", f"{words} -d urxe1 localhost",
                     options=["--fabric", os.path.basename(trace), *FABRIC])
    out, packets, errors = pcap.pcap(trace)
    expect("each request has packets", not errors, errors)
    return packets, rows(out), said[1]


def check_pingpong(packets, decoded, said, transport, grh):
    """Check the packets by the addresses that the client prints."""
    (lid, qpn, psn, gid), (lid2, qpn2, psn2, gid2) = re.findall(PINGPONG, said)
    ends = [(int(lid, 16), int(qpn, 16), int(psn, 16), gid, "urxe1"),
            (int(lid2, 16), int(qpn2, 16), int(psn2, 16), gid2, "urxe2")]
    expect("LIDs", [end[0] for end in ends] == [1, 2], ends)
    for here, there in (ends, ends[::-1]):
        sent = [p for p in packets if p.interface == here[4]]
        expect("the interfaces are of InfiniBand", sent and all(
            p.link == 197 for p in sent), packets)
        expect("from LID to LID, to the QP", all(
            (p.slid, p.dlid, p.qpn, p.sl, p.pkey) ==
            (here[0], there[0], there[1], 3, 0xffff) for p in sent), sent)
        expect("a GRH, or none", all(bool(p.grh) == grh for p in sent), sent)
        asked = [p for p in sent if p.syndrome is None]
        expect("PSNs", [p.psn for p in asked] == [
            (here[2] + i) & 0xffffff for i in range(len(asked))], asked)
        if decoded is None:
            continue
        said_of = [r for r in decoded if r.interface_name == here[4]]
        expect("tshark: LIDs, QP and P_Key", len(said_of) == len(sent) and all(
            (r.lrh_slid, r.lrh_dlid, r.bth_destqp, r.lrh_sl, r.bth_p_key) ==
            (here[0], there[0], there[1], 3, 0xffff) for r in said_of), said_of)
        expect("tshark: opcodes and PSNs", [
            (r.bth_opcode, r.bth_psn) for r in said_of] == [
                (p.opcode, p.psn) for p in sent], said_of)
        expect("tshark: the GRH", all(
            (r.lrh_lnh, r.grh_sgid, r.grh_dgid) ==
            ((3, here[3], there[3]) if grh else (2, "", "")) and
            r.grh_hoplmt in (HOP_LIMITS if grh else ("",))
            for r in said_of), said_of)
        expect("tshark: DETH or AETH", all(
            r.deth_srcqp == here[1] if transport == "ud" else
            (r.aeth_syndrome == 31) == (r.bth_opcode == 0x11)
            for r in said_of), said_of)


def values(trace, event):
    out = subprocess.run([pcap.URXE, "trace", "--json", trace], check=True,
                         text=True, capture_output=True).stdout
    return [r["values"] for r in map(json.loads, out.splitlines())
            if r["event"] == event]


def pingpong(trace, transport, grh):
    words = "-n 3 -s 1500 -l 3" + (" -g 0" if grh else "")
    done = client(trace, f"ibv_{transport}_pingpong", "-d urxe2", words)
    if not done:
        return
    packets, decoded, said = done
    check_pingpong(packets, decoded, said, transport, grh)
    opcodes = [p.opcode for p in packets]
    expect("opcodes", sorted(opcodes) == (
        6 * [100] if transport == "ud" else
        sorted(6 * [0x00, 0x02, 0x11])), opcodes)
    found = values(trace, "LEFT" if transport == "ud" else "QP_MODIFIED")
    found = {(v["slid"], v["dlid"], v["sl"], "dgid" in v)
             for v in found if "slid" in v}
    expect("--json has LIDs and SL", found == {(1, 2, 3, grh), (2, 1, 3, grh)},
           found)


def rc(trace):
    pingpong(trace, "rc", False)


def rc_grh(trace):
    pingpong(trace, "rc", True)


def ud(trace):
    pingpong(trace, "ud", False)


def ud_grh(trace):
    pingpong(trace, "ud", True)


def rping(trace):
    """Connections through rdma_cm: MADs, READs and WRITEs."""
    if not shutil.which("rping"):
        return
    words = f"-p {pcap.free_port()} -C 2"
    pcap.pair(trace, f"{pcap.RPING} -s {words} -a 127.0.0.3",
              f"{pcap.RPING} -c {words} -a 127.0.0.3 -I 127.0.0.2",
              options=["--fabric", os.path.basename(trace), *FABRIC])
    out, packets, _ = pcap.pcap(trace)
    decoded = rows(out)
    lids = {"urxe1": (1, 2), "urxe2": (2, 1)}
    expect("rping: LIDs, no GRH", all(
        (p.slid, p.dlid) == lids[p.interface] and not p.grh
        for p in packets), packets)
    expect("rping: operations of both ends",
           {p.op for p in packets if p.kind == 0} ==
           {0x04, 0x0a, 0x0c, 0x10, 0x11}, packets)
    sent = values(trace, "CM_SENT")
    expect("CM messages have LIDs", {
        (v["slid"], v["dlid"], v["bth_pkey"], v["on"]) for v in sent} ==
        {(1, 2, "0xffff", "urxe1"), (2, 1, "0xffff", "urxe2")}, sent)
    if decoded is None:
        return
    mads = [r for r in decoded if r.bth_destqp == 1]
    expect("tshark: MADs", len(mads) == len(sent) and all(
        (r.bth_opcode, r.deth_srcqp, r.bth_p_key) == (100, 1, 0xffff) and
        (r.lrh_slid, r.lrh_dlid) == lids[r.interface_name]
        for r in mads), mads)
    rdma = [r for r in decoded if r.bth_opcode in (0x0a, 0x0c)]
    expect("tshark: RETH", len(rdma) == 4 and all(
        r.reth_dmalen == 64 and r.reth_va and r.reth_r_key
        for r in rdma), rdma)
    expect("tshark: AETH", {r.aeth_syndrome for r in decoded
                            if r.bth_opcode in (0x10, 0x11)} == {31}, decoded)


# ------------------------------------------------------------------ verbs tests

def verbs(trace, name):
    """Run a case of the verbs tests.  Its InfiniBand devices are urxe0 and urxe1."""
    done = subprocess.run(
        [pcap.URXE, "run", "--fabric", "verbs-" + name, "--devices", "3",
         "--link-layer", "infiniband,infiniband,ethernet", "--trace", trace,
         "--", VERBS], env={**os.environ, "CK_RUN_CASE": name}, text=True,
        capture_output=True, timeout=120)
    expect(f"verbs test {name}", done.returncode == 0, done)
    out, packets, _ = pcap.pcap(trace)
    return packets, rows(out)


def lmc(trace):
    """urxe1 has LIDs 8 to 11, and sends from 11."""
    packets, decoded = verbs(trace, "lmc")
    asked = {(p.interface, p.slid, p.dlid) for p in packets if p.op == 0x0a}
    answers = [(p.interface, p.slid, p.dlid) for p in packets if p.op == 0x11]
    expect("requests to LIDs of the port, and to others",
           asked == {("urxe0", 1, lid) for lid in range(7, 13)}, asked)
    expect("responses to requests to the four LIDs, with the responder's LIDs",
           answers == 4 * [("urxe1", 11, 1)], answers)
    if decoded is not None:
        expect("tshark: LIDs", {(r.interface_name, r.lrh_slid, r.lrh_dlid)
                                for r in decoded} == asked | set(answers),
               decoded)


def pkeys(trace):
    """Each end sends its own P_Key."""
    packets, decoded = verbs(trace, "pkeys")
    asked = [p.pkey for p in packets if p.op == 0x0a]
    answers = [p.pkey for p in packets if p.op == 0x11]
    expect("P_Keys of requests", asked[:4] == [0xffff, 0x8001, 0x8001, 1],
           asked)
    expect("P_Keys of responses", answers == [0xffff, 0x8001, 1, 0x8001],
           answers)
    if decoded is not None:
        expect("tshark: P_Keys", [r.bth_p_key for r in decoded] ==
               [p.pkey for p in packets], decoded)


def datagrams(trace):
    """Datagrams to another LID of a port with LMC 2, without and with a GRH."""
    packets, decoded = verbs(trace, "datagrams")
    found = [(p.interface, p.slid, p.dlid, p.sl, bool(p.grh)) for p in packets]
    expect("LIDs", found == [
        end for grh in (False, True)
        for end in (("urxe0", 1, 10, 3, grh), ("urxe1", 10, 1, 3, grh))], found)
    expect("hop limit and traffic class", packets[2].grh[0:2] == b"\x62\x80"
           and packets[2].grh[7] == 7, packets[2].grh)
    if decoded is not None:
        expect("tshark: GRH", [r.grh_hoplmt for r in decoded][:3] ==
               ["", "", 7], decoded)
    pcap.damage(trace)


def multicast(trace):
    packets, decoded = verbs(trace, "multicast")
    expect("the LID and the GID of the group", [
        (p.dlid, p.qpn, p.grh[24]) for p in packets] ==
        [(0xc000, 0xffffff, 0xff)], packets)
    if decoded is not None:
        expect("tshark: the group", [(r.lrh_dlid, r.grh_dgid[:2])
                                     for r in decoded] == [(0xc000, "ff")],
               decoded)


def two_link_layers(trace):
    """Requests of an Ethernet and of an InfiniBand device in one file."""
    packets, decoded = verbs(trace, "no_link")
    found = {(p.interface, p.link) for p in packets}
    expect("a link type of each", found == {("urxe0", 197), ("urxe2", 1)}, found)
    if decoded is not None:
        expect("tshark: both have a BTH, one an LRH", {
            (r.interface_name, r.bth_opcode, bool(r.lrh_slid))
            for r in decoded} == {("urxe0", 0x0a, True), ("urxe2", 0x0a, False)},
            decoded)


def main():
    for case in (rc, rc_grh, ud, ud_grh, rping, lmc, pkeys, datagrams,
                 multicast, two_link_layers):
        if len(sys.argv) > 3 and case.__name__ not in sys.argv[3:]:
            continue
        with tempfile.TemporaryDirectory() as directory:
            case(os.path.join(directory, case.__name__))
    if not pcap.failed and not pcap.TSHARK:
        print("tshark is not installed: packets were not decoded by it")
        return 77
    return bool(pcap.failed)


VERBS = sys.argv[2]
sys.exit(main())
