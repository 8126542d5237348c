#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""recipes.py URXE ZOO: run the recipes of docs/adversary.md.

The steps, scripts and rules are read from the page, and run in the environment that
the action and the include set up (jobs.sh tests those).  ./my-test is a program of the
zoo: the buggy version must fail, the corrected one must pass.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import yaml

    import job
except ImportError:
    print("SKIP: no PyYAML")
    sys.exit(77)

urxe, zoo = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
page = (pathlib.Path(__file__).resolve().parents[2] /
        "docs/adversary.md").read_text()
recipes = page[page.index("\n## Recipes\n"):page.index("\n## Stock programs\n")]

SEEDS = 8  # instead of 60, which take too long if none fails
# programs whose bug the adversary or the referee finds with the first seeds, and the
# exit status
WRONG = {"source-reused": 1, "ah-destroyed": 9}


def block(after):
    """Return the indented block after the line that begins with @after."""
    match = re.search(rf"^{re.escape(after)}[^\n]*:\n\n((?:    .*\n|\n)+)",
                      recipes, re.MULTILINE)
    assert match, f"no recipe after {after!r}"
    return re.sub("^    ", "", match[1].rstrip("\n") + "\n", flags=re.MULTILINE)


def fewer(text):
    assert "sweep:60 " in text, text
    return text.replace("sweep:60 ", f"sweep:{SEEDS} ")


def steps_github():
    steps = yaml.safe_load(block("GitHub"))["steps"]
    assert any("/urxe@v" in step.get("uses", "") for step in steps), steps
    scripts = [step["run"] for step in steps if "run" in step]
    return scripts[:-1] + [fewer(scripts[-1])]


def steps_gitlab():
    (about,) = yaml.safe_load(block("GitLab")).values()
    assert about["extends"] == ".urxe", about
    script = about["script"]
    assert all(isinstance(line, str) for line in script), script
    # one script, which stops at the first line that fails
    return ["\n".join(script[:-1] + [fewer(script[-1])])]


def steps_make():
    return [f"make SEEDS={SEEDS} check-adversary"]


def job_with(program, how):
    """Return a job with ./my-test, in the environment that the action sets up."""
    lines = subprocess.run(["urxe", "env", "--github", "--fabric", "job-17"],
                           check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    ours = job.Job(**dict(line.split("=", 1) for line in lines.splitlines()))
    test = ours.temp / "my-test"
    test.write_text(f"#!/bin/sh\nexec {zoo} {how} {program}\n")
    test.chmod(0o755)
    (ours.temp / "Makefile").write_text(block("A Makefile"))
    return ours


def carry_out(name, steps):
    for program, status in WRONG.items():
        ours = job_with(program, "-c")
        for script in steps:
            said, _ = ours.step(script)
        assert f"none of the seeds 1 to {SEEDS} failed" in said, said
        ours = job_with(program, "-w")
        for script in steps[:-1]:
            ours.step(script)
        said, _ = ours.step(steps[-1], fails=True)
        for want in (f"exit status {status};", "to repeat the run:",
                     "--check --exitcode 9 --adversary="):
            assert want in said, f"{name}, {program}: no {want!r} in\n{said}"


def which_knob():
    """The loop over the options of the adversary, before the recipes."""
    loop = re.search(r"^    for k in (?:.*\n)+?    done$", page, re.MULTILINE)
    said, _ = job_with("source-reused", "-w").step(
        loop[0].replace("--adversary=3,", "--adversary=1,"))
    assert re.findall("^it is (.*)$", said, re.MULTILINE) == ["gather"], said


def other_seeds():
    """The expressions for a workflow that replace 60."""
    values = {"github.run_number": "7", "matrix.seeds": "1-30"}
    found = re.findall(r"`(sweep:[^`]*)`", recipes)
    assert len(found) == 2, found
    for text in found:
        text = re.sub(r"\$\{\{\s*(\S+)\s*\}\}", lambda m: values[m[1]], text)
        text = re.sub(r"\s", "", text)
        said, _ = job_with("last-byte", "-c").step(
            f"urxe run --adversary={text} -- true")
        first, last = text.removeprefix("sweep:").split("-")
        assert f"none of the seeds {first} to {last} failed" in said, said


def whole_jobs():
    line = re.search(r"^    (eval .*)$", recipes, re.MULTILINE)[1]
    for how, fails in (("-c", False), ("-w", True)):
        job_with("source-reused", how).step(
            line + "\n[ $URXE_ADVERSARY = 17,hardware ]\n./my-test", fails=fails)
    line = re.search(r"`(urxe env [^`]* >>[^`]*)`", recipes)[1]
    ours = job_with("last-byte", "-c")
    ours.step(line)
    ours.step("[ ${URXE_ADVERSARY%,hardware} -ge 0 ]\n./my-test")


def main():
    with (tempfile.TemporaryDirectory() as tmp,
          tempfile.TemporaryDirectory(dir="/dev/shm") as fabrics):
        pathlib.Path(tmp, "urxe").symlink_to(urxe)
        os.environ["PATH"] = f"{tmp}:{os.environ['PATH']}"
        os.environ["URXE_DIR"] = fabrics
        tempfile.tempdir = tmp  # for the jobs
        for name in ("URXE_ADVERSARY", "URXE_FABRIC", "LD_PRELOAD"):
            os.environ.pop(name, None)
        carry_out("GitHub", steps_github())
        carry_out("GitLab", steps_gitlab())
        carry_out("Makefile", steps_make())
        which_knob()
        other_seeds()
        whole_jobs()


if __name__ == "__main__":
    main()
