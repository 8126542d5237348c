#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""rdma-core's own pyverbs tests on urxe0.

pyverbs.py            run all modules that are not for one vendor's device
pyverbs.py MODULE...  only these

A run of all modules fails if a test fails, if one is skipped for a reason
that is not in MAY_SKIP, or if fewer pass than that leaves.
"""

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
LIMIT = 600  # seconds for a module that hangs

# What may be skipped: how many tests, what their names begin with, what the
# reason they give says.
MAY_SKIP = {
    "raw packets, flow steering, RSS": (
        11, r"tests\.test_(qp|qpex|flow|rss_traffic)\.",
        r"(?i)raw packet|QP type 8 is not supported"),
    "tag matching": (4, r"tests\.test_tag_matching\.", ""),
    "no DRM node for a dma-buf": (10, r"tests\.test_mr\.DmaBuf",
                                  r"(?i)dma-?buf|dri"),
    "no huge pages reserved": (4, r"tests\.test_(odp|parent_domain)\.",
                               r"(?i)huge"),
}
GENERIC = 170  # tests of rdma-core 44 that are not for one vendor's device

HUGE_PAGES = pathlib.Path(
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
HUGE_PAGES_WANTED = 16

RUNNER = """
import json, multiprocessing, sys, unittest
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
"""


def unpack(where):
    tests = where / "tests"
    tests.mkdir()
    for path in SOURCE.iterdir():
        if path.suffix == ".gz":
            (tests / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        elif path.suffix == ".py":
            shutil.copy(path, tests)
    (where / "run.py").write_text(RUNNER)


def run_module(where, module):
    result = where / (module + ".json")
    env = dict(os.environ, PYTHONPATH=f"{where}:{where}/tests",
               PYTHONDONTWRITEBYTECODE="1")
    out = where / (module + ".out")
    with open(out, "w") as log:
        try:
            subprocess.run([os.environ["URXE"], "run", "--", "timeout", "-k",
                            "2", str(LIMIT), "/usr/bin/python3",
                            str(where / "run.py"), module, str(result)],
                           env=env, stdout=log, stderr=log, cwd=where,
                           stdin=subprocess.DEVNULL, check=False,
                           timeout=LIMIT + 10)
        except subprocess.TimeoutExpired:
            pass
    if result.exists():
        return json.loads(result.read_text())
    print(f"{module} did not finish:")
    print(out.read_text(errors="replace")[-3000:])
    return {"passed": [], "failed": {f"tests.{module}": "no result"},
            "skipped": {}}


def skip_reason(test, why):
    for reason, (_, name, text) in MAY_SKIP.items():
        if re.match(name, test) and re.search(text, why):
            return reason
    return None


@contextlib.contextmanager
def huge_pages():
    """Reserve some while the tests run, if none are and this is root."""
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


def report(module, result):
    """Print what became of a module's tests; how many went wrong."""
    wrong = 0
    print(f"{module}: " + ", ".join(
        f"{len(result[kind])} {kind}"
        for kind in ("passed", "failed", "skipped")), flush=True)
    for test, text in sorted(result["failed"].items()):
        print(f"  FAILED: {test}\n{text}")
        wrong += 1
    for test, why in sorted(result["skipped"].items()):
        if not skip_reason(test, why):
            print(f"  SKIPPED without need: {test}: {why}")
            wrong += 1
    return wrong


def sum_up(results):
    """Print the sums; how many of them are wrong."""
    wrong = 0
    skips = dict.fromkeys(MAY_SKIP, 0)
    for result in results:
        for test, why in result["skipped"].items():
            reason = skip_reason(test, why)
            if reason:
                skips[reason] += 1
    for reason, count in skips.items():
        limit = MAY_SKIP[reason][0]
        print(f"skipped, {reason}: {count} (at most {limit})")
        wrong += count > limit
    passed, failed, skipped = (sum(len(r[kind]) for r in results)
                               for kind in ("passed", "failed", "skipped"))
    least = GENERIC - sum(limit for limit, _, _ in MAY_SKIP.values())
    if passed < least:
        print(f"FAILED: fewer than {least} tests passed")
        wrong += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return wrong


def main():
    if not any((SOURCE / name).exists() for name in ("base.py.gz", "base.py")):
        print(f"skipped: {SOURCE} is not there (package python3-pyverbs)")
        return 77
    if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs"],
                      stderr=subprocess.DEVNULL, check=False).returncode:
        print("skipped: python3-pyverbs is not installed")
        return 77
    wrong = 0
    results = []
    with tempfile.TemporaryDirectory() as tmp, huge_pages():
        where = pathlib.Path(tmp)
        unpack(where)
        modules = sys.argv[1:] or sorted(
            path.stem for path in (where / "tests").glob("test_*.py")
            if not VENDORS.match(path.name))
        for module in modules:
            results.append(run_module(where, module))
            wrong += report(module, results[-1])
    if not sys.argv[1:]:
        wrong += sum_up(results)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
