#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""rdma-core's own pyverbs tests on urxe0.

pyverbs.py            run all modules below, each in a process of its own
pyverbs.py MODULE...  only these

Every test that fails and is not in EXPECTED fails the run.
"""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path("/usr/share/doc/rdma-core/tests")
MODULES = ["test_device", "test_pd", "test_cq_events", "test_mr", "test_qp",
           "test_cq", "test_atomic", "test_fork"]
LIMIT = 120  # seconds for a module

# Tests that may fail: how their names begin, and why.
EXPECTED = {
    "tests.test_mr.MWTest.": "memory windows are not there yet",
}

RUNNER = """
import json, sys, unittest
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
    print(out.read_text()[-3000:])
    return {"passed": [], "failed": {f"tests.{module}": "no result"},
            "skipped": {}}


def expected(test):
    for prefix, why in EXPECTED.items():
        if test.startswith(prefix):
            return why
    return None


def main():
    if not (SOURCE / "base.py.gz").exists() and not (SOURCE /
                                                     "base.py").exists():
        print(f"skipped: {SOURCE} is not there (package python3-pyverbs)")
        return 77
    if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs"],
                      stderr=subprocess.DEVNULL, check=False).returncode:
        print("skipped: python3-pyverbs is not installed")
        return 77
    total = {"passed": 0, "failed": 0, "skipped": 0}
    wrong = 0
    with tempfile.TemporaryDirectory() as tmp:
        where = pathlib.Path(tmp)
        unpack(where)
        for module in sys.argv[1:] or MODULES:
            result = run_module(where, module)
            for kind in total:
                total[kind] += len(result[kind])
            print(f"{module}: " + ", ".join(f"{len(result[kind])} {kind}"
                                            for kind in total))
            for test, why in sorted(result["skipped"].items()):
                print(f"  skipped: {test}: {why}")
            for test, text in sorted(result["failed"].items()):
                if expected(test):
                    print(f"  failed as expected: {test}: {expected(test)}")
                else:
                    print(f"  FAILED: {test}\n{text}")
                    wrong += 1
            for test in result["passed"]:
                if expected(test):
                    print(f"  passes now, take it from EXPECTED: {test}")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**total))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
