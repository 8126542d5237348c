#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""gitlab.py SOURCE [PACKAGE.deb]: test the include for GitLab CI, and jobs that extend
it.  urxe is built if it is not in /tmp/urxe.

As in GitLab, before_script and script of a job are one script for bash (or sh, if the
image has no bash), which stops at the first line that fails.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import yaml

LIMIT = 1500  # time limit of a job in seconds, including a build
source = pathlib.Path(sys.argv[1]).resolve()
package = sys.argv[2:]
include = yaml.safe_load((source / "packaging/gitlab/urxe.yml").read_text())


def job(script, shell="bash", status=0, **variables):
    """Run a job that extends .urxe.  Return its output."""
    template = include[".urxe"]
    assert template.keys() == {"before_script"}, template.keys()
    lines = ["set -eo pipefail" if shell == "bash" else "set -e"]
    for line in template["before_script"] + script:
        assert isinstance(line, str), line  # with a colon, YAML makes it a mapping
        lines.append(line)
    env = {"CI": "true", "GITLAB_CI": "true", "CI_JOB_ID": "4711",
           "HOME": os.environ.get("HOME", "/"),
           "PATH": os.environ["PATH"], **variables}
    with tempfile.TemporaryFile() as out:
        done = subprocess.run([shell], input="\n".join(lines).encode(), env=env,
                              stdout=out, stderr=out, timeout=LIMIT)
        out.seek(0)
        text = out.read().decode(errors="replace")
    assert done.returncode == status, f"{done.returncode}\n{lines}\n{text}"
    return text


def says(text, *wanted):
    for want in wanted:
        assert want in text, f"no {want!r} in\n{text}"


PINGPONG = [
    "ibv_rc_pingpong -d urxe0 -g 0 >server.log 2>&1 &",
    "for i in $(seq 1200); do"
    " grep -q ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6 && break;"
    " sleep 0.05; done",
    "timeout 60 ibv_rc_pingpong -d urxe0 -g 0 localhost",
    "wait",
    "urxe info",
]

os.chdir(tempfile.mkdtemp())
says(job(["echo never"], status=1), "neither URXE_DEB nor URXE_SOURCE")
installed = pathlib.Path("/tmp/urxe/bin")
given = {"URXE_DEB": package[0]} if package else {"URXE_SOURCE": str(source)}
if not installed.exists():
    says(job(PINGPONG, CFLAGS="-fsanitize=address", CC="false", **given),
         "usec/iter", "no fabric")

# an image that contains urxe
os.environ["PATH"] = f"{installed}:{os.environ['PATH']}"
says(job(PINGPONG + ["echo fabric $URXE_FABRIC"], shell="sh"), "usec/iter",
     "fabric job-4711")
says(job(["ibv_rc_pingpong -r 100000000"], status=1), "urxe[")
# a failure in before_script ends the job
job(["echo never"], status=2, CI_JOB_ID="a/b")
print("ok")
