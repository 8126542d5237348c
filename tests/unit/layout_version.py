#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Check that builds that differ in a shared header have different layout versions.
Usage: layout_version.py SCRIPT FOLDER..."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

script, *folders = sys.argv[1:]


def version(top, places):
    out, dep = top / "out.c", top / "out.d"
    subprocess.run([script, out, dep, *places], check=True)
    return out.read_text(), dep.read_text()


with tempfile.TemporaryDirectory() as tmp:
    top = pathlib.Path(tmp)
    places = [top / f"{i}" for i in range(len(folders))]
    for folder, place in zip(folders, places):
        shutil.copytree(folder, place)
    headers = sorted(top.rglob("*.h"))
    assert len(headers) >= 2, headers
    first, dep = version(top, places)
    for path in headers + places:
        assert f" {path}" in dep, f"a change of {path} does not change the layout version"

    # the order and the directories of the files do not matter
    moved = top / "moved"
    for folder, place in zip(folders, places):
        shutil.copytree(folder, moved / place.name)
    assert version(top, reversed(list(moved.iterdir())))[0] == first

    seen = {first}
    for header in headers:
        text = header.read_bytes()
        header.write_bytes(text.replace(b"1", b"2", 1) + b"\n")
        seen.add(version(top, places)[0])
        header.write_bytes(text)
    assert len(seen) == len(headers) + 1, "a change does not change the layout version"

    for place in places:
        for new in (place / "new.h", place / "below" / "new.h"):
            new.parent.mkdir(exist_ok=True)
            new.write_text(f"/* {new.relative_to(place)} */\n")
            text, dep = version(top, places)
            assert text not in seen and f" {new}" in dep, new
            new.unlink()
    assert version(top, places)[0] == first
