#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""action.py SOURCE [PACKAGE.deb]: test the GitHub action, and steps after it.

SOURCE is the checkout with action.yml.  It is built once; if a package is given, the
steps are repeated with it.  The steps are typical ones: stock programs without
"urxe run", a server that keeps running for the next step, programs that do not use
libibverbs, and programs that cannot be preloaded.
"""

import pathlib
import shutil
import subprocess
import sys

import job
import yaml

source = pathlib.Path(sys.argv[1]).resolve()
package = sys.argv[2] if len(sys.argv) > 2 else None


def says(job, script, want, **how):
    text, _ = job.step(script, **how)
    assert want in text, f"no {want!r} from\n{script}\n{text}"
    return text


def silent(job, script):
    text, _ = job.step(script)
    assert text == "", f"{script}\nprints\n{text}"


def stock_programs_see_the_device(job, outputs):
    says(job, "ibv_devices", "urxe0")
    says(job, "ibv_devinfo", "PORT_ACTIVE")
    says(job, "ls /sys/class/infiniband", "urxe0", shell="sh")
    says(job, "urxe --version", outputs["version"])
    assert pathlib.Path(outputs["urxe"]).exists(), outputs
    assert job.env["URXE_FABRIC"] == outputs["fabric"], job.env
    says(job, "urxe info", "no fabric")


def server_in_one_step_client_in_the_next(job):
    job.step("""
        ibv_rc_pingpong -d urxe0 -g 0 -p 18519 >server.log 2>&1 &
        echo $! >server.pid
        for i in {1..1200}; do
          grep -q ':4857 .* 0A ' /proc/net/tcp /proc/net/tcp6 && exit
          sleep 0.05
        done
        exit 1""")
    text, _ = job.step('urxe info --fabric "$URXE_FABRIC"')
    assert "ibv_rc_pingpong" in text, text
    says(job, "timeout 60 ibv_rc_pingpong -d urxe0 -g 0 -p 18519 localhost",
         "usec/iter")
    job.step("tail --pid=$(cat server.pid) -f /dev/null")
    says(job, "cat server.log", "usec/iter")
    says(job, "urxe info", "no fabric")


def state_of_the_device_is_kept(job):
    job.step("urxe port down")
    says(job, "ibv_devinfo", "PORT_DOWN")
    job.step("urxe port up")
    says(job, "ibv_devinfo", "PORT_ACTIVE")


def what_fails_explains_itself(job):
    says(job, "ibv_rc_pingpong -d urxe0 -r 100000000", "urxe[", fails=True)


def other_programs_go_on(job):
    silent(job, "ls / >/dev/null; python3 -c pass; tar --version >/dev/null")
    if shutil.which("node"):
        says(job, "node -e 'console.log(6 * 7)'", "42")
    job.step("""
        echo 'int main(void) { return 0; }' >true.c
        gcc -static -o static true.c
        gcc -fsanitize=address -o asan true.c""")
    silent(job, "./static; ./asan")
    gcc, qemu = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
    if shutil.which(gcc) and shutil.which(qemu):
        # its loader prints that it cannot preload the library, and continues
        job.step(f"{gcc} -o arm true.c; {qemu} -L /usr/aarch64-linux-gnu ./arm")
    # a step that clears LD_PRELOAD, or sets it
    says(job, "ibv_devices", "urxe0", env={"LD_PRELOAD": ""}.items(),
         shell="urxe run -- bash -e {0}")
    text, _ = job.step("ibv_devices || true", env={"LD_PRELOAD": ""}.items())
    assert "urxe0" not in text, text


def two_fabrics(job):
    _, other = job.uses(source, prefix="/tmp/urxe", fabric="second",
                        dm_size="4M", log="false")
    assert other["fabric"] == job.env["URXE_FABRIC"] == "second"
    says(job, "ibv_devinfo -v", "4194304Bytes")
    assert job.env["LD_PRELOAD"].count("kshim") == 1, job.env


def built(**how):
    # compiler settings of the job must not affect the build of urxe
    this = job.Job(CC="false", CFLAGS="-fsanitize=address", DESTDIR="/nowhere")
    _, outputs = this.uses(source, **how)
    del this.env["CC"], this.env["CFLAGS"], this.env["DESTDIR"]
    return this, outputs


def everything(**how):
    this, outputs = built(**how)
    stock_programs_see_the_device(this, outputs)
    server_in_one_step_client_in_the_next(this)
    state_of_the_device_is_kept(this)
    what_fails_explains_itself(this)
    other_programs_go_on(this)
    return this


def not_everywhere(this):
    this.env.pop("LD_PRELOAD")
    this.uses(source, prefix="/tmp/urxe", everywhere="false")
    assert "LD_PRELOAD" not in this.env
    text, _ = this.step("ibv_devices || true")
    assert "urxe0" not in text, text
    says(this, "ibv_devices", "urxe0", shell="urxe run -- bash -e {0}")


def runner_that_keeps_it_back(this):
    job.BLOCKED.add("LD_PRELOAD")
    text, _ = this.uses(source, prefix="/tmp/urxe", fails=True)
    assert "::error" in text and "everywhere: false" in text, text
    job.BLOCKED.remove("LD_PRELOAD")


def scripts_are_sound():
    if not shutil.which("shellcheck"):
        return
    action = yaml.safe_load((source / "action.yml").read_text())
    for step in action["runs"]["steps"]:
        subprocess.run(["shellcheck", "-s", "bash", "-e", "SC1091,SC2086", "-"],
                       input=step["run"], text=True, check=True)


scripts_are_sound()
this = everything(prefix="/tmp/urxe")
two_fabrics(this)
not_everywhere(this)
runner_that_keeps_it_back(this)
if package:
    everything(deb=package)
print("ok")
