#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""rdma-core's own pyverbs tests on urxe0.

pyverbs.py [--tree DIR] [MODULE...]

Run the modules, or all modules that are not specific to a vendor's device.  With
--tree, use the build of tests/abi/build-release -p in DIR, which tests/abi/run-with
must load; otherwise the system's python3-pyverbs.

Fail if a test fails, if a test is skipped for a reason that is not in MAY_SKIP, or if
a test has no result.
"""

import argparse
import collections
import contextlib
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path("/usr/share/doc/rdma-core/tests")
VENDORS = re.compile(r"test_(mlx5|efa|cuda)")
LIMIT = 600  # time limit of a module, in seconds

# Permitted skips: prefix of the test's name, and text in the reason
MAY_SKIP = {
    "raw packets": (r"tests\.test_(qp|qpex)\.", r"(?i)raw ?packet|QP type 8 "),
    "flow steering": (r"tests\.test_flow\.", ""),
    "RSS": (r"tests\.test_rss_traffic\.", ""),
    "tag matching": (r"tests\.test_tag_matching\.", ""),
    "no DRM node for a dma-buf": (r"tests\.test_mr\.DmaBuf",
                                  r"(?i)dma-?buf|dri"),
    "no huge pages reserved": (r"tests\.test_(odp|parent_domain)\.",
                               r"(?i)huge"),
    "no confidential guest": (r"tests\.test_buf\.", r"CC_DMA_BOUNCE"),
    "no clock of the device's own": (r"tests\.test_phc_timestamp\.", r"PHC"),
    "no processing hints (TPH)": (r"tests\.test_dmah\.", r"Errno: 95"),
}

HUGE_PAGES = pathlib.Path(
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
HUGE_PAGES_WANTED = 16

# The garbage collector of Python clears the objects of a cycle in any order.  With
# Python 3.13 the resources of a skipped test are such a cycle: pyverbs may call
# ibv_close_device first, and then ibv_destroy_cq with a CQ of that context, which is a
# use after free with any device.  So the collector is disabled: the process of a module
# releases everything when it exits.
RUNNER = """
import gc, json, multiprocessing, sys, unittest
gc.disable()
multiprocessing.set_start_method("fork")  # as before Python 3.14
module, result_file = sys.argv[1:]
sys.argv[1:] = ["--dev", "urxe0"]
from args_parser import parser
parser.parse_args()
class Result(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.passed = []
    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(test.id())
suite = unittest.defaultTestLoader.loadTestsFromName("tests." + module)
result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
json.dump({
    "passed": result.passed,
    "failed": {t.id(): text for t, text in result.failures + result.errors},
    "skipped": {t.id(): why for t, why in result.skipped},
}, open(result_file, "w"))
gc.freeze()  # at exit, a disabled collector runs as well
"""


def unpack(source, where):
    tests = where / "tests"
    tests.mkdir()
    for path in source.iterdir():
        if path.suffix == ".gz":
            (tests / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        elif path.suffix == ".py":
            shutil.copy(path, tests)
    (where / "run.py").write_text(RUNNER)


def run_module(where, module):
    result = where / (module + ".json")
    path = f"{where}:{where}/tests:{os.environ.get('PYTHONPATH', '')}"
    env = dict(os.environ, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1")
    out = where / (module + ".out")
    options = os.environ.get("URXE_TEST_RUN", "").split()
    status = None
    with open(out, "w") as log:
        try:
            status = subprocess.run(
                [os.environ["URXE"], "run", *options, "--", "timeout", "-k",
                 "2", str(LIMIT), "/usr/bin/python3", str(where / "run.py"),
                 module, str(result)],
                env=env, stdout=log, stderr=log, cwd=where,
                stdin=subprocess.DEVNULL, check=False,
                timeout=LIMIT + 10).returncode
        except subprocess.TimeoutExpired:
            pass
    if result.exists() and status == 0:
        return json.loads(result.read_text())
    if result.exists():
        print(f"{module} ended with status {status}:")
        print(out.read_text(errors="replace"))
        result = json.loads(result.read_text())
        result["failed"][f"tests.{module}"] = f"status {status}"
        return result
    print(f"{module} did not finish:")
    print(out.read_text(errors="replace")[-3000:])
    return {"passed": [], "failed": {f"tests.{module}": "no result"},
            "skipped": {}}


def skip_reason(test, why):
    for reason, (name, text) in MAY_SKIP.items():
        if re.match(name, test) and re.search(text, why):
            return reason
    return None


@contextlib.contextmanager
def huge_pages():
    """Reserve huge pages during the tests, if none are reserved and this is root."""
    try:
        before = int(HUGE_PAGES.read_text())
        if before == 0:
            HUGE_PAGES.write_text(str(HUGE_PAGES_WANTED))
    except (OSError, ValueError):
        before = None
    try:
        yield
    finally:
        if before == 0:
            HUGE_PAGES.write_text("0")


def report(where, module, result):
    """Print the results of a module's tests.  Return the number of failures."""
    wrong = 0
    print(f"{module}: " + ", ".join(
        f"{len(result[kind])} {kind}"
        for kind in ("passed", "failed", "skipped")), flush=True)
    for test, text in sorted(result["failed"].items()):
        print(f"  FAILED: {test}\n{text}")
        wrong += 1
    reasons = collections.Counter()
    for test, why in sorted(result["skipped"].items()):
        reason = skip_reason(test, why)
        reasons[reason] += 1
        if not reason:
            print(f"  SKIPPED for an unexpected reason: {test}: {why}")
            wrong += 1
    for reason, count in reasons.items():
        if reason:
            print(f"  skipped, {reason}: {count}")
    written = len(re.findall(r"^ +def test_", (
        where / "tests" / (module + ".py")).read_text(), re.MULTILINE))
    results = sum(len(result[kind]) for kind in result)
    if results != written:
        print(f"  FAILED: results of {results} tests, but it has {written}")
        wrong += 1
    return wrong


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--tree", type=pathlib.Path)
    parser.add_argument("modules", nargs="*")
    args = parser.parse_args()
    source = SOURCE
    if args.tree:
        source = args.tree.resolve() / "source/tests"
        os.environ["PYTHONPATH"] = str(args.tree.resolve() / "build/python")
    if not any((source / name).exists() for name in ("base.py.gz", "base.py")):
        print(f"skipped: {source} does not exist (package python3-pyverbs)")
        return 77
    if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs.device"],
                      stderr=subprocess.DEVNULL, check=False).returncode:
        print("skipped: python3-pyverbs is not installed")
        return 77
    wrong = 0
    results = []
    with tempfile.TemporaryDirectory() as tmp, huge_pages():
        where = pathlib.Path(tmp)
        unpack(source, where)
        modules = args.modules or sorted(
            path.stem for path in (where / "tests").glob("test_*.py")
            if not VENDORS.match(path.name))
        for module in modules:
            results.append(run_module(where, module))
            wrong += report(where, module, results[-1])
    print(", ".join(f"{sum(len(r[kind]) for r in results)} {kind}"
                    for kind in ("passed", "failed", "skipped")))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
