# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Run jobs as CI systems do, as far as action.yml and the GitLab include need it.

GitHub: the steps of a composite action, and steps of a job after it.  Each step is a
process; $GITHUB_ENV, $GITHUB_PATH and $GITHUB_OUTPUT are read when it has ended.
Background processes of a step continue to run.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import time

import yaml

LIMIT = 1500  # time limit of a step in seconds, including a build
# variables in $GITHUB_ENV that the runner ignores
BLOCKED = {"NODE_OPTIONS"}


class Failed(Exception):
    """A step has failed; the text has its output."""


def lines_of(path):
    """Return the NAME=value and NAME<<END entries of a file."""
    found, lines = {}, iter(path.read_text().splitlines())
    for line in lines:
        if heredoc := re.fullmatch(r"([^=<]+)<<(.+)", line):
            value = []
            for line in lines:
                if line == heredoc[2]:
                    break
                value.append(line)
            else:
                raise Failed(f"{heredoc[0]}: no end")
            found[heredoc[1]] = "\n".join(value)
        elif line:
            name, equals, value = line.partition("=")
            if not equals:
                raise Failed(f"Invalid format '{line}'")
            found[name] = value
    return found


class Job:
    """A job of GitHub Actions in the environment of this machine."""

    def __init__(self, **env):
        self.temp = pathlib.Path(tempfile.mkdtemp(prefix="job."))
        self.files = self.temp / "_runner_file_commands"
        self.files.mkdir()
        (self.temp / "temp").mkdir()
        self.env = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_RUN_ID": "17",
            "GITHUB_JOB": "test",
            "HOME": os.environ.get("HOME", "/"),
            "PATH": os.environ["PATH"],
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": str(self.temp / "temp"),
            **env,
        }
        self.path = []

    def step(self, script, shell="bash", env=(), fails=False):
        """Run one step.  Return its printed text and its outputs."""
        commands = {}
        for name in ("ENV", "PATH", "OUTPUT"):
            commands[name] = self.files / name
            commands[name].write_text("")
        file = self.files / "step.sh"
        file.write_text(script)
        templates = {
            "bash": "bash --noprofile --norc -eo pipefail {0}",
            "sh": "sh -e {0}",
        }
        words = templates.get(shell, shell).replace("{0}", str(file)).split()
        now = {**self.env, **dict(env)}
        now.update({f"GITHUB_{k}": str(v) for k, v in commands.items()})
        now["PATH"] = os.pathsep.join([*self.path, now["PATH"]])
        began = time.monotonic()
        # a file, not a pipe: background processes would keep a pipe open
        out = self.files / "out"
        with out.open("wb") as to:
            done = subprocess.run(["env", *words], env=now, cwd=self.temp,
                                  stdin=subprocess.DEVNULL, stdout=to,
                                  stderr=to, timeout=LIMIT)
        print(f"{time.monotonic() - began:6.1f} s", script.strip().split("\n")[0])
        text = out.read_text(errors="replace")
        if (done.returncode != 0) != fails:
            raise Failed(f"status {done.returncode} of\n{script}\n{text}")
        for name, value in lines_of(commands["ENV"]).items():
            if name not in BLOCKED:
                self.env[name] = value
        self.path[:0] = commands["PATH"].read_text().split("\n")[:-1]
        return text, lines_of(commands["OUTPUT"])

    def uses(self, directory, fails=False, **given):
        """Run the composite action in a directory.  Return its printed text and outputs."""
        action = yaml.safe_load((directory / "action.yml").read_text())
        unknown = given.keys() - {k.replace("-", "_") for k in action["inputs"]}
        if unknown:
            raise Failed(f"no such inputs: {unknown}")
        context = {}
        for name, about in action["inputs"].items():
            context[f"inputs.{name}"] = given.get(name.replace("-", "_"),
                                                  about.get("default", ""))

        def fill(text):
            def value(match):
                if match[1] not in context:
                    raise Failed(f"unknown expression {match[0]}")
                return context[match[1]]

            return re.sub(r"\$\{\{ *(.*?) *\}\}", value, str(text))

        printed = ""
        for step in action["runs"]["steps"]:
            if "${{" in step["run"]:
                raise Failed("an input in a script would be executed as code")
            env = {k: fill(v) for k, v in step.get("env", {}).items()}
            env["GITHUB_ACTION_PATH"] = str(directory)
            last = step is action["runs"]["steps"][-1]
            text, outputs = self.step(step["run"], step["shell"], env,
                                      fails and last)
            printed += text
            for name, value in outputs.items():
                context[f"steps.{step['id']}.outputs.{name}"] = value
        return printed, {name: fill(about["value"])
                         for name, about in action["outputs"].items()}
