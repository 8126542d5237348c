#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Records of urxe run --trace in the output of urxe trace
Usage: trace.py URXE TRACED WITHOUT [CASE...]"""

import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time

LINE = re.compile(r" *(?P<time>\d+\.\d{9}) (?P<program>\S+)"
                  r"\[(?P<pid>\d+(?:#\d+)?)"
                  r"(?:/(?P<tid>\d+))?\] (?:QP 0x(?P<qp>[0-9a-f]+) )?"
                  r"(?P<what>call|why|[A-Za-z_ ]+?)(?:: (?P<why>.*)"
                  r"|(?P<values>(?: \S+=.*| ibv_.*)?))$")
LIFE = ["posted", "left", "arrived", "answered", "completed", "polled"]
failed = []


def expect(what, is_so, said=""):
    if not is_so:
        failed.append(what)
        print(f"FAILED: {what}\n{said}")


class Record:
    def __init__(self, line):
        match = LINE.match(line)
        if not match:
            raise ValueError(line)
        self.line = line
        self.__dict__.update(match.groupdict())
        values = self.values or ""
        self.wr_id = self.value("wr_id", values)
        self.status = self.value("status", values)

    @staticmethod
    def value(name, values):
        match = re.search(rf" {name}=(\S+)", values)
        return match and match[1]


def urxe_trace(*words):
    done = subprocess.run([URXE, "trace", *words], text=True, errors="replace",
                          capture_output=True)
    return done.returncode, done.stdout, done.stderr


def records(*words):
    code, out, said = urxe_trace(*words)
    expect(f"urxe trace {words}", code == 0, said)
    return [Record(line) for line in out.splitlines()]


def run(trace, *words, options=(), **more):
    return subprocess.run([URXE, "run", "--trace", trace, *options, "--",
                           *words], text=True, capture_output=True, **more)


def traced(trace, *words, **more):
    done = run(trace, TRACED, *words, **more)
    expect(f"traced {words} with {more}", done.returncode == 0,
           done.stdout + done.stderr)
    return done


def lives(all_records):
    """Return the events of each WR of a send queue, in order."""
    of = {}
    for r in all_records:
        if r.what in LIFE and r.wr_id and " op=RECV" not in r.values:
            of.setdefault((r.pid, r.qp, r.wr_id), []).append(r.what)
    return of


def whole_life(trace):
    traced(trace, "writes", "20")
    rs = records(trace)
    of = lives(rs)
    expect("each WR from post to poll", len(of) == 20 and
           all(life == LIFE for life in of.values()), of)
    calls = [r.line for r in rs if r.what == "call"]
    for verb in ("alloc_pd", "reg_mr", "create_cq", "create_qp", "modify_qp",
                 "destroy_qp", "dereg_mr", "free_context"):
        expect(f"ibv_{verb} is called", any(f" ibv_{verb}(" in c
                                            for c in calls), calls)
    states = [Record.value("state", r.values) for r in rs
              if r.what == "modified"]
    expect("states", states == 2 * ["INIT", "RTR", "RTS"] or
           sorted(states) == sorted(2 * ["INIT", "RTR", "RTS"]), states)
    times = [float(r.time) for r in rs]
    expect("by time", times == sorted(times) and times[0] == 0)


def free_port():
    """Return a free port, so that pingpongs of other tests are not reached."""
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def clients(trace):
    if not shutil.which("ibv_rc_pingpong"):
        return
    words = f"ibv_rc_pingpong -g 0 -n 50 -p {free_port()}"
    script = (f"{words} & until {words} localhost 2>/dev/null; "
              "do sleep 0.1; done; wait")
    done = run(trace, "sh", "-c", script)
    expect("pingpong", done.returncode == 0, done.stderr)
    rs = [r for r in records("--program", "ibv_rc_pingpong", trace)]
    of = {}
    for r in rs:
        if r.what in LIFE and " op=SEND" in r.values:
            of.setdefault((r.pid, r.what), []).append(r)
    per_client = {}
    for (pid, what), some in of.items():
        per_client.setdefault(pid, {})[what] = len(some)
    full = [c for c in per_client.values() if c.get("polled") == 50]
    expect("two clients, fifty SENDs each, in each state",
           len(full) == 2 and all(c == dict.fromkeys(LIFE, 50) for c in full),
           per_client)
    received = [r for r in rs if r.what == "polled" and
                " op=RECV" in r.values]
    expect("fifty receives each", len(received) == 100, len(received))


def connections(trace):
    """rdma_cm events and calls at both ends, in order."""
    if not shutil.which("rping"):
        return
    words = f"-a 127.0.0.1 -C 5 -p {free_port()}"
    here = os.path.dirname(os.path.abspath(__file__))
    program = os.path.join(here, "..", "clients", "rping")
    script = (f"rping -s {words} & until {program} -c {words} >/dev/null; "
              "do sleep 0.1; done; wait")
    done = run(trace, "sh", "-c", script)
    expect("rping", done.returncode == 0, done.stderr)
    lines = [r.line for r in records("--program", "rping", trace)]
    ends = {}
    for line in lines:
        match = re.search(r"rping\[(\d+).*\] rdma_cm (event )?"
                          r"(?:command|event)=(\w+)", line)
        if match:
            ends.setdefault(match[1], []).append(match[3])
    client = ["ADDR_RESOLVED", "resolve_route", "ROUTE_RESOLVED",
              "connect", "CONNECT_RESPONSE"]
    server = ["listen", "CONNECT_REQUEST", "accept",
              "ESTABLISHED", "DISCONNECTED"]
    for what, steps in (("client", client), ("server", server)):
        expect(f"the {what}'s steps", any(
            [s for s in said if s in steps][:len(steps)] == steps
            for said in ends.values()), ends)
    sent = [line.partition("] ")[2] for line in lines if " CM " in line]
    expect("each message of the connection once", [
        re.search("CM ([A-Z]+)", line)[1] for line in sent][-5:] ==
        ["REQ", "REP", "RTU", "DREQ", "DREP"], sent)
    ids = [[re.search(f" {end}_comm_id=(0x\\w+)", line) for end in
            ("local", "remote")] for line in sent[-5:]]
    client, server = ids[0][0][1], ids[1][0][1]
    expect("from one end to the other", all(
        {match[1] for match in pair if match} <= {client, server}
        for pair in ids) and ids[0][1] is None and client != server, sent)
    psn = [re.search(r"starting_psn=(\d+)", line)[1] for line in sent[-5:-3]]
    modified = [line for line in lines if " modified " in line]
    qpn = int(re.search(r"QP 0x(\w+) CM REP", sent[-4])[1], 16)
    there = [r.what for r in records("--qp", str(qpn), trace)]
    expect("and arrived at the server's QP", all(
        name in there for name in ("CM REP", "CM RTU", "CM DREQ", "CM DREP"))
        and "CM REQ" not in there, there)
    expect("with the PSNs that the QPs have", all(
        any(f" {queue}_psn={n}" in line for line in modified)
        for n in psn for queue in ("rq", "sq")), (psn, modified))
    urxe_trace("--perfetto", f"{trace}.json", trace)
    with open(f"{trace}.json", encoding="utf-8") as f:
        named = [(e["name"], e["args"]["fields"]) for e in
                 json.load(f)["traceEvents"] if e["name"].startswith("CM ")]
    expect("they have names on the timeline", [name for name, _ in named][-5:]
           == ["CM REQ", "CM REP", "CM RTU", "CM DREQ", "CM DREP"] and
           all("local_comm_id=" in fields for _, fields in named[-5:]), named)
    expect("a request names the other end's QP", any(
        "event=CONNECT_REQUEST" in line and " peer=0x" in line
        for line in lines), lines)


def rping_qps():
    """Return the number of connected QPs in the fabric."""
    top = subprocess.run([URXE, "top", "-1", "--json"], check=False, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return top and sum(q["state"] == "RTS" for q in json.loads(top)["qps"]) or 0


def connections_of_before(trace):
    """Connections of killed processes are closed by the next run; the records name no QP."""
    if not shutil.which("rping"):
        return
    words = f"-a 127.0.0.1 -p {free_port()}"
    killed = [subprocess.Popen([URXE, "run", "--", "rping", side, *words.split()],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
              for side in ("-s", "-c")]
    while rping_qps() < 2:
        if killed[1].poll() is not None:
            killed[1] = subprocess.Popen([URXE, "run", "--", "rping", "-c",
                                          *words.split()], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
        time.sleep(0.1)
    for p in killed:
        p.kill()
        p.wait()
    connections(trace)
    made = {r.qp for r in records(trace) if r.what == "made"}
    sent = [(r.qp in made, r.what) for r in records(trace)
            if r.what.startswith("CM ")]
    expect("the connection of before is ended", (False, "CM DREQ") in sent, sent)
    urxe_trace("--html", f"{trace}.html", trace)
    with open(f"{trace}.html", encoding="utf-8") as f:
        data = json.loads(re.search(r'<script [^>]*id="data">(.*?)</script>', f.read(),
                                    re.S)[1])
    kind = [name for name, _ in data["events"]].index("CM_SENT")
    expect("the page knows which messages are of no QP of the trace",
           [r[2] >= 0 for r in data["records"] if r[3] == kind] ==
           [ours for ours, _ in sent] and
           all(r[2] == -2 for r in data["records"] if r[3] == kind and r[2] < 0), sent)


def last_told(out):
    """Return the last number in the output of a program that prints each polled WR."""
    return struct.unpack("Q", out[len(out) // 8 * 8 - 8:][:8])[0]


def begin_endless(trace, *before, wait_for):
    child = subprocess.Popen([URXE, "run", "--", *before, TRACED, "endless"],
                             env=dict(os.environ, URXE_TRACE=trace),
                             stdout=subprocess.PIPE)
    out = child.stdout.read(8 * wait_for)
    return child, out


def expect_up_to(rs, last, who):
    """Check for all WRs up to the last polled one, and at most a part of one more."""
    of = lives(rs)
    of = {int(wr_id, 16): life for (_, _, wr_id), life in of.items()}
    expect(f"{who}: whole up to {last}",
           all(of.get(i) == LIFE for i in range(1, last + 1)),
           {i: of.get(i) for i in range(last - 3, last + 2)})
    expect(f"{who}: and at most a part of one more", set(of) <= set(range(1, last + 2)) and
           of.get(last + 1, []) == LIFE[:len(of.get(last + 1, []))], of)


def killed(trace):
    """The records of several processes up to SIGKILL are complete."""
    run(trace, "true", options=["--trace-records", "1000000"])
    children = [begin_endless(trace, wait_for=n) for n in (2000, 300, 40)]
    last = {}
    for child, _ in children:
        child.send_signal(signal.SIGKILL)
    for child, out in children:
        out += child.stdout.read()
        child.wait()
        last[str(child.pid)] = last_told(out)
    rs = records(trace)
    expect("three processes", {r.pid for r in rs} == set(last), last)
    for pid, n in last.items():
        expect_up_to([r for r in rs if r.pid == pid], n, f"process {pid}")


def killed_growing(trace):
    """The same for a process that is killed while its ring grows."""
    for nth in (3, 5): # the first two calls create its two rings
        run(trace, "true", options=["--trace-records", "1000000"])
        kill = ["strace", "-f", "-o", "/dev/null", "-P", trace, "-e",
                f"inject=fallocate:signal=SIGKILL:when={nth}"]
        if subprocess.run([*kill, "true"], capture_output=True).returncode:
            print("SKIP: no strace, or it does not work here")
            return
        child, out = begin_endless(trace, *kill, wait_for=1)
        out += child.stdout.read()
        child.wait()
        last = last_told(out)
        # a WR needs seven slots, and the ring starts with 1024 slots
        places = 1024 << nth - 3
        expect(f"it was killed when {places} places were full",
               places / 7 - 40 < last < places / 7, last)
        expect_up_to(records(trace), last, f"{places} places")


def overwritten(trace):
    """When the ring is full, the last records are kept, each complete."""
    done = traced(trace, "writes", "5000", options=["--trace-records", "1000"])
    code, out, said = urxe_trace(trace)
    ids = [int(r.wr_id, 16) for r in map(Record, out.splitlines())
           if r.what == "polled"]
    expect("the last ones", ids and ids[-1] == 5000 and
           ids == list(range(ids[0], 5001)) and len(ids) > 50, ids[:5])
    expect("overwritten records are reported",
           code == 0 and "--trace-records" in said, said + done.stderr)
    # the records of connections are not overwritten by those of WRs
    rs = records(trace)
    expect("connections are recorded, with PSNs",
           len([r for r in rs if r.what == "modified" and
                " state=RTS" in r.values and " sq_psn=" in r.values]) > 0,
           [r.line for r in rs if r.what == "modified"])


def wrong(trace):
    traced(trace, "wrong")
    rs = records("--errors", trace)
    of = [(r.what, r.wr_id, r.status) for r in rs]
    for one in (("waits", "0x1", None),
                ("answered", "0x1", "RNR_RETRY_EXC_ERR"),
                ("polled", "0x1", "RNR_RETRY_EXC_ERR"),
                ("answered", "0x2", "REM_ACCESS_ERR"),
                ("completed", "0x2", "REM_ACCESS_ERR"),
                ("broken", None, None), ("refused", "0x4", None)):
        expect(f"{one} is an error", one in of, of)
    expect("RNR is what it waits for",
           any(r.what == "waits" and "RNR" in r.line for r in rs), of)
    expect("why", any(r.why and "rkey" in r.why for r in rs) and
           any(r.why and "the send queue is full" in r.why for r in rs),
           [r.line for r in rs])
    expect("and not on stderr", "rkey" not in
           traced(trace, "wrong").stderr)
    # the other interposers ignore refused WRs, too
    traced(trace, "wrong", options=["--check=error", "--adversary=1,loss=0"])
    expect("nothing else is an error",
           not any(r.status == "SUCCESS" for r in rs))


def json_lines(trace):
    """--json prints one object a line for each record, with the same filters."""
    traced(trace, "wrong")
    for words in ([], ["--errors"]):
        text = [r.line for r in records(*words, trace)]
        code, out, said = urxe_trace("--json", *words, trace)
        of = [json.loads(line) for line in out.splitlines()]
        expect("JSON of each record", code == 0 and len(of) == len(text) and
               all(line.endswith(" " + r["text"])
                   for line, r in zip(text, of)), said + out)
        expect("errors", all(r["error"] for r in of) == bool(words), out)
    one = [r for r in of if r["event"] == "COMPLETED" and
           r["values"]["wr_id"] == "0x2"]
    expect("its members", len(one) == 1 and
           one[0]["values"]["status"] == "REM_ACCESS_ERR" and
           one[0]["program"] == "traced" and one[0]["qpn"] > 0 and
           0 <= one[0]["ns"] < 1e12 and one[0]["pid"] == one[0]["process"],
           one)
    _, out, _ = urxe_trace("--json", trace)
    calls = [r for r in map(json.loads, out.splitlines())
             if r["event"] == "CALL"]
    expect("calls", "alloc_pd" in {r["call"] for r in calls} and
           all(r["call_ns"] >= 0 for r in calls), calls[:3])


def packets(trace):
    """The records contain all data that is needed to draw packets."""
    done = traced(trace, "packets")
    rs = records(trace)
    of = {}
    for r in rs:
        if r.wr_id:
            of.setdefault((int(r.wr_id, 16), r.what), r.values)

    def has(wr_id, what, *values):
        text = of.get((wr_id, what), "")
        expect(f"WR {wr_id} {what} with {values}",
               all(f" {v}" in text + " " for v in values), (text, of))
    modified = [r.values for r in rs if r.what == "modified" and
                " state=RTR" in r.values]
    for name in ("sgid", "dgid", "roce", "hop_limit", "mtu", "rq_psn", "peer"):
        expect(f"RTR has {name}", f" {name}=" in modified[0], modified)
    has(1, "waits", "for=a response")
    has(1, "arrived", "op=RDMA_WRITE")
    has(2, "left", "compare_add=0x77 ", "swap=0x88 ")
    has(2, "fetched", "old=0x77 ")
    has(3, "left", "solicited=1 ")
    expect("an rkey is no immediate", " imm=" not in of[4, "left"])
    has(4, "left", "invalidate=0x")
    has(5, "left", "peer=0x", "qkey=0x11111111 ", "hop_limit=7 ",
        "traffic_class=0x28 ", "flow_label=0x12345 ", "roce=1 ", "sgid=",
        "dgid=")
    has(6, "left", f"srqn=0x{done.stdout.strip()} ")
    psns = [int(Record.value("psn", of[n, "left"])) for n in (1, 2, 3, 4)]
    expect("PSNs", [p - psns[0] for p in psns] == [0, 3, 4, 5], psns)


def naks(trace):
    """The syndromes of responses"""
    traced(trace, "wrong")
    rs = records("--errors", trace)
    for wr_id, what, nak in (("0x1", "waits", "0x21"),
                             ("0x1", "answered", "0x21"),
                             ("0x2", "answered", "0x62")):
        expect(f"{what} with {nak}", any(
            r.wr_id == wr_id and r.what == what and
            r.values.endswith(f" nak={nak}") for r in rs),
            [r.line for r in rs])
    traced(f"{trace}2", "psn")
    rs = [r for r in records(f"{trace}2") if r.what in
          ("waits", "retransmitted")]
    expect("a NAK for the PSN", rs and all(
        r.values.endswith(" nak=0x60") for r in rs), [r.line for r in rs])


def data_of(trace):
    """Return (length, first bytes) of the recorded data of each WR."""
    of = {}
    for r in records(trace):
        if r.what != "data":
            continue
        first = bytes.fromhex(Record.value("data", r.values).rstrip("."))
        n, before = of.get(int(r.wr_id, 16), (0, b""))
        expect(f"in order: {r.line}", n == int(
            Record.value("offset", r.values) or 0))
        of[int(r.wr_id, 16)] = (n + int(Record.value("bytes", r.values)),
                                before or first)
    return of


def payload(trace):
    """The first bytes of each message, in any kind of memory"""
    alphabet = bytes(ord("a") + i % 26 for i in range(2200))
    want = {1: (40, alphabet[1:33]), 2: (8, alphabet[2:10]),
            3: (10, b"what b has"),
            4: (1500, alphabet[:3] + alphabet[100:129]),
            5: (8, alphabet[5:13])}
    for words in (["payload", "0"], ["payload", "1"]):
        traced(trace, *words, options=["--trace-payload=1500"])
        expect(f"{words}: all of it", data_of(trace) == want, data_of(trace))
    traced(trace, "payload", "0", options=["--trace-payload"])
    expect("256 bytes", data_of(trace)[4][0] == 256, data_of(trace))
    traced(trace, "payload", "0")
    expect("none unless it is wanted", not data_of(trace), data_of(trace))
    done = subprocess.run([WITHOUT, URXE, "run", "--trace", trace,
                           "--trace-payload=1500", "--", TRACED, "payload",
                           "0"], text=True, capture_output=True)
    if done.returncode == 77:
        print(done.stdout)
    else:
        expect("where process_vm_readv is forbidden", done.returncode == 0 and
               data_of(trace) == want, done.stderr)
    for option in ("--trace-payload=0", "--trace-payload=x"):
        expect(option, run(trace, "true", options=[option]).returncode == 2)
    done = subprocess.run([URXE, "run", "--trace-payload", "true"],
                          capture_output=True)
    expect("without --trace", done.returncode == 2)
    done = run(trace, TRACED, "writes", "1",
               env=dict(os.environ, URXE_TRACE_PAYLOAD="much"))
    expect("a variable that is no number", done.returncode and
           "URXE_TRACE_PAYLOAD" in done.stderr, done.stderr)


def environment(trace):
    """urxe env --trace, for programs that are started without urxe run"""
    script = ('eval "$("$0" env --trace "$1" --trace-payload=16)" && '
              'exec "$2" writes 3')
    done = subprocess.run(["sh", "-c", script, URXE, trace, TRACED], text=True,
                          capture_output=True)
    expect("it runs", done.returncode == 0, done.stderr)
    expect("it is traced", len(lives(records(trace))) == 3)
    expect("with payload", len(data_of(trace)) == 3)
    lines = subprocess.run([URXE, "env", "--github", "--trace", trace],
                           text=True, capture_output=True).stdout
    expect("as a line", f"\nURXE_TRACE={os.path.realpath(trace)}\n" in lines,
           lines)


def in_flight(trace):
    """PSNs with several outstanding WRs"""
    traced(trace, "sends", "200", options=["--adversary=1,loss=0"])
    psns = [int(Record.value("psn", r.values)) for r in records(trace)
            if r.what == "left"]
    expect("one after the other", psns == list(range(psns[0], psns[0] + 200)),
           psns)


def extended(trace):
    traced(trace, "extended")
    of = lives(records(trace))
    both = [life for (_, _, wr_id), life in of.items()
            if wr_id in ("0x1", "0x2")]
    expect("ibv_wr_* and ibv_start_poll", both == [
        # a batch is one verb: all WRs are posted before the first one is sent
        LIFE, LIFE], of)
    rs = records(trace)
    refused = [r for r in rs if r.what == "refused"]
    expect("a batch is refused as a whole", len(refused) == 1 and
           refused[0].wr_id == "0x3", [r.line for r in refused])


def apart(trace):
    traced(trace, "apart")
    rs = [r for r in records(trace) if r.what == "posted"]
    expect("two processes and two threads",
           len({r.pid for r in rs}) == 2 and
           len({(r.pid, r.tid) for r in rs}) == 4 and
           sorted(r.wr_id for r in rs) == ["0x1", "0x1", "0x2", "0x2"],
           [r.line for r in rs])


def closes(trace):
    """A program that closes foreign descriptors is traced, too."""
    traced(trace, "closes", stdin=subprocess.DEVNULL)
    rs = records("--wr-id", "2", trace)
    expect("the thread's records", [r.what for r in rs] == LIFE,
           [r.line for r in rs])


def with_rooms(trace):
    """A trace together with the referee and the adversary"""
    done = traced(trace, "writes", "20",
                  options=["--check", "--adversary=1"])
    expect("the referee reports nothing", "check:" not in done.stderr,
           done.stderr)
    of = lives(records(trace))
    expect("each WR from post to poll", len(of) == 20 and
           all(life[0] == "posted" and life[-1] == "polled" and
               sorted(life) == sorted(LIFE) for life in of.values()), of)


def no_room(trace):
    """A thread that gets no space works without records; one that gets no more space
    overwrites its own records."""
    traced(trace, "moved", "2000")
    _, out, said = urxe_trace(f"{trace}.moved")
    ids = [int(r.wr_id, 16) for r in map(Record, out.splitlines())
           if r.what == "posted"]
    expect("the last records of the first thread are kept", len(ids) > 50 and
           ids == list(range(ids[0], 2001)), ids)
    expect("and the lost records are reported", "no space" in said, said)


def short_threads(trace):
    """Short threads use little space on disk."""
    traced(trace, "threads", "100")
    rs = [r for r in records(trace) if r.what == "posted"]
    expect("a hundred threads", len({r.tid for r in rs}) == 100)
    taken = os.stat(trace).st_blocks * 512
    expect("of 80 KiB at most", taken < 110 * 80 * 1024, taken)


def cancelled(trace):
    """A cancelled thread is not ended while it creates its ring."""
    traced(trace, "cancelled", timeout=60)
    expect("the WR", [r.what for r in records("--wr-id", "2", trace)] == LIFE)


def destructor(trace):
    traced(trace, "destructor")
    expect("the destructor's WR",
           [r.what for r in records("--wr-id", "2", trace)] == LIFE)


def handler(trace):
    """Verbs in a signal handler do not damage records."""
    traced(trace, "handler", "5000", options=["--trace-records", "200000"])
    rs = records(trace)
    for what in LIFE:
        n = len([r for r in rs if r.what == what])
        expect(f"all were {what}", n == 5000, n)
    expect("the records of the handler are kept, too",
           any("ibv_query_port" in r.line for r in rs))


def follow(trace):
    """--follow prints records as they are made; the reader may stop."""
    child = subprocess.Popen([URXE, "run", "--trace", trace, "--", TRACED,
                              "endless"], stdout=subprocess.DEVNULL)
    while not os.path.exists(trace):
        time.sleep(0.01)
    shown = subprocess.Popen([URXE, "trace", "--follow", trace], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ids = []
    while not ids or ids[-1] < 1000:
        r = Record(shown.stdout.readline().rstrip("\n"))
        if r.what == "polled":
            ids.append(int(r.wr_id, 16))
    shown.stdout.close()
    said = shown.stderr.read()
    child.kill()
    child.wait()
    expect("--follow ends when the reader has closed the pipe", shown.wait() == -signal.SIGPIPE)
    expect("in order", ids == sorted(ids), ids)
    expect("no message about a closed pipe", said == "", said)


def names(trace):
    """Names of programs may be invalid UTF-8, and long."""
    name = os.path.join(os.path.dirname(trace), 20 * "n" +
                        "\udce4\u00e4\u2014\udced\udca0\udc80---")
    os.symlink(os.path.abspath(TRACED), name)
    done = run(trace, name, "writes", "2")
    expect("a name", done.returncode == 0, done.stderr)
    expect("the whole name finds it, too",
           len(records("--program", os.path.basename(name), trace)) > 12)
    urxe_trace("--perfetto", f"{trace}.json", trace)
    with open(f"{trace}.json", encoding="utf-8") as f:
        expect("it is JSON", json.load(f))


def fabrics(trace):
    """QPs in different fabrics, and successive QPs, with the same number"""
    env = dict(os.environ, URXE_TRACE=trace)
    started = []
    for name in (f"trace-{os.getpid()}-a", f"trace-{os.getpid()}-b"):
        started.append(subprocess.Popen(
            [URXE, "run", "--fabric", name, "--", TRACED, "sends", "400"],
            env=env))
    expect("two fabrics", all(p.wait() == 0 for p in started))
    done = subprocess.run([URXE, "run", "--fabric", name, "--", TRACED,
                           "sends", "400"], env=env)
    expect("one more", done.returncode == 0)
    code, _, said = urxe_trace("--perfetto", f"{trace}.json", trace)
    expect("--perfetto", code == 0, said)
    with open(f"{trace}.json", encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    arrows, last = {}, {}
    for e in events:
        if e["ph"] in "sf":
            arrows.setdefault(e["id"], []).append(e["pid"])
        elif e["ph"] == "C":
            last[e["pid"], e["name"]] = e["args"]["completions"]
    expect("each message stays in its process", len(arrows) == 1200 and
           all(a == b for a, b in arrows.values()), len(arrows))
    expect("and each completion", len({pid for pid, _ in last}) == 3 and
           not any(last.values()), last)


def again(trace):
    done = traced(trace, "again")
    urxe_trace("--perfetto", f"{trace}.json", trace)
    with open(f"{trace}.json", encoding="utf-8") as f:
        slices = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X" and
                  e["name"] == f"RDMA_WRITE 0x{int(done.stdout):x}"]
    expect("what was refused is no WR", len(slices) == 1 and
           slices[0]["args"]["status"] == "SUCCESS", slices)


def lost(trace):
    """A missing record does not make reading the others slow."""
    traced(trace, "writes", "100000", options=["--trace-records", "1000000"])
    polled, at = 9, 8192
    with open(trace, "r+b") as f:
        data = f.read()
        while struct.unpack_from("H", data, at + 8)[0] != polled:
            at += 64 * data[at + 10]
        f.seek(at + 16)
        f.write(b"another.")
    done = subprocess.run(
        [URXE, "trace", "--perfetto", f"{trace}.json", trace],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (20, 20)))
    expect("it takes a second", done.returncode == 0, done.returncode)


def boots(trace):
    """Traces of two machines are not merged."""
    traced(trace, "writes", "1")
    traced(f"{trace}2", "writes", "1")
    expect("of one machine", len(lives(records(trace, f"{trace}2"))) == 2)
    with open("/proc/sys/kernel/random/boot_id", "rb") as f:
        boot = f.read().strip()
    with open(trace, "rb") as f:
        data = f.read()
    expect("which boot it was", data.count(boot) == 1)
    with open(trace, "wb") as f:
        f.write(data.replace(boot, boot[::-1]))
    code, _, said = urxe_trace(trace, f"{trace}2")
    expect("of two", code == 1 and "two machines" in said, said)


def unshared(*words):
    """Return the words that run a command in new namespaces, or None."""
    words = ["unshare", "-Urpf", "--mount-proc", *words]
    done = subprocess.run([*words, "true"], capture_output=True)
    if done.returncode == 0:
        return words
    print(f"SKIP: {' '.join(words)}: {done.stderr.decode().strip()}")
    return None


def pid_namespaces(trace):
    """Equal PIDs in different PID namespaces are different processes."""
    apart = unshared()
    if not apart:
        return
    env = dict(os.environ, URXE_TRACE=trace)
    for _ in range(2):
        done = subprocess.run([URXE, "run", "--", *apart, TRACED, "writes",
                               "3"], env=env, capture_output=True, text=True)
        expect("in a PID namespace", done.returncode == 0, done.stderr)
    pids = {r.pid for r in records(trace)}
    expect("two processes", len(pids) == 2 and "1" in pids, pids)
    expect("the second one alone", 0 < len(
        records("--program", "1#2", trace)) < len(records(trace)))
    urxe_trace("--perfetto", f"{trace}.json", trace)
    with open(f"{trace}.json", encoding="utf-8") as f:
        names = {e["pid"]: e["args"]["name"]
                 for e in json.load(f)["traceEvents"]
                 if e["ph"] == "M" and e["name"] == "process_name"}
    expect("two on the timeline", len(names) == 2 and
           sum(name.endswith(" (PID 1#2)") for name in names.values())
           == 1, names)
    urxe_trace("--html", f"{trace}.html", trace)
    with open(f"{trace}.html", encoding="utf-8") as f:
        data = json.loads(re.search(r'id="data">(.*?)</script>', f.read(),
                                    re.S)[1])
    threads = {t["process"] for t in data["threads"]}
    expect("two on the page, and their QPs", len(threads) == 2 and
           {q["process"] for q in data["qps"]} == threads, data["qps"])


def time_namespaces(trace):
    """Clock offsets of time namespaces are corrected."""
    later = unshared("-T", "--monotonic", "1000000")
    if not later:
        return
    env = dict(os.environ, URXE_TRACE=trace)
    for before in ([], later, []):
        done = subprocess.run([URXE, "run", "--", *before, TRACED, "writes",
                               "3"], env=env, capture_output=True, text=True)
        expect("in a time namespace", done.returncode == 0, done.stderr)
    rs = records(trace)
    order = list(dict.fromkeys(r.pid for r in rs))
    expect("one after the other", len(order) == 3 and order[1] == "1", order)
    expect("at once", float(rs[-1].time) < 100000, rs[-1].line)


def elsewhere(trace):
    """An existing file is sufficient; no other file is created in its directory."""
    subprocess.run([URXE, "run", "--trace", trace, "true"], check=True)
    with open(trace, "rb") as f:
        path = f"/proc/{os.getpid()}/fd/{f.fileno()}"
        done = subprocess.run([URXE, "run", "--", TRACED, "writes", "3"],
                              env=dict(os.environ, URXE_TRACE=path), text=True,
                              capture_output=True)
        expect("elsewhere", done.returncode == 0, done.stdout + done.stderr)
    expect("it is in it", len(lives(records(trace))) == 3)


def by_hand(trace):
    """Without urxe run --trace, the first process creates the file."""
    def started(*words):
        return subprocess.run([URXE, "run", "--", TRACED, *words],
                              env=dict(os.environ, URXE_TRACE=trace),
                              text=True, capture_output=True)
    for _ in range(2):
        expect("by hand", started("writes", "3").returncode == 0)
    expect("both are in it", len(lives(records(trace))) == 6)
    with open(trace, "wb") as f:
        f.write(b"something else")
    done = started("writes", "3")
    expect("a file that is no trace refuses the device",
           done.returncode and "not a trace" in done.stderr, done.stderr)
    with open(trace, "rb") as f:
        expect("and stays", f.read() == b"something else")


def check_slices(of_track):
    """Check that the slices of a track do not overlap."""
    for track, slices in of_track.items():
        last = -1
        for ts, dur, name in sorted(slices):
            expect(f"slices of {track} do not overlap: {name}",
                   ts + 0.0015 >= last, (ts, last))
            last = ts + dur


def perfetto(trace):
    """The trace-event format of Chrome, with the fields that Perfetto needs."""
    traced(trace, "sends", "20")
    out = f"{trace}.json"
    code, _, said = urxe_trace("--perfetto", out, trace)
    expect("--perfetto", code == 0 and not said, said)
    with open(out, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    slices, flows = {}, {}
    for e in events:
        expect("each has a phase, a place and a time",
               e["ph"] in "MXisfC" and isinstance(e["pid"], int) and
               isinstance(e["tid"], int) and e["ts"] >= 0 and e["name"], e)
        if e["ph"] == "X":
            slices.setdefault((e["pid"], e["tid"]), []).append(
                (e["ts"], e["dur"], e["name"]))
        elif e["ph"] in "sf":
            flows.setdefault(e["id"], []).append(e)
        elif e["ph"] == "i":
            expect("an instant has a scope", e["s"] == "t", e)
        elif e["ph"] == "M":
            expect("a name", e["args"]["name"], e)
        elif e["ph"] == "C":
            expect("a count", e["args"]["completions"] >= 0, e)
    check_slices(slices)
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M"}
    expect("each track has a name", set(slices) <= named, set(slices) - named)
    names = [name for some in slices.values() for _, _, name in some]
    expect("twenty WRs", len([n for n in names if n.startswith("SEND ")]) == 20
           and len([n for n in names if n.startswith("receive ")]) == 20,
           names)
    ends = {name: ts + dur for some in slices.values()
            for ts, dur, name in some}
    expect("the unsignaled ones end with the next that is signaled",
           all(abs(ends[f"SEND 0x{i:x}"] - ends[f"SEND 0x{i + 1:x}"]) < 0.003
               for i in range(1, 20, 2)), ends)
    expect("twenty arrows", len(flows) == 20, flows)
    for pair in flows.values():
        expect("an arrow begins and ends in a slice", len(pair) == 2 and
               [e["ph"] for e in pair] == ["s", "f"] and all(
                   any(ts - 0.0015 <= e["ts"] <= ts + dur + 0.0015 for
                       ts, dur, _ in slices[e["pid"], e["tid"]])
                   for e in pair), pair)
    depth = [e["args"]["completions"] for e in events if e["ph"] == "C"]
    expect("no completion is left", max(depth) > 0 and depth[-1] == 0, depth)
    code, _, said = urxe_trace("--perfetto", "/nonexistent/out", trace)
    expect("a file that cannot be written", code == 1 and said, said)


def html(trace):
    """The data in the page (tests/trace/page.js tests the page itself)"""
    name = os.path.join(os.path.dirname(trace), "<!--<script><img>")
    os.symlink(os.path.abspath(TRACED), name)
    done = run(trace, name, "sends", "20")
    expect("a name that is markup", done.returncode == 0, done.stderr)
    code, _, said = urxe_trace("--html", f"{trace}.html", trace)
    expect("--html", code == 0 and not said, said)
    with open(f"{trace}.html", encoding="utf-8") as f:
        page = f.read()
    text = re.search(r'id="data">(.*?)</script>', page, re.S)[1]
    expect("it is text", "<" not in text, text[:500])
    data = json.loads(text)
    rs, events = records(trace), data["events"]
    expect("all records", [r.what for r in rs] ==
           [events[r[3]][1] for r in data["records"]])
    expect("the name", data["threads"][0]["program"] ==
           os.path.basename(name), data["threads"])
    steps = {}
    for r in data["records"]:
        if r[4] >= 0:
            steps.setdefault(r[4], []).append(events[r[3]][1])
    sends = [i for i, (_, recv, _) in enumerate(data["wrs"]) if not recv]
    expect("each WR from post to poll, and unsignaled ones", len(sends) == 20
           and all(steps[i] in (LIFE, LIFE[:4]) for i in sends), steps)
    expect("each message has its receive", all(
        data["wrs"][data["wrs"][i][2]][1:] == [1, i] for i in sends))
    expect("nothing is fetched", not re.search(
        r"(src|href)=[\"']|https?://(?!www.w3.org/2000/svg)", page))


def multicast(trace):
    """Each receive belongs to the datagram that arrived just before it."""
    traced(trace, "multicast")
    code, _, said = urxe_trace("--html", f"{trace}.html", trace)
    expect("--html", code == 0 and not said, said)
    with open(f"{trace}.html", encoding="utf-8") as f:
        data = json.loads(re.search(r'id="data">(.*?)</script>', f.read(),
                                    re.S)[1])
    left, arrived, received = {}, [], []
    for _, _, _, event, wr, _, _, values in data["records"]:
        what = data["events"][event][1]
        of = dict(zip(values[::2], values[1::2])) if \
            isinstance(values, list) else {}
        if what == "left":
            left[of["psn"]] = wr
        elif what == "arrived":
            arrived.append((wr, left[of["psn"]]))
        elif what == "completed" and of["op"] == "RECV":
            received.append((data["wrs"][wr][2], arrived[-1][1]))
    expect("three datagrams arrive at two QPs", len(arrived) == 6 and all(
        wr in (-1, meant) for wr, meant in arrived), arrived)
    expect("and two are received at both", len(received) == 4 and all(
        wr in (-1, meant) for wr, meant in received) and
        {wr for wr, _ in received} == {meant for _, meant in received},
        received)
    urxe_trace("--perfetto", f"{trace}.json", trace)
    with open(f"{trace}.json", encoding="utf-8") as f:
        flows = [e["ph"] for e in json.load(f)["traceEvents"]
                 if e["ph"] in "sf"]
    expect("an arrow to each receive", sorted(flows) == 4 * ["f"] + 4 * ["s"],
           flows)


def damaged(trace):
    traced(trace, "writes", "200", options=["--trace-payload"])
    with open(trace, "rb") as f:
        good = f.read()
    some = random.Random(1)
    for i in range(60):
        bad = bytearray(good)
        for _ in range(some.randrange(1, 40)):
            at = some.choice([some.randrange(0, 64),
                              some.randrange(4096, 4260),
                              some.randrange(8192, 8192 + 64 * 400)])
            bad[at % len(bad)] = some.randrange(256)
        if i % 3 == 0:
            bad = bad[:some.randrange(0, len(bad))]
        with open(trace, "wb") as f:
            f.write(bad)
        code, _, said = urxe_trace(trace)
        expect(f"damage {i} is no crash", code in (0, 1), (code, said))
        for form in ("--perfetto", "--pcap", "--html"):
            expect(f"damage {i} is none to {form}", urxe_trace(
                form, f"{trace}.out", trace)[0] in (0, 1))
        expect(f"damage {i} is reported", code == 0 or said.startswith("urxe: "),
               said)


def refused(trace):
    os.mkfifo(f"{trace}.fifo")
    done = run(f"{trace}.fifo", "true")
    expect("a FIFO is refused, and stays", done.returncode == 1 and
           "not a regular file" in done.stderr and
           stat.S_ISFIFO(os.stat(f"{trace}.fifo").st_mode), done.stderr)
    os.symlink(f"{trace}.file", f"{trace}.link")
    with open(f"{trace}.file", "w", encoding="utf-8") as f:
        done = subprocess.run([URXE, "run", "--trace", f"{trace}.link", "true"],
                              stdout=f)
    expect("a link stays one", done.returncode == 0 and
           os.path.islink(f"{trace}.link") and not records(f"{trace}.link"))
    for words in (["--trace", "/nonexistent/trace"],
                  ["--trace-records", "100"],
                  ["--trace", trace, "--trace-records", "many"],
                  ["--trace", trace, "--trace-records", "0"]):
        done = subprocess.run([URXE, "run", *words, "--", "true"], text=True,
                              capture_output=True)
        expect(f"{words} is refused", done.returncode in (1, 2) and
               done.stderr.startswith("urxe: "), done.stderr)
    traced(trace, "writes", "1")
    traced(f"{trace}2", "writes", "1")
    with open(f"{trace}2", "rb") as f:
        before = f.read()
    for form in ("--pcap", "--perfetto", "--html"):
        for filtered in (["--errors"], ["--follow"], ["--qp", "1"],
                         ["--wr-id", "1"], ["--program", "x"], ["--json"]):
            code, _, said = urxe_trace(form, f"{trace}.out", *filtered, trace)
            expect(f"{form} with {filtered}", code == 2 and said and
                   not os.path.exists(f"{trace}.out"), said)
        code, _, said = urxe_trace(form, f"{trace}2", trace)
        with open(f"{trace}2", "rb") as f:
            expect(f"{form} over a trace", code == 1 and "is a trace" in said
                   and f.read() == before, said)
    for words in ([], ["/nonexistent"], ["--qp", "many", trace],
                  ["/proc/self/exe"]):
        code, _, said = urxe_trace(*words)
        expect(f"trace {words} is refused", code in (1, 2) and said, said)


def main():
    for case in (whole_life, clients, connections, connections_of_before, killed,
                 killed_growing, overwritten, wrong, json_lines,
                 packets, naks, payload, environment, in_flight, extended, apart, closes, with_rooms, no_room, short_threads,
                 cancelled, destructor, handler, follow, names, fabrics, again,
                 boots, pid_namespaces, time_namespaces,
                 lost, elsewhere, by_hand, perfetto, html, multicast,
                 damaged, refused):
        if len(sys.argv) > 4 and case.__name__ not in sys.argv[4:]:
            continue
        with tempfile.TemporaryDirectory() as directory:
            case(os.path.join(directory, "trace"))
    return 1 if failed else 0


URXE, TRACED, WITHOUT = sys.argv[1:4]
sys.exit(main())
