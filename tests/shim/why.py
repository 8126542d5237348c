#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""why.py URXE STALLS [STALLS_CM]: urxe why and urxe top report what programs wait for.

Each case runs two stock programs in a separate fabric.  When both wait, they report it,
and urxe why is run."""
import concurrent.futures
import contextlib
import fcntl
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

URXE, STALLS, *STALLS_CM = (os.path.realpath(path) for path in sys.argv[1:])
LIMIT = 120

base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
home = tempfile.mkdtemp(prefix="urxe-test.", dir=base)
ENV = dict(os.environ, URXE_DIR=home, TERM="xterm")
for variable in ("URXE_ADVERSARY", "URXE_FABRIC", "URXE_KEEP", "URXE_FAULTS"):
    ENV.pop(variable, None)
failures = []


def expect(good, what):
    if not good:
        failures.append(what)
        print("failed:", what, flush=True)
    return good


def urxe(*words):
    return subprocess.run([URXE, *words], env=ENV, capture_output=True,
                          text=True, timeout=LIMIT, check=False)


def until(right, *words):
    """Repeat until right(done) is true: the writer may get no CPU between two samples."""
    last = time.monotonic() + LIMIT
    while not right(done := urxe(*words)):
        if not expect(time.monotonic() < last, f"{done}"):
            return


class Pair:
    """A server and a client in a separate fabric."""

    def __init__(self, fabric, *command, run=(), env=None):
        self.fabric = fabric
        self.main = subprocess.Popen(
            [URXE, "run", "--fabric", fabric, *run, "--", *command],
            env=env or ENV,
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.main.stdout.readline()
        self.skipped = line.startswith("skip")
        if self.skipped:
            print(fabric, line, end="")
            return
        names = json.loads(line)
        self.server, self.client = names["server"], names["client"]

    def tell(self, word):
        print(word, file=self.main.stdin, flush=True)

    def do(self, word="go"):
        self.tell(word)
        self.main.stdout.readline()

    def why(self, *words):
        return urxe("why", "--fabric", self.fabric, *words)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.skipped:
            for end in (self.server, self.client):
                try:
                    os.kill(end["pid"], signal.SIGCONT)
                except ProcessLookupError:
                    pass
        self.main.stdin.close()
        if self.main.wait(LIMIT) not in (0, 77):
            expect(False, f"{self.fabric} ended with {self.main.returncode}")
        self.main.stdout.close()


def await_stopped(pid):
    last = time.monotonic() + LIMIT
    while True:
        with open(f"/proc/{pid}/stat") as f:
            if f.read().rsplit(")", 1)[1].split()[0] == "T":
                return
        if time.monotonic() > last:
            raise TimeoutError(f"{pid} does not stop")
        time.sleep(0.01)


def says(pair, code, *texts, words=()):
    """Check the exit status of urxe why, and that its output contains the texts."""
    done = pair.why(*words)
    missing = [t for t in texts if t not in done.stdout]
    expect(done.returncode == code and not missing and not done.stderr,
           f"{pair.fabric} {words}: {done.returncode}, not {code}; without "
           f"{missing}: {done.stdout}{done.stderr}")
    return done.stdout


def comes(pair, code, *texts, words=()):
    """The same, repeated until a thread has reached that state."""
    last = time.monotonic() + LIMIT
    while True:
        done = pair.why(*words)
        if done.returncode == code and all(t in done.stdout for t in texts):
            return done.stdout
        if not expect(time.monotonic() < last, f"{pair.fabric}: {code} {texts} "
                      f"never come: {done.stdout}{done.stderr}"):
            return ""


def who(end, name):
    return f"PID {end['pid']} (stall-{name})"


def qp(end):
    return f"QP {end['qpn']:#x}"


def try_rnr():
    with Pair("rnr", STALLS, "rnr") as p:
        server, client = who(p.server, "server"), who(p.client, "client")
        texts = (f"{client}, {qp(p.client)}: SEND wr_id 77 waits for a receive "
                 f"(RNR): {qp(p.server)} of {server} has no receive posted; 2 more",
                 "rnr for ", f"ibv_post_recv by {server}", "rnr_retry is 7")
        says(p, 1, *texts)
        says(p, 1, *texts, words=[str(p.client["pid"])])
        says(p, 1, *texts, words=[hex(p.client["qpn"])])
        says(p, 0, "nothing stalls", words=[str(p.server["pid"])])
        done = p.why("0xffffff")
        expect(done.returncode == 2 and "no QP 0xffffff" in done.stderr, f"{done}")
        os.kill(p.server["pid"], signal.SIGSTOP)
        await_stopped(p.server["pid"])
        says(p, 1, f"of {server} has no receive posted, and the process is stopped",
             "SIGCONT",
             f"{server}: the process is stopped")
        os.kill(p.server["pid"], signal.SIGCONT)
        for _ in range(3):
            p.do()
        # the completions are soon in the CQs
        last = time.monotonic() + LIMIT
        while p.why().stdout.count("3 unpolled completions") < 2:
            if not expect(time.monotonic() < last, "it waits on"):
                return
        expect("RNR" not in says(p, 1), "it waits on")


def try_answers():
    with Pair("init", STALLS, "init") as p:
        says(p, 1, f"for a response of {qp(p.server)} of "
             f"{who(p.server, 'server')}: the remote QP is in INIT", "ibv_modify_qp to RTR",
             "peer-state for", "timeout is 0")
        p.do()
    with Pair("err", STALLS, "err") as p:
        says(p, 1, "the remote QP is in ERR and does not respond")
    with Pair("gone", STALLS, "gone") as p:
        says(p, 1, f"for a response of {qp(p.server)}: no such QP exists")
    with Pair("psn", STALLS, "psn") as p:
        says(p, 1, "this QP sends PSN 0x3e8, the remote QP expects PSN 0x3ed",
             "psn for")
    with Pair("other", STALLS, "other") as p:
        says(p, 1, f"the remote QP is connected to {qp(p.server)}, not to this QP")
    with Pair("roce", STALLS, "roce") as p:
        says(p, 1, "the GID of the remote QP is of RoCE v", "no-answer for",
             "QPs connected with GIDs of one RoCE version (sgid_index)")


def try_broken():
    """The cause of a broken QP that others wait for."""
    with Pair("broken", STALLS, "broken") as p:
        says(p, 0, "1 receive is posted")
        p.do()
        says(p, 1, f"{qp(p.client)}: 1 receive is posted", "no-sender for",
             f"{qp(p.server)} is in ERR; cause: RDMA_WRITE wr_id 8 of "
             f"{qp(p.server)}:", "no such key: never issued")


def try_traffic():
    """A process that does not wait is not reported; it has rates."""
    def idle(done):
        return done.returncode == 0 and "nothing stalls" in done.stdout

    def rates(done):
        top = json.loads(done.stdout)
        mine = [q for q in top["qps"] if q["qpn"] == p.client["qpn"]][0]
        packets = mine["packets_per_second"]
        # WRITEs of 8 bytes, one packet each
        return packets > 0 and abs(mine["bytes_per_second"] / packets - 8) < 4

    def first_row(done):
        row = done.stdout.splitlines()[4].split()
        return row[0] == str(p.client["pid"]) and row[6] != "0"

    with Pair("traffic", STALLS, "traffic") as p:
        until(idle, "why", "--fabric", "traffic")
        until(rates, "top", "--json", "--fabric", "traffic")
        until(first_row, "top", "-1", "--sort", "packets", "--fabric", "traffic")


def try_damage():
    """urxe why and urxe top survive a damaged arena."""
    with Pair("damage", STALLS, "rnr") as p:
        for end in (p.server, p.client):
            os.kill(end["pid"], signal.SIGSTOP)
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        for _ in range(6):
            for name in ["device"] + [f"ctx/{f}" for f in
                                      os.listdir(f"{home}/damage/ctx")]:
                spoil(f"{home}/damage/{name}", chance)
            done = p.why()
            expect(done.returncode in (0, 1, 2), f"seed {seed}: {done}")
            done = urxe("top", "--json", "-d", "0.1", "--fabric", "damage")
            if expect(done.returncode in (0, 2), f"seed {seed}: {done}") and \
                    done.returncode == 0:
                json.loads(done.stdout)
        for end in (p.server, p.client):
            # one is the parent of the other, which dies with it
            with contextlib.suppress(ProcessLookupError):
                os.kill(end["pid"], signal.SIGKILL)
        p.main.wait(LIMIT)
        p.main.returncode = 0


def spoil(path, chance):
    """Damage random bytes of the file, except its header."""
    size = 48 << 20
    with open(path, "r+b") as f:
        fd, at, runs = f.fileno(), 4096, []
        while at < size:
            try:
                first = os.lseek(fd, at, os.SEEK_DATA)
            except OSError:
                break
            at = os.lseek(fd, first, os.SEEK_HOLE)
            if first < size:
                runs.append((first, min(at, size)))
        for _ in range(chance.choice([1, 20, 300]) if runs else 0):
            os.pwrite(fd, chance.choice([b"\xff", b"\0", chance.randbytes(4),
                                         b"\xff" * 8]),
                      chance.randrange(*chance.choice(runs)))


def try_port():
    with Pair("port", STALLS, "later") as p:
        says(p, 0, "nothing stalls")
        urxe("port", "down", "--fabric", "port")
        p.do()
        says(p, 1, "for a response: the port is down", "urxe port up", "port-down")
        urxe("port", "up", "--fabric", "port")


def try_queues():
    with Pair("sqd", STALLS, "sqd") as p:
        says(p, 1, "SEND wr_id 77 waits for the QP to leave SQD",
             f"ibv_modify_qp to RTS by {who(p.client, 'client')}")
    for own in "", "own-":
        with Pair("unsignaled", STALLS, own + "unsignaled") as p:
            says(p, 1, "all WRs are done and unsignaled", "sq-full for")
        with Pair("unpolled", STALLS, own + "unpolled") as p:
            says(p, 1, f"16 completions in CQ {p.client['cq']} are not polled",
                 "sq-full for", "cq-unread for")


def try_completions():
    with Pair("overrun", STALLS, "overrun") as p:
        says(p, 1, f"CQ {p.client['cq']} of 16 entries was overrun")
    with Pair("unread", STALLS, "unread") as p:
        says(p, 1, "has 2 unpolled completions (16 entries); the oldest "
             f"is of {qp(p.client)}, wr_id 5", "cq-unread for >",
             words=[hex(p.client["qpn"])])
    with Pair("unarmed", STALLS, "unarmed") as p:
        says(p, 1, "has 2 unpolled completions (16 entries)",
             "the CQ is not armed", "so ibv_get_cq_event does not return",
             "ibv_req_notify_cq")
    with Pair("solicited", STALLS, "solicited") as p:
        says(p, 1, "the CQ is armed for solicited completions only", "cq-solicited for")
    with Pair("moderated", STALLS, "moderated") as p:
        says(p, 1, "moderation (ibv_modify_cq) delays the event: 2 of 10 "
             "completions, period 0 us", "cq-moderated for")
    with Pair("event", STALLS, "event") as p:
        says(p, 1, "1 event is not read, 2 completions are not polled",
             f"ibv_get_cq_event by {who(p.client, 'client')}")


def try_receives():
    with Pair("receives", STALLS, "receives") as p:
        says(p, 0, f"{qp(p.server)}: 1 receive is posted: no message arrives from "
             f"{qp(p.client)} of {who(p.client, 'client')}, which is in RTS",
             "nothing stalls")
        p.do("kill")
        says(p, 1, "1 receive is posted: no message arrives, and none can",
             "no-sender")


def try_processes():
    with Pair("stopped", STALLS, "stopped") as p:
        p.tell("go")
        await_stopped(p.server["pid"])
        says(p, 1, f"{who(p.server, 'server')}: the process is stopped")
        top = json.loads(urxe("top", "--json", "--fabric", "stopped").stdout)
        states = {q["pid"]: q["process_state"] for q in top["qps"]}
        expect(states[p.server["pid"]] == "T", f"{states}")
        os.kill(p.server["pid"], signal.SIGCONT)
    # all posted WRs are delayed for a long time
    with Pair("flight", STALLS, "flight",
              run=["--adversary=1,none,complete=1000,ticks=10000"]) as p:
        await_stopped(p.client["pid"])
        says(p, 1, "RDMA_WRITE wr_id 5 waits because the adversary or a "
             "fault delays it")
    with Pair("call", STALLS, "call") as p:
        if not p.skipped:
            says(p, 1, f"{who(p.client, 'client')} is stopped while it "
                 f"executes a request to {qp(p.server)}", "in-call for")
            p.do()
            comes(p, 1, "waits in ibv_dereg_mr or ibv_rereg_mr until no "
                  f"request uses the object: {qp(p.client)} of "
                  f"{who(p.client, 'client')} executes such a request, and the "
                  "process is stopped", "in-use for")
    with Pair("atomic", STALLS, "atomic") as p:
        if not p.skipped:
            p.do()
            says(p, 1, "ATOMIC_FETCH_AND_ADD wr_id 9 waits for a response",
                 f"{who(p.client, 'client')} is stopped and holds a lock of "
                 "atomic operations",
                 f"SIGCONT to {who(p.client, 'client')}")


def try_calls():
    """Calls in which a thread is blocked are reported first."""
    with Pair("armed", STALLS, "armed") as p:
        text = comes(p, 0, "waits in ibv_get_cq_event for an event of CQ "
                     f"{p.client['cq']} (armed, 0 unread)", "nothing stalls",
                     "would end it: a completion in a CQ that is armed")
        expect(text.splitlines()[1].split()[0] == "get-cq-event", text)
    with Pair("async", STALLS, "async") as p:
        comes(p, 0, "waits in ibv_get_async_event", "get-async-event for",
              "nothing stalls")
    with Pair("unarmed-first", STALLS, "unarmed") as p:
        text = comes(p, 1, "(not armed, 2 unread)", "cq-not-armed")
        expect(text.splitlines()[1].split()[0] == "get-cq-event", text)


def try_destroy():
    """Calls that destroy an object with unacknowledged events."""
    client, ends = "(stall-client): waits in ", "would end it: "
    with Pair("destroy-cq", STALLS, "destroy-cq") as p:
        text = comes(p, 1, f"{client}ibv_destroy_cq of CQ {p.client['cq']} until "
                     "1 event is acknowledged", "unacked for ",
                     ends + "ibv_ack_cq_events")
        expect(text.splitlines()[1].split()[0] == "unacked", text)
    with Pair("destroy-qp", STALLS, "destroy-qp") as p:
        comes(p, 1, f"{client}ibv_destroy_qp of {qp(p.client)} until 1 event is "
              "acknowledged", ends + "ibv_ack_async_event")
    with Pair("destroy-srq", STALLS, "destroy-srq") as p:
        comes(p, 1, f"{client}ibv_destroy_srq of SRQ ", "until 1 event is "
              "acknowledged", ends + "ibv_ack_async_event")


def try_failed():
    """Failed WRs are reported also after their QPs were destroyed."""
    with Pair("failed", STALLS, "failed") as p:
        p.do()
        text = says(p, 0, f"{who(p.client, 'client')}, {qp(p.client)}: RDMA_WRITE "
                    "wr_id 21 failed with REM_ACCESS_ERR (10): rkey 0x",
                    f"{who(p.server, 'server')}, {qp(p.server)}: refused "
                    f"RDMA_WRITE wr_id 21 of {qp(p.client)}: rkey 0x",
                    "failed for", "nothing stalls")
        expect(text.count("; the QP is destroyed") == 2, text)
        expect(text.count("; rule: ") == 2 and "; usual cause: " in text, text)
        says(p, 0, "wr_id 21 failed", words=[str(p.client["pid"])])
        says(p, 0, "wr_id 21 failed", words=[hex(p.client["qpn"])])


def try_cm_calls():
    if not STALLS_CM:
        return
    with Pair("listens", *STALLS_CM) as p:
        server = who(p.server, "server")
        says(p, 1, f"{server}: rdma_listen at port ", " of 127.0.0.1, backlog 1; "
             "1 request is not fetched, 0 exceed the backlog", "listens for")
        p.do("event")
        p.do("accept")
        p.do("sleep")
        comes(p, 1, f"{server}: thread ", "waits in rdma_get_cm_event for "
              "RDMA_CM_EVENT_CONNECT_REQUEST at port",
              ", or RDMA_CM_EVENT_ESTABLISHED of the connection with port",
              "whose QP 0x", "get-cm-event for", "rdma_connect to the listener; ")
        top = urxe("top", "-1", "--fabric", "listens").stdout
        expect(re.search(rf"{p.server['pid']}  stall-server +listens at port \d+ "
                         "of 127.0.0.1, backlog 1", top), top)
        top = json.loads(urxe("top", "--json", "--fabric", "listens").stdout)
        expect([(l["pid"], l["address"], l["backlog"], l["waiting"])
                for l in top["listeners"]] ==
               [(p.server["pid"], "127.0.0.1", 1, 0)], f"{top['listeners']}")
    for word, call in (("destroy", "rdma_destroy_id"),
                       ("migrate", "rdma_migrate_id")):
        with Pair(word, *STALLS_CM) as p:
            p.do("keep")
            p.do(word)
            text = comes(p, 1, f"waits in {call} until 1 event is acknowledged; "
                         "the last one is RDMA_CM_EVENT_CONNECT_REQUEST",
                         "would end it: rdma_ack_cm_event")
            expect(text.splitlines()[1].split()[0] == "unacked", text)
    with Pair("leave", *STALLS_CM) as p:
        p.do("leave")
        comes(p, 1, "waits in rdma_leave_multicast until 1 event is "
              "acknowledged; the last one is RDMA_CM_EVENT_MULTICAST_JOIN")


def try_checked():
    """The referee reports the hang while it lasts."""
    if not STALLS_CM:
        return
    found = f"{home}/found"
    env = dict(ENV, URXE_CHECK="warning", URXE_CHECK_FOUND=found)
    with Pair("checked-cq", STALLS, "destroy-cq",
              env=dict(ENV, URXE_CHECK="warning")) as p:
        comes(p, 1, "waits in ibv_destroy_cq", "unacked for")
    with Pair("checked", *STALLS_CM, env=env) as p:
        p.do("keep")
        p.do("destroy")
        comes(p, 1, "waits in rdma_destroy_id until 1 event is acknowledged")
        last = time.monotonic() + LIMIT
        while not os.path.exists(found) and time.monotonic() < last:
            time.sleep(0.1)
        with open(found) as f:
            line = f.readline().split("\t")
        expect(line[2:4] == ["error", "destroy-stuck"] and
               line[6] == "rdma_destroy_id" and
               "waits forever for the acknowledgement of 1 event of its "
               "rdma_cm_id" in line[7] and
               line[9].startswith("here|destroy|"), f"{line}")


def try_cm():
    if not STALLS_CM:
        return
    with Pair("cm", *STALLS_CM) as p:
        server, client = who(p.server, "server"), who(p.client, "client")
        says(p, 1, f"{server}: 1 rdma_cm event is not read, the oldest "
             "RDMA_CM_EVENT_CONNECT_REQUEST", f"{client}: rdma_connect to port",
             f"{server} has not accepted", f"rdma_get_cm_event by {server}")
        p.do("event")
        says(p, 1, f"{server}: a connection request from {client} is neither "
             "accepted nor rejected", f"rdma_accept or rdma_reject by {server}")
        p.do("accept")
        says(p, 1, f"{client}: 1 rdma_cm event is not read, the oldest "
             "RDMA_CM_EVENT_CONNECT_RESPONSE")


def try_dead():
    """Killed processes are not waited for, neither by peers nor by urxe why."""
    with Pair("dead", STALLS, "rnr") as p:
        p.do("kill")
        top = json.loads(urxe("top", "-1", "--json", "--fabric", "dead").stdout)
        expect(all(s["pid"] != p.client["pid"] for s in top["stalls"]), f"{top}")
        says(p, 0)


def try_json():
    with Pair("json", STALLS, "rnr") as p:
        done = urxe("top", "-1", "--json", "--fabric", "json")
        top = json.loads(done.stdout)
        expect(top["fabric"] == "json" and top["port"] == "ACTIVE", f"{top}")
        by = {q["qpn"]: q for q in top["qps"]}
        mine = by[p.client["qpn"]]
        for key, value in {"pid": p.client["pid"], "program": "stall-client",
                           "type": "RC", "state": "RTS", "alive": True,
                           "peer": p.server["qpn"], "sends_queued": 3,
                           "receives_posted": 0, "srq": False, "waits": "rnr",
                           "send_cq": p.client["cq"]}.items():
            expect(mine[key] == value, f"{key}: {mine[key]}, not {value}")
        expect(len(top["qps"]) == 4 and len(top["cqs"]) == 2, f"{top}")
        stall = [s for s in top["stalls"] if s["kind"] == "rnr"]
        expect(len(stall) == 1 and stall[0]["stalls"] is True and
               stall[0]["wr_id"] == 77 and stall[0]["queued"] == 3 and
               stall[0]["peer"] == p.server["qpn"] and
               stall[0]["seconds"] >= top["seconds"] and
               stall[0]["longer"] is False, f"{stall}")
        cq = [c for c in top["cqs"] if c["pid"] == p.client["pid"]][0]
        expect(cq["entries"] == 16 and cq["unread"] == 0 and
               cq["armed"] == "none" and not cq["channel"], f"{cq}")
        # the same as text, also without a terminal
        for words in (["-1"], []):
            text = urxe("top", *words, "--fabric", "json").stdout
            expect(re.search(rf"{p.client['pid']}  stall-client "
                             rf"{p.client['qpn']:#x} +RC +RTS .* 3 +0 rnr ",
                             text) and "\033" not in text, text)
        done = urxe("top", "-1", "--fabric", "nosuch")
        expect(done.returncode == 2 and "no fabric nosuch" in done.stderr,
               f"{done}")
        expect(not os.path.exists(os.path.join(home, "nosuch")), "it was made")


def try_json_forms():
    """urxe why and urxe info as JSON."""
    with Pair("forms", STALLS, "rnr") as p:
        done = p.why("--json")
        why = json.loads(done.stdout)
        stall = [s for s in why["stalls"] if s["stalls"]]
        expect(done.returncode == 1 and why["fabric"] == "forms" and
               len(stall) == 1 and stall[0]["kind"] == "rnr" and
               stall[0]["pid"] == p.client["pid"] and
               stall[0]["tid"] is None and stall[0]["wr_id"] == 77, f"{done}")
        done = p.why("--json", str(p.server["pid"]))
        expect(done.returncode == 0 and
               not any(s["stalls"] for s in json.loads(done.stdout)["stalls"]),
               f"{done}")
        done = urxe("info", "--json", "--fabric", "forms")
        info = json.loads(done.stdout)
        fabric, = info["fabrics"]
        expect(fabric["fabric"] == "forms" and fabric["port"] == "ACTIVE" and
               fabric["directory"] == f"{home}/forms" and
               fabric["objects"]["qp"] == 4 and fabric["wire"] is None and
               fabric["limits"]["qp"] >= 4 and
               all(type(n) is int for n in fabric["counters"].values()) and
               fabric["gids"][1]["index"] == fabric["gids"][1]["roce"] - 1 and
               {(c["pid"], c["program"], c["objects"]["qp"], c["adversary"])
                for c in fabric["contexts"]} ==
               {(end["pid"], f"stall-{name}", 2, None) for name, end in
                (("server", p.server), ("client", p.client))}, f"{fabric}")
        every = json.loads(urxe("info", "--json").stdout)["fabrics"]
        expect("forms" in [f["fabric"] for f in every], f"{every}")
        done = urxe("info", "--json", "--names")
        expect(done.returncode == 2, f"{done}")
    with Pair("blocked", STALLS, "destroy-qp") as p:
        comes(p, 1, "unacked for")
        stall = json.loads(p.why("--json").stdout)["stalls"][0]
        expect(stall["kind"] == "unacked" and
               stall["tid"] == p.client["pid"], f"{stall}")


def cooked(fd):
    return bool(termios.tcgetattr(fd)[3] & termios.ICANON)


class Terminal:
    """A terminal with a job, as of a shell: print how the job ended, and whether it was
    stopped, and continue it."""

    def __init__(self, *words, env=None):
        self.got = b""
        self.pid, self.fd = pty.fork()
        if self.pid:
            return
        job = os.fork()
        if not job:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpid())
            # shells start background processes with SIGINT ignored
            for sig in (signal.SIGTTOU, signal.SIGINT, signal.SIGQUIT):
                signal.signal(sig, signal.SIG_DFL)
            os.execve(URXE, [URXE, *words], env or ENV)
        print("job", job, flush=True)
        while True:
            status = os.waitpid(job, os.WUNTRACED)[1]
            if not os.WIFSTOPPED(status):
                break
            print("stopped", cooked(0), flush=True)
            os.killpg(job, signal.SIGCONT)
        print("ended", os.waitstatus_to_exitcode(status), cooked(0), flush=True)
        os._exit(0)

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, pattern, what):
        """Return the output up to the pattern, which must appear."""
        last = time.monotonic() + LIMIT
        while not (found := re.search(pattern, self.got, re.S)):
            if time.monotonic() > last:
                raise TimeoutError(f"{what}: {self.got[-3000:]!r}")
            if not select.select([self.fd], [], [], 1)[0]:
                continue
            try:
                part = os.read(self.fd, 4096)
            except OSError:
                part = b""
            if not part:
                raise EOFError(f"{what}: {self.got[-3000:]!r}")
            self.got += part
        seen, self.got = self.got[:found.end()], self.got[found.end():]
        return seen

    def type(self, keys):
        os.write(self.fd, keys)

    def job(self):
        return int(re.search(rb"job (\d+)\r", self.until(rb"job \d+\r", "job"))[1])

    def end(self, how):
        """Check the exit status, and that the terminal settings are restored."""
        self.until(rb"ended %d True" % how, f"it ends with {how}")
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def try_terminal():
    with Pair("tty", STALLS, "rnr") as p:
        t = Terminal("top", "--fabric", "tty", "-d", "5")
        t.until(rb"\x1b\[\?1049h.*WAITS.*rnr.*\x1b\[J", "the first screen")
        expect(not cooked(t.fd), "keys want a line")
        # sorted by QP, the server is first; sorted by waits, the client
        first = rb"\x1b\[H(?:[^\n]*\n){4} *"
        t.type(b"i")
        t.until(first + rb"\d+[ T] \S+ +%#x .*\x1b\[J"
                % min(p.server["qpn"], p.client["qpn"]), "sorted by QP")
        t.type(b"w")
        t.until(first + rb"%d .*\x1b\[J" % p.client["pid"], "sorted by waits")
        # on a small screen, lines are truncated, and there are fewer of them
        t.size(8, 40)
        screen = t.until(rb"\x1b\[Hurxe top: fabric tty, port ACTIVE; 4 QPs\x1b\[K"
                         rb".*?\x1b\[J", "another size")
        lines = screen.split(b"\x1b[H")[-1].split(b"\r\n")
        expect(len(lines) <= 8 and
               all(len(re.sub(rb"\x1b\[[KJH]", b"", l)) <= 40 for l in lines),
               f"{lines}")
        # stopped and continued; the terminal settings are restored in between
        t.type(b"\x1a")
        t.until(rb"\x1b\[\?1049l.*stopped True.*\x1b\[\?1049h.*\x1b\[J",
                "it stops and continues")
        expect(not cooked(t.fd), "keys want a line again")
        t.type(b"q")
        t.until(rb"\x1b\[\?1049l", "q")
        t.end(0)
        # a signal also restores the terminal settings
        for sig in (signal.SIGINT, signal.SIGTERM):
            t = Terminal("top", "--fabric", "tty")
            job = t.job()
            t.until(rb"WAITS", "the screen")
            if sig == signal.SIGINT:
                t.type(b"\x03")
            else:
                os.kill(job, sig)
            t.until(rb"\x1b\[\?1049l", f"{sig.name}")
            t.end(-sig)
        t = Terminal("top", "--fabric", "tty", env=dict(ENV, TERM="dumb"))
        screen = t.until(rb"WAITS.*rnr", "TERM=dumb")
        expect(b"\x1b" not in screen, f"dumb: {screen!r}")
        t.end(0)


def try_timeout():
    """At the time limit, urxe run reports what the program waits for."""
    for limit in ("0.5s", "3s", "30s"):  # until the program waits
        done = urxe("run", "--fabric", "late", "--timeout", limit, "--", "sh",
                    "-c", f"sleep 100 | {STALLS} rnr")
        if "waits for a receive (RNR)" in done.stderr:
            break
    expect(done.returncode == 124 and "waits for a receive (RNR)" in done.stderr,
           f"{done}")


tries = [try_rnr, try_answers, try_port, try_queues, try_completions,
         try_receives, try_processes, try_calls, try_destroy, try_failed,
         try_cm, try_cm_calls, try_checked, try_dead, try_json, try_json_forms, try_timeout,
         try_broken, try_traffic, try_damage]
try:
    try_terminal()  # forks, so it runs before threads are started
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(one) for one in tries]:
            done.result()
finally:
    shutil.rmtree(home)
sys.exit(1 if failures else 0)
