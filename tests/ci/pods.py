#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""pods.py URXE: run the commands of examples/kubernetes in containers (containers.py).

The volumes, variables, users and networks are those that the manifests describe.  This
is no test of Kubernetes: the module does what a kubelet and a container runtime do.
"""

import os
import pathlib
import shlex
import shutil
import sys

import manifests
from containers import Cable, Container, Machine, apart

if not shutil.which("ibv_rc_pingpong"):
    print("SKIP: no ibv_rc_pingpong")
    sys.exit(77)
apart()
urxe = os.path.realpath(sys.argv[1])
build = pathlib.Path(urxe).parents[1]
machine = Machine()
ENV, USER = manifests.image()
SERVER, CLIENT = "10.9.0.1", "10.9.0.2"


def make_image():
    """Return a directory with what the container image has in /usr/local."""
    top = pathlib.Path(machine.name("image"))
    inside = pathlib.Path(ENV["LD_PRELOAD"]).parent
    libraries = top / inside.relative_to("/usr/local")
    libraries.mkdir(parents=True)
    for file in [build / "kernel-shim/preload/liburxe-kshim.so",
                 *build.glob("provider/liburxe-rdmav*.so")]:
        shutil.copy(file, libraries)
    (top / "bin").mkdir()
    shutil.copy(urxe, top / "bin")
    # urxe finds the libraries where it does in the build tree
    (top / "kernel-shim").mkdir()
    (top / "kernel-shim/preload").symlink_to(inside)
    (top / "provider").symlink_to(inside)
    # the user namespace of the container has one user only
    (top / "bin/chown").write_text("#!/bin/sh\necho chown \"$@\"\n")
    (top / "bin/chown").chmod(0o755)
    return top


def new_directory(what):
    path = pathlib.Path(machine.name(what))
    path.mkdir()
    return path


IMAGE = make_image()
NODE = new_directory("node")  # the file system of a node
ALIAS = new_directory("etc") / "hosts"  # the names of the services


def volume(about):
    """Return the directory of a volume."""
    if "emptyDir" in about:
        size = about["emptyDir"]["sizeLimit"].replace("Mi", "M")
        # root's, with the mode that a kubelet sets
        return machine.make_shm(size=size, mode="0777")
    if "configMap" in about:
        assert about["configMap"]["name"] == CONFIG["metadata"]["name"]
        path = new_directory("config")
        for name, text in CONFIG["data"].items():
            (path / name).write_text(text)
        return path
    path = NODE / about["hostPath"]["path"][1:]
    path.mkdir(parents=True, exist_ok=True)
    return path


CONFIG = manifests.find("daemonset.yaml", "ConfigMap")


class Pod:
    """The containers of a pod, by name."""

    def __init__(self, doc, net=None):
        pod = manifests.pod_of(doc)
        spec = pod["spec"]
        volumes = {v["name"]: volume(v) for v in spec.get("volumes", [])}
        shm = machine.make_shm()  # the default of containers
        self.containers, first = {}, None
        for about in manifests.containers_of(pod):
            env = dict(ENV)
            env.update((e["name"], e["value"]) for e in about.get("env", []))
            mounts = [("--ro-bind" if m.get("readOnly") else "--bind",
                       volumes[m["name"]], m["mountPath"])
                      for m in about.get("volumeMounts", [])]
            notes = pod.get("metadata", {}).get("annotations", {})
            if manifests.CDI_ANNOTATION + about["name"] in notes:
                self.inject(env, mounts)
            words = ["--ro-bind", IMAGE, "/usr/local", "--ro-bind", ALIAS, "/etc/hosts"]
            for mount in mounts:
                words += mount
            for name, value in env.items():
                words += ["--setenv", name, value]
            user = about["securityContext"].get(
                "runAsUser", spec["securityContext"].get("runAsUser"))
            made = Container(machine, shm, net=None if first else net, next_to=first,
                             user=user, more=words)
            made.command = about["command"]
            self.containers[about["name"]] = made
            first = first or made

    @staticmethod
    def inject(env, mounts):
        """Edit a container as the CDI specification on the node demands."""
        (file,) = (NODE / "var/run/cdi").glob("*.yaml")
        spec = manifests.yaml.safe_load(file.read_text())
        edits = spec["devices"][0]["containerEdits"]
        env.update(entry.split("=", 1) for entry in edits["env"])
        mounts += [("--ro-bind" if "ro" in m["options"] else "--bind",
                    NODE / m["hostPath"][1:], m["containerPath"])
                   for m in edits["mounts"]]

    def start(self, name):
        container = self.containers[name]
        return container.start(*container.command)


def names(**addresses):
    ALIAS.write_text("127.0.0.1 localhost\n" + "".join(
        f"{address} {name.replace('_', '-')}\n" for name, address in addresses.items()))


def has(text, *wanted):
    for want in wanted:
        assert want in text, f"no {want!r} in\n{text}"


def communicate(server_pod, client_pod, printed):
    server = server_pod.start("server")
    client = client_pod.start("client")
    # the server first: the client repeats its command if that fails
    has(server.end(), printed)
    has(client.end(), printed)


def one_pod(file):
    pod = Pod(manifests.find(file, "Pod"))
    communicate(pod, pod, "usec/iter")
    return pod


def shared_process_namespace(pod):
    """Run both commands in one PID namespace, as with shareProcessNamespace."""
    server, client = pod.containers["server"], pod.containers["client"]
    has(client.run("bash", "-c", f"{shlex.join(server.command)} & "
                   f"{shlex.join(client.command)} && wait $!"), "usec/iter")


def volume_as_urxe_dir(pod):
    """URXE_DIR may be in the volume, but not be the volume, which all may write to."""
    client = pod.containers["client"]
    devices = ["urxe", "run", "--", "ibv_devinfo"]
    has(client.run("env", "URXE_DIR=/dev/shm/mine", *devices), "urxe0")
    has(client.run("env", "URXE_DIR=/dev/shm", *devices, status=None),
        "not writable by other users unless it is sticky")


def install():
    """Run the DaemonSet, twice, as after an update of its image."""
    for _ in range(2):
        pod = Pod(manifests.find("daemonset.yaml", "DaemonSet"))
        has(pod.start("install").end(), f"chown {USER}:{USER} /node/shm/urxe-pods")
    assert (NODE / "dev/shm/urxe-pods").stat().st_mode & 0o7777 == 0o700
    left = sorted(p.name for p in (NODE / "var").rglob("new*"))
    assert not left, left


def two_pods(file, service, printed):
    cable = Cable()
    names(**{service: SERVER})
    communicate(Pod(manifests.find(file, "Pod"), (cable.left, SERVER)),
                Pod(manifests.find(file, "Job"), (cable.right, CLIENT)), printed)


names()
print("pod.yaml", flush=True)
both = one_pod("pod.yaml")
shared_process_namespace(both)
volume_as_urxe_dir(both)
print("mokka.yaml, without the mock", flush=True)
one_pod("mokka.yaml")
print("daemonset.yaml", flush=True)
install()
print("node.yaml", flush=True)
two_pods("node.yaml", "urxe_node_server", "usec/iter")
if shutil.which("ib_write_bw"):
    print("wire.yaml", flush=True)
    two_pods("wire.yaml", "urxe_wire_server", "BW average")
