#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""urxe bench: output formats, refused options, a single CPU, and signals.
Usage: bench.py URXE"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

HANGS = 600  # seconds
URXE = sys.argv[1]
SVG = "{http://www.w3.org/2000/svg}"
CHARTS = {"Latency: half a round trip": 9, "Bandwidth": 9,
          "Message rate, 8 bytes": 7}
PROGRAMS = {"UCX": "ucx_perftest", "libfabric": "fi_pingpong"}
failed = []


def expect(what, is_so, said=""):
    if not is_so:
        failed.append(what)
        print(f"FAILED: {what}\n{said}", flush=True)


def bench(*options, before=()):
    return subprocess.run([*before, URXE, "bench", *options],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=HANGS)


def fabrics():
    """Return the fabrics of urxe bench that still exist."""
    return [os.path.join(d, n) for d, ds, fs in os.walk(os.environ["URXE_DIR"])
            for n in ds + fs if n.startswith("bench-")]


def is_measured(by, cpus):
    return by not in PROGRAMS or (cpus > 1 and shutil.which(PROGRAMS[by]))


def rows_are_right(data):
    count = {}
    for row in data["rows"]:
        count[row["by"]] = count.get(row["by"], 0) + 1
        if not is_measured(row["by"], data["cpus"]):
            continue
        figures = [row[k] for k in ("median", "low", "high", "best", "worst")]
        expect(f"{row['name']}: figures", all(
            isinstance(f, float) and f > 0 for f in figures), row)
        if None not in figures:
            expect(f"{row['name']}: in order",
                   row["low"] <= row["median"] <= row["high"], row)
        if "of" in row:
            expect(f"{row['name']}: its ratio", row["ratio"] > 0 and any(
                r["name"] == row["of"] for r in data["rows"]), row)
    # more rows may be added
    expect("all rows", all(count.get(by, 0) >= n for by, n in {
        "raw": 8, "urxe": 19, "UCX": 5, "libfabric": 1}.items()), count)


def charts_are_right(data, root):
    drawn = [title.text for g in root.iter(SVG + "g")
             for title in g.findall(SVG + "title")]
    names = [t.text for t in root.iter(SVG + "text")]
    wanted = []
    for chart in data["charts"]:
        for line in chart["series"]:
            points = line["points"]
            values = [p["y"] for p in points if p["y"] is not None]
            if values:
                wanted.append(line["name"])
            if line["by"] == "libfabric" or not is_measured(
                    line["by"], data["cpus"]):
                continue  # libfabric has a row only
            length = CHARTS[chart["title"]]
            if "x" not in points[0]:
                length = 1
            # on a busy machine, a short run may give 0.000 GB/s
            expect(f"{chart['title']}, {line['name']}: points",
                   len(points) == len(values) == length and
                   min(values) >= 0 and max(values) > 0,
                   points)
    expect("all charts", [c["title"] for c in data["charts"]] == list(CHARTS))
    expect("all lines are drawn", sorted(drawn) == sorted(wanted),
           f"{drawn}\n{wanted}")
    expect("all lines have names", all(n in names for n in wanted), names)


def page_is_right(data, page):
    """The page has each row once, with median, range and ratio at each priority."""
    regimes = list(dict.fromkeys(row["regime"] for row in data["rows"]))
    lines = {}
    for line in page.splitlines():
        if line.startswith("| "):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            lines[cells[0]] = cells[1:]
    for row in data["rows"]:
        cells = lines.get(row["name"], [])
        expect(f"{row['name']}: in the page",
               len(cells) == 3 * len(regimes) + 1, cells)
        if None in (row["best"], row["worst"]) or not cells:
            continue
        said = cells[3 * regimes.index(row["regime"]) + 1].split(" to ")
        told = sorted([row["best"], row["worst"]])
        expect(f"{row['name']}: minimum and maximum", len(said) == 2
               and all(abs(float(a) - b) <= max(0.01 * b, 0.01)
                       for a, b in zip(said, told)), (cells, told))
    expect("the load is measured", data["load"] is None or data["load"] >= 0)
    expect("the load is printed", "Load average before: " in page)


def outputs():
    with tempfile.TemporaryDirectory() as here:
        paths = [f"{here}/figures.json", f"{here}/charts.svg", f"{here}/t.md"]
        p = bench("--quick", "--rounds", "2", "--json", paths[0],
                  "--svg", paths[1], "--markdown", paths[2])
        expect("a run", p.returncode == 0, p.stdout + p.stderr)
        if p.returncode:
            return
        text = [open(path, encoding="utf-8").read() for path in paths]
    data = json.loads(text[0])
    rows_are_right(data)
    charts_are_right(data, xml.fromstring(text[1]))
    for row in data["rows"]:
        expect(f"{row['name']}: in the text", row["name"] in p.stdout)
    page_is_right(data, text[2])
    expect("no fabric is left", not fabrics(), fabrics())


def refusals():
    for options in (["--bogus"], ["--rounds", "0"], ["--rounds", "1e3"],
                    ["--rounds"], ["--json"], ["word"]):
        p = bench(*options)
        expect(f"{options} is refused", p.returncode == 2 and
               "usage: urxe bench" in p.stderr and not p.stdout,
               f"{p.returncode}\n{p.stderr}")
    p = bench("--json", "/nowhere/figures")
    expect("a file that cannot be created", p.returncode == 1 and
           "/nowhere/figures: No such file" in p.stderr, p.stderr)


def one_cpu():
    cpu = str(min(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as here:
        p = bench("--quick", "--rounds", "1", "--json", f"{here}/figures",
                  before=["taskset", "-c", cpu])
        expect("one CPU", p.returncode == 0, p.stdout + p.stderr)
        if p.returncode:
            return
        with open(f"{here}/figures", encoding="utf-8") as f:
            data = json.load(f)
    expect("one CPU is detected", data["cpus"] == 1 and not data["pinned"])
    expect("missing pinning is reported", "pinning is not possible" in p.stdout, p.stdout)
    rows_are_right(data)


def wait_for(condition):
    until = time.monotonic() + HANGS
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    return condition()


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


def has_bench(pid):
    """Return the PID of urxe-bench, or None until it has a child process."""
    for child in children(pid):
        try:
            path = os.readlink(f"/proc/{child}/exe")
        except OSError:
            continue
        if path.endswith("/urxe-bench") and children(child):
            return child
    return None


def killed(what, kill):
    # a shell without job control starts background processes with SIGINT ignored
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    p = subprocess.Popen([URXE, "bench"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         start_new_session=True)
    expect(f"{what}: it started", wait_for(lambda: has_bench(p.pid) and fabrics()))
    # the signal must not reach the process that removes the fabric
    expect(f"{what}: the remover has a session of its own", any(
        os.getsid(child) == child for child in children(p.pid)))
    kill(p.pid)
    status = p.wait(timeout=HANGS)
    expect(f"{what}: ended by a signal", status < 0, status)
    expect(f"{what}: no fabric is left", wait_for(lambda: not fabrics()),
           fabrics())


refusals()
outputs()
one_cpu()
killed("SIGKILL", lambda pid: os.kill(pid, signal.SIGKILL))
killed("SIGKILL of the process group", lambda pid: os.killpg(pid, signal.SIGKILL))
killed("SIGINT", lambda pid: os.killpg(pid, signal.SIGINT))
killed("SIGKILL of urxe-bench", lambda pid: os.kill(has_bench(pid), signal.SIGKILL))
sys.exit(bool(failed))
