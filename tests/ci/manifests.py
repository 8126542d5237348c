#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""manifests.py: check the manifests of examples/kubernetes.

They must be consistent with each other, with the container image, and with urxe(7).
If python3-kubernetes is installed, each field must exist in the API of Kubernetes.
pods.py runs the commands.
"""

import pathlib
import re
import sys

try:
    import yaml
except ImportError:
    print("SKIP: no PyYAML")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/kubernetes"
CONTAINERFILE = (ROOT / "packaging/container/Containerfile").read_text()
VERSIONS = {"Pod": "v1", "Service": "v1", "ConfigMap": "v1", "Job": "batch/v1",
            "DaemonSet": "apps/v1"}
CDI_ANNOTATION = "cdi-devices.nri.io/container."  # of containerd's device-injector
# the fields of the CDI specification (True: required) that the example may use
CDI_FIELDS = {
    "": {"cdiVersion": True, "kind": True, "devices": True},
    "devices": {"name": True, "containerEdits": True},
    "containerEdits": {"env": False, "mounts": False},
    "mounts": {"hostPath": True, "containerPath": True, "options": False},
}


def load(name):
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def find(name, kind):
    """Return the only document of that kind in a file."""
    (found,) = [doc for doc in load(name) if doc["kind"] == kind]
    return found


def pod_of(doc):
    """Return the template of the pods of a document, or None."""
    if doc["kind"] == "Pod":
        return doc
    return doc["spec"].get("template") if "spec" in doc else None


def containers_of(pod):
    return pod["spec"].get("initContainers", []) + pod["spec"]["containers"]


def cdi():
    return yaml.safe_load(find("daemonset.yaml", "ConfigMap")["data"]["urxe.yaml"])


def image():
    """Return the environment and the user ID of the container image."""
    lines = re.search(r"^ENV ((?:.*\\\n)*.*)$", CONTAINERFILE, re.M)[1]
    env = dict(word.split("=", 1) for word in lines.replace("\\\n", "").split())
    return env, int(re.search(r"useradd .*-u (\d+)", CONTAINERFILE)[1])


def documented(name):
    manual = (ROOT / "docs/man/urxe.7").read_text()
    return re.search(rf"^\.It Ev (.* )?{name}\b", manual, re.M)


def check_fields(value, kind, where):
    """Check a value against a type of python3-kubernetes."""
    from kubernetes import client
    if of := re.fullmatch(r"list\[(.*)\]", kind):
        assert isinstance(value, list), where
        for one in value:
            check_fields(one, of[1], where)
    elif of := re.fullmatch(r"dict[([]str, (.*)[])]", kind):
        for key, one in value.items():
            check_fields(one, of[1], f"{where}.{key}")
    elif model := getattr(client, kind, None):
        names = {json: name for name, json in model.attribute_map.items()}
        for key, one in value.items():
            assert key in names, f"{where} has no field {key}"
            check_fields(one, model.openapi_types[names[key]], f"{where}.{key}")
        # raises ValueError if a required field is missing
        model(**{names[key]: one for key, one in value.items()})
    elif kind in ("str", "int", "bool"):
        assert type(value).__name__ == kind, f"{where}: {value!r} is not {kind}"


def check_pod(pod, where):
    spec = pod["spec"]
    volumes = {v["name"] for v in spec.get("volumes", [])}
    mounted = set()
    for container in containers_of(pod):
        name = f"{where}, container {container['name']}"
        assert container["image"] == "urxe", name
        # the default of an image without a tag is Always: not for a local image
        assert container["imagePullPolicy"] == "IfNotPresent", name
        assert all(isinstance(word, str) for word in container["command"]), name
        for mount in container.get("volumeMounts", []):
            assert mount["name"] in volumes, f"{name}: no volume {mount['name']}"
            mounted.add(mount["name"])
        for entry in container.get("env", []):
            assert documented(entry["name"]), f"{name}: {entry['name']}"
        rights = container["securityContext"]
        user = rights.get("runAsUser", spec["securityContext"].get("runAsUser"))
        assert user in (0, image()[1]), f"{name}: user {user}"
        assert "privileged" not in rights and \
            rights["allowPrivilegeEscalation"] is False, name
        if user == 0:
            assert rights["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN"]}, name
        else:
            assert rights["capabilities"] == {"drop": ["ALL"]}, name
    assert mounted == volumes, f"{where}: unused volumes {volumes - mounted}"
    for option in ("hostNetwork", "hostPID", "hostIPC"):
        assert option not in spec, f"{where}: {option}"


def check_cdi():
    def fields(value, which):
        known = CDI_FIELDS[which]
        assert set(value) <= set(known), f"CDI: {set(value) - set(known)}"
        missing = {name for name in known if known[name]} - set(value)
        assert not missing, f"CDI: no {missing}"

    spec = cdi()
    fields(spec, "")
    assert re.fullmatch(r"\d+\.\d+\.\d+", spec["cdiVersion"]), spec["cdiVersion"]
    assert re.fullmatch(r"[a-z0-9.-]+/[A-Za-z0-9][\w.-]*", spec["kind"]), spec["kind"]
    daemon = pod_of(find("daemonset.yaml", "DaemonSet"))
    on_node = [v["hostPath"]["path"] for v in daemon["spec"]["volumes"]
               if "hostPath" in v]
    (device,) = spec["devices"]
    fields(device, "devices")
    edits = device["containerEdits"]
    fields(edits, "containerEdits")
    for mount in edits["mounts"]:
        fields(mount, "mounts")
        assert "bind" in mount["options"], mount
        assert any(pathlib.Path(mount["hostPath"]).is_relative_to(path)
                   for path in on_node), f"the DaemonSet does not create {mount}"
    inside = [mount["containerPath"] for mount in edits["mounts"]]
    env = dict(entry.split("=", 1) for entry in edits["env"])
    assert env["URXE_FABRIC"]
    for name, value in env.items():
        assert documented(name), name
        if value.startswith("/"):
            assert any(pathlib.Path(value).is_relative_to(path) for path in inside), \
                f"no mount has {name}={value}"
    return f"{spec['kind']}={device['name']}"


def check_file(path, device):
    docs = load(path.name)
    pods = [pod for pod in map(pod_of, docs) if pod]
    for doc in docs:
        where = f"{path.name}: {doc['kind']} {doc['metadata']['name']}"
        assert doc["apiVersion"] == VERSIONS[doc["kind"]], where
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?",
                            doc["metadata"]["name"]), where
        labels = [pod.get("metadata", {}).get("labels", {}) for pod in pods]
        if doc["kind"] == "Service":
            assert doc["spec"]["selector"] in labels, where
            # the client connects to this name
            assert any(doc["metadata"]["name"] in str(pod["spec"]["containers"])
                       for pod in pods), where
        if doc["kind"] == "DaemonSet":
            assert doc["spec"]["selector"]["matchLabels"] in labels, where
        if pod := pod_of(doc):
            check_pod(pod, where)
            assert doc["kind"] == "DaemonSet" or not any(
                "hostPath" in v for v in pod["spec"].get("volumes", [])), where
            names = [c["name"] for c in containers_of(pod)]
            for key, value in pod.get("metadata", {}).get("annotations", {}).items():
                assert key.removeprefix(CDI_ANNOTATION) in names, f"{where}: {key}"
                assert yaml.safe_load(value) == [device], f"{where}: {value}"


def main():
    device = check_cdi()
    env, user = image()
    # mokka.yaml sets what the image sets, and the DaemonSet copies from there
    library = env["LD_PRELOAD"]
    (daemon,) = pod_of(find("daemonset.yaml", "DaemonSet"))["spec"]["initContainers"]
    assert str(pathlib.Path(library).parent) + "/" in daemon["command"][-1]
    assert f"chown {user}:{user} " in daemon["command"][-1]
    for container in find("mokka.yaml", "Pod")["spec"]["containers"]:
        assert {"name": "LD_PRELOAD", "value": library} in container["env"]

    files = sorted(EXAMPLES.glob("*.yaml"))
    readme = (EXAMPLES / "README.md").read_text()
    for path in files:
        assert f"`{path.name}`" in readme, f"README.md does not have {path.name}"
        check_file(path, device)
    try:
        import kubernetes.client  # noqa: F401
    except ImportError:
        print("python3-kubernetes is not installed: fields are not checked")
    else:
        for path in files:
            for doc in load(path.name):
                check_fields(doc, "V1" + doc["kind"], f"{path.name}: {doc['kind']}")
    print(len(files), "manifests")


if __name__ == "__main__":
    main()
