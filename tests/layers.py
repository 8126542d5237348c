#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Dependencies between folders, by includes and by the symbols of objects.
Print the edges; fail if one leads to a higher layer.
Usage: layers.py SOURCE_ROOT BUILD_ROOT"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

# From the lowest layer up: each folder, and the other folders that it may use
CHAOS = ["kernel-shim/base", "kernel-shim/chaos"]
SHARED = ["kernel-shim/base", "kernel-shim/shared"]
FABRIC = SHARED + ["kernel-shim/fabric"]
CM = FABRIC + ["kernel-shim/wire", "kernel-shim/cm"]
MAD = FABRIC + ["kernel-shim/wire", "kernel-shim/mad"]
TREE = CM + ["kernel-shim/chaos", "kernel-shim/preload/tree"]
PRELOAD = TREE + ["kernel-shim/preload"]
# The folders of the engine; each may use those before it
ENGINE_FOLDERS = ["provider/engine/" + name for name in (
    "core", "mem", "adopt", "copy", "run", "cq", "qp", "mr", "exec", "poll")]
ENGINE = FABRIC + ENGINE_FOLDERS + ["provider/engine"]
VERBS = ENGINE + ["provider/abi/pabi", "provider/verbs", "provider/verbs/mr"]
INTERPOSERS = ["provider/adversary", "provider/referee", "provider/recorder",
               "provider/wire"]
WIRE = VERBS + CHAOS + ["kernel-shim/wire/crc", "kernel-shim/wire", "kernel-shim/cm"]
TOOLS = CM + ["kernel-shim/chaos", "kernel-shim/trace", "provider/abi/pabi"]
TOOLS_FOLDERS = ["tools/" + name for name in (
    "common", "doctor", "why", "top", "trace", "run")]
LAYERS = {
    "kernel-shim/base": [],
    "kernel-shim/chaos": ["kernel-shim/base"],
    "kernel-shim/shared": ["kernel-shim/base"],
    "kernel-shim/fabric": SHARED,
    "kernel-shim/wire/crc": [],
    "kernel-shim/wire": ["kernel-shim/wire/crc"],
    "kernel-shim/trace": ["kernel-shim/base", "kernel-shim/wire"],
    "kernel-shim/cm": FABRIC + ["kernel-shim/wire"],
    "kernel-shim/mad": FABRIC + ["kernel-shim/wire"],
    "kernel-shim/preload/tree": FABRIC,
    "kernel-shim/preload": TREE,
    "kernel-shim/preload/netlink": PRELOAD,
    "kernel-shim/preload/ucma": PRELOAD + ["kernel-shim/trace"],
    "kernel-shim/preload/umad": PRELOAD + ["kernel-shim/mad"],
    "kernel-shim/preload/wrap": PRELOAD + [
        "kernel-shim/preload/netlink", "kernel-shim/preload/ucma",
        "kernel-shim/preload/umad"],
    "provider/abi/pabi": [],
    **{folder: FABRIC + ENGINE_FOLDERS[:i]
       for i, folder in enumerate(ENGINE_FOLDERS)},
    "provider/engine": FABRIC + ENGINE_FOLDERS,
    "provider/verbs": ENGINE + ["provider/abi/pabi"],
    "provider/verbs/mr": ENGINE + ["provider/abi/pabi", "provider/verbs"],
    "provider/adversary": VERBS + CHAOS,
    "provider/referee/report": VERBS + CHAOS,
    "provider/referee/ranges": ENGINE,
    "provider/referee": VERBS + CHAOS + ["provider/referee/report",
                                         "provider/referee/ranges"],
    "provider/recorder": VERBS + ["kernel-shim/trace"],
    "provider/wire/socket": WIRE,
    "provider/wire/requester": WIRE + ["provider/wire/socket"],
    "provider/wire/responder": WIRE + ["provider/wire/socket"],
    "provider/wire": WIRE + ["provider/wire/socket", "provider/wire/requester",
                             "provider/wire/responder"],
    "provider/abi": VERBS + CHAOS + INTERPOSERS,
    **{folder: TOOLS + TOOLS_FOLDERS[:i] for i, folder in enumerate(TOOLS_FOLDERS)},
    "tools/profile": FABRIC,
    "tools": TOOLS + TOOLS_FOLDERS,
}
MOST_FILES = 30
INCLUDE = r'^\s*#\s*include\s*(["<])([^">]+)[">]'
PRELOAD_LIBRARY = "kernel-shim/preload/liburxe-kshim.so"


def sources(root):
    for top in ("kernel-shim", "provider", "tools"):
        for path in sorted((root / top).rglob("*.[ch]")):
            yield path


def folders(root):
    """Yield the folders with more than MOST_FILES source files, and those outside
    tests that have no README.md."""
    count = collections.Counter(
        path.parent for top in ("kernel-shim", "provider", "tools", "tests")
        for path in (root / top).rglob("*.[ch]"))
    for folder, files in sorted(count.items()):
        name = folder.relative_to(root)
        if files > MOST_FILES:
            yield f"{name} has {files} source files, more than {MOST_FILES}"
        if name.parts[0] != "tests" and not (folder / "README.md").is_file():
            yield f"{name} has no README.md"


def includes(root, edges):
    """Return the folder of an include: named in its path, or that of the file."""
    tops = [root / "kernel-shim", root / "provider", root / "tools"]
    for path in sources(root):
        here = path.parent.relative_to(root).as_posix()
        for quote, name in re.findall(INCLUDE, path.read_text(), re.M):
            for top in tops if quote == "<" else [path.parent, *tops]:
                if (top / name).is_file():
                    there = (top / name).resolve().parent.relative_to(root)
                    edges[here, there.as_posix()].add(
                        f"{path.relative_to(root)} includes {name}")
                    break
            else:
                if quote == '"':
                    sys.exit(f"layers: {path}: no {name}")


def objects(root, build):
    """Yield each object of urxe and the folder of its source."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(os.path.normpath(
            pathlib.Path(entry["directory"]) / entry["file"]))
        if source.name == "layout_version.c":
            yield build / entry["output"], "kernel-shim/fabric"
        elif root in source.parents or build in source.parents:
            # generated sources belong to the folder that generates them
            top = build if build in source.parents else root
            folder = source.parent.relative_to(top).as_posix()
            if not folder.startswith(("tests", "examples")):
                yield build / entry["output"], folder


def symbols(root, build, edges):
    defined, wanted = {}, []
    folders = {str(obj): folder for obj, folder in objects(root, build)
               if obj.exists()}
    if not folders:
        sys.exit(f"layers: no objects in {build}")
    out = subprocess.run(["nm", "-gA", *folders], check=True,
                         capture_output=True, text=True).stdout
    for obj, kind, name in re.findall(
            r"^(.+):[0-9a-f ]{16} (\w) (\S+)$", out, re.M):
        if kind in "UwW":
            wanted.append((folders[obj], os.path.basename(obj), name))
        else:
            defined.setdefault(name, set()).add(folders[obj])
    if not wanted:
        sys.exit(f"layers: no undefined symbols in {build}")
    # symbols that the preload library exports have the names of libc functions
    library = build / PRELOAD_LIBRARY
    if library.exists():
        out = subprocess.run(["nm", "-D", "--defined-only", library],
                             check=True, capture_output=True, text=True).stdout
        for name in re.findall(r"\w (\w+)$", out, re.M):
            defined.pop(name, None)
    for folder, obj, name in wanted:
        homes = defined.get(name, set())
        if len(homes) == 1:
            edges[folder, next(iter(homes))].add(f"{obj} needs {name}")


def loaded(build):
    """Check the libraries that the preload library needs: only libc, which may be
    several files, and sanitizers.  More would delay the start of each program, so libnl
    is loaded on demand (shim netlink)."""
    library = build / PRELOAD_LIBRARY
    if not library.exists():
        return []
    out = subprocess.run(["readelf", "-d", library], check=True,
                         capture_output=True, text=True).stdout
    return [f"{PRELOAD_LIBRARY} needs {name}" for name in
            re.findall(r"\(NEEDED\).*\[(.*)\]", out)
            if not re.match(r"(lib(c|dl|rt|pthread|gcc_s|\w+san)|ld-[\w-]+)\.|"
                            r"libc\.musl", name)]


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    build = pathlib.Path(sys.argv[2]).resolve()
    bad = []

    seen = set()
    for folder, below in LAYERS.items():
        if not seen.issuperset(below):
            bad.append(f"error in the table: {folder} is below a folder that it uses")
        seen.add(folder)

    edges = collections.defaultdict(set)
    includes(root, edges)
    symbols(root, build, edges)
    bad += loaded(build)
    bad += folders(root)
    for (here, there), uses in sorted(edges.items()):
        if here == there:
            continue
        if here not in LAYERS:
            bad.append(f"{here} is not in the table")
            continue
        allowed = there in LAYERS[here]
        print(f"{here} -> {there}: {len(uses)}{'' if allowed else '  UP'}")
        if not allowed:
            bad += [f"{here} -> {there}: {use}" for use in sorted(uses)]
    print("\n".join(dict.fromkeys(bad)))
    print(f"{len(bad)} edges lead to a higher layer")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
