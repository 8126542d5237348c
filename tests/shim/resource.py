#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""resource.py OBJECTS: output of "rdma resource" and "rdma statistic"

Run OBJECTS, two processes that print their objects, and compare these with the output
of the stock rdma command.  $URXE is the urxe command.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time

URXE = os.environ["URXE"]
SLOTS = 13  # bits of PD and CQ numbers below the context's slot


def run(*args):
    done = subprocess.run([URXE, "run", "--", *args], text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode or done.stderr:
        sys.exit(f"{args}: exit code {done.returncode}: {done.stderr}")
    return done.stdout


def rdma(*args):
    return json.loads(run("rdma", "-j", *args) or "[]")


def show(kind, *args):
    return rdma("resource", "show", kind, *args)


def same(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got}, not {want}")


def start(*args):
    return subprocess.Popen([URXE, "run", "--", *args], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def one(kind, **want):
    """Return the only object of a kind that has all values of `want`."""
    found = [o for o in show(kind)
             if all(o.get(k) == v for k, v in want.items())]
    same(f"{kind} with {want}", len(found), 1)
    return found[0]


def number(value):
    """Keys are hexadecimal strings in older versions of rdma."""
    return int(value, 16) if isinstance(value, str) else value


def check_counts(count):
    summary = rdma("resource", "show")[0]
    want = {"pd": 1, "cq": 2, "qp": 2, "mr": 2, "ctx": 1, "srq": 1}
    for kind, each in want.items():
        same(f"count of {kind}", summary[kind], each * count)
        same(f"listed {kind}", len(show(kind)), each * count)
    same("count of cm_id", summary["cm_id"], 0)


def check_owner(o, p):
    same("pid", o["pid"], p["pid"])
    same("comm", o["comm"], "shim-objects")


def check_process(p, peer):
    slot = number(one("mr", pid=p["pid"], mrlen=p["len"])["lkey"]) >> 23
    pdn = slot << SLOTS | p["pd"]

    check_owner(one("ctx", ctxn=slot), p)
    pd = one("pd", pdn=pdn)
    check_owner(pd, p)
    same("users of the PD", pd["users"], 6)
    same("ctxn of the PD", pd["ctxn"], slot)

    mr = one("mr", pid=p["pid"], mrlen=p["len"])
    check_owner(mr, p)
    same("lkey", number(mr["lkey"]), p["lkey"])
    same("rkey", number(mr["rkey"]), p["lkey"])
    same("pdn of the MR", mr["pdn"], pdn)

    null = one("mr", pid=p["pid"], mrlen=2**64 - 1)
    same("rkey of the null MR", null.get("rkey"), None)

    for cqn, cqe in (p["scq"], p["scqe"]), (p["rcq"], p["rcqe"]):
        cq = one("cq", cqn=slot << SLOTS | cqn)
        check_owner(cq, p)
        same("cqe", cq["cqe"], cqe)
        same("users of the CQ", cq["users"], 2)
        same("ctxn of the CQ", cq["ctxn"], slot)

    srq = one("srq", pid=p["pid"])
    check_owner(srq, p)
    same("srqn", srq["srqn"] & 0xfff, p["srq"])
    same("type of the SRQ", srq["type"], "BASIC")
    same("QPs of the SRQ", [int(q) for q in srq["lqpn"]], [p["rc"]])
    same("pdn of the SRQ", srq["pdn"], pdn)

    check_qps(p, peer, pdn)


def check_qps(p, peer, pdn):
    rc = one("qp", lqpn=p["rc"])
    check_owner(rc, p)
    for key, want in {"port": 1, "rqpn": peer["rc"], "type": "RC",
                      "state": "RTS", "rq-psn": p["rq_psn"],
                      "sq-psn": p["sq_psn"], "path-mig-state": "MIGRATED",
                      "pdn": pdn}.items():
        same(f"{key} of the RC QP", rc[key], want)
    ud = one("qp", lqpn=p["ud"])
    check_owner(ud, p)
    same("state of the UD QP", ud["state"], "RESET")
    same("type of the UD QP", ud["type"], "UD")
    for key in "port", "rqpn":
        if key in ud:
            sys.exit(f"a UD QP in RESET has {key}")


def check_filters(a, b):
    for args, want in (
            (["link", "urxe0/1"], {a["rc"], b["rc"]}),
            (["link", "urxe0"], {a["rc"], b["rc"], a["ud"], b["ud"]}),
            (["lqpn", str(a["rc"])], {a["rc"]}),
            (["link", "urxe0/1", "lqpn", str(a["rc"])], {a["rc"]}),
            (["link", "urxe0/1", "lqpn", str(a["ud"])], set()),
            (["rqpn", str(a["rc"])], {b["rc"]}),
            (["pid", str(b["pid"])], {b["rc"], b["ud"]}),
            (["type", "UD"], {a["ud"], b["ud"]}),
            (["state", "RTS"], {a["rc"], b["rc"]})):
        same(f"qp {args}", {q["lqpn"] for q in show("qp", *args)}, want)
    mrn = one("mr", pid=b["pid"], mrlen=b["len"])["mrn"]
    same("mr mrn", [m["mrn"] for m in show("mr", "mrn", str(mrn))], [mrn])
    same("no such mr", show("mr", "mrn", "9999999"), [])
    same("stat mr", [m["mrn"] for m in rdma("statistic", "show", "mr", "mrn",
                                            str(mrn))], [mrn])


def check_text(p):
    text = run("rdma", "resource", "show", "qp", "lqpn", str(p["rc"]))
    if not re.match(rf"link urxe0/1 lqpn {p['rc']} rqpn \d+ type RC state RTS",
                    text):
        sys.exit(f"text: {text}")
    text = run("rdma", "-dd", "resource", "show", "mr", "pid", str(p["pid"]))
    if f"drv_iova 0x{p['addr']:x}" not in text:
        sys.exit(f"details: {text}")
    text = run("rdma", "system")
    if "netns shared" not in text:
        sys.exit(f"system: {text}")


def check_statistic():
    stat = rdma("statistic", "show")
    same("ports", len(stat), 1)
    names = run("ls", "/sys/class/infiniband/urxe0/ports/1/hw_counters")
    for name in set(names.split()) - {"lifespan"}:
        value = run("cat", "/sys/class/infiniband/urxe0/ports/1/hw_counters/"
                    + name)
        same(name, stat[0][name], int(value))
    if not stat[0]["sent_pkts"]:
        sys.exit("no packets were counted")
    same("one port", rdma("statistic", "show", "link", "urxe0/1"), stat)
    same("QP counters", rdma("statistic", "qp", "show"), [])
    same("QP mode", rdma("statistic", "qp", "mode")[0]["mode"], "qp auto off")


def check_info(a, b):
    done = subprocess.run([URXE, "info", "--fabric",
                           os.environ["URXE_FABRIC"]], text=True, timeout=600,
                          stdout=subprocess.PIPE, check=True)
    for p in a, b:
        if not re.search(rf"^ +{p['pid']} shim-objects +1 +2 +1 +2 +2 +1 ",
                         done.stdout, re.M):
            sys.exit(f"urxe info: {done.stdout}")


def check_two(objects):
    child = start(objects)
    a, b = json.loads(child.stdout.readline())
    check_counts(2)
    check_process(a, b)
    check_process(b, a)
    check_filters(a, b)
    check_text(a)
    check_statistic()
    check_info(a, b)

    child.stdin.write("x\n")
    child.stdin.flush()
    same("answer", child.stdout.readline(), "killed\n")
    check_counts(1)
    same("the process that is left", {o["pid"] for o in show("qp")}, {a["pid"]})
    child.stdin.close()
    same("exit code", child.wait(timeout=600), 0)
    check_counts(0)


def check_many(objects, count):
    """More objects than fit in one message."""
    child = start(objects, str(count))
    same("answer", child.stdout.readline(), "ready\n")
    same("many QPs", len({q["lqpn"] for q in show("qp")}), count)
    child.stdin.close()
    same("exit code", child.wait(timeout=600), 0)


def check_cm_ids():
    """A waiting server, and its cm_id after it was killed."""
    if not shutil.which("rping"):
        return
    server = start("rping", "-s", "-a", "127.0.0.1", "-p", "7471")
    ids = []
    for _ in range(100):
        ids = show("cm_id")
        if ids and ids[0]["state"] == "LISTEN":
            break
        time.sleep(0.1)
    same("cm_ids", len(ids), 1)
    for key, want in {"state": "LISTEN", "ps": "TCP", "pid": server.pid,
                      "comm": "rping", "src-addr": "127.0.0.1:7471"}.items():
        same(f"{key} of the cm_id", ids[0][key], want)
    same("count of cm_id", rdma("resource", "show")[0]["cm_id"], 1)
    same("by port", show("cm_id", "src-port", "7471"), ids)
    same("of another port", show("cm_id", "src-port", "7472"), [])
    server.kill()
    server.wait()
    same("cm_ids of a killed process", show("cm_id"), [])


def main():
    if not shutil.which("rdma"):
        print("skipped: rdma is not installed")
        sys.exit(77)
    check_two(sys.argv[1])
    check_many(sys.argv[1], 2000)
    check_cm_ids()


main()
