#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Read the private ABI of releases of rdma-core, for slots.h.

usage: table.py [--check] TREE...

TREE is a source tree of rdma-core, or REPOSITORY@REVISION of a git repository.
For each, print the number of its private ABI, the number of operations in its
table, the bytes of verbs_context in front of the ibv_context, and the column of
slots.h with this table.  If there is none, print slots.h with a new column.
Two things must be added by hand: the symbol that identifies the release among
those with the same number, and changes of pabi.h if a struct has another size.

With --check, print errors only: a table that is not in slots.h or that the
provider would not select for the release, or a struct of another size."""

import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SLOTS = HERE / "slots.h"

# Assumptions of pabi.h: sizes that all releases have, on 64-bit machines.
SIZES = {
    "sizeof(struct verbs_device)": 712,
    "sizeof(struct verbs_device_ops)": 72,
    "sizeof(struct verbs_mr)": 56,
    "sizeof(struct verbs_dm)": 40,
    "sizeof(struct verbs_srq)": 160,
    "sizeof(struct verbs_xrcd)": 16,
    "sizeof(struct verbs_cq)": "sizeof(struct ibv_cq_ex)",
    "offsetof(struct verbs_sysfs_dev, ibdev_name)": 112,
    "offsetof(struct verbs_device, core_support)": 704,
}
HEAD = "offsetof(struct verbs_context, context)"
OPS = "sizeof(struct verbs_context_ops) / sizeof(void *)"
# pabi.c, find_qp_tail(): by release
QP_TAIL = "offsetof(struct verbs_qp, comp_mask)"
QP_TAILS = ((45, 360), (44, 352), (0, 344))

NEEDED = ["CMakeLists.txt", "buildlib", "ccan", "kernel-headers", "libibverbs",
          "util"]


class Release:
    """The private ABI of a source tree."""

    def __init__(self, name, tree):
        self.name = name
        cmake = (tree / "CMakeLists.txt").read_text()
        self.number = int(re.search(r'IBVERBS_PABI_VERSION "(\d+)"',
                                    cmake).group(1))
        self.version = int(re.search(r'PACKAGE_VERSION "(\d+)\.',
                                     cmake).group(1))
        driver = (tree / "libibverbs/driver.h").read_text()
        body = re.search(r"^struct verbs_context_ops \{(.*?)^\};", driver,
                         re.M | re.S).group(1)
        self.ops = {name: place for place, name in
                    enumerate(re.findall(r"\(\*(\w+)\)\(", body))}
        self.symbols = set(re.findall(
            r"^\s*(\w+);",
            (tree / "libibverbs/libibverbs.map.in").read_text(), re.M))
        wanted = [HEAD, OPS, QP_TAIL, *SIZES,
                  *(v for v in SIZES.values() if isinstance(v, str))]
        self.value = dict(zip(wanted, measure(tree, wanted)))


def measure(tree, expressions):
    """Values of C expressions, compiled with the headers of the tree."""
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "infiniband").mkdir()
        (work / "kernel-abi").mkdir()
        # some kernel headers are installed next to verbs.h, too
        for header in (*(tree / "libibverbs").glob("*.h"),
                       *(tree / "kernel-headers/rdma").glob("ib_*ioctl*.h")):
            (work / "infiniband" / header.name).symlink_to(header.resolve())
        for folder in ("ccan", "util"):
            (work / folder).symlink_to((tree / folder).resolve())
        (work / "rdma").symlink_to((tree / "kernel-headers/rdma").resolve())
        (work / "config.h").write_text(
            "#define HAVE_STATEMENT_EXPR 1\n"
            "#define HAVE_BUILTIN_TYPES_COMPATIBLE_P 1\n"
            "#define HAVE_TYPEOF 1\n#define HAVE_ISBLANK 1\n")
        subprocess.run([sys.executable, tree / "buildlib/make_abi_structs.py",
                        tree / "kernel-headers/rdma/ib_user_verbs.h",
                        work / "kernel-abi/ib_user_verbs.h"], check=True)
        prints = "".join(f'printf("%zu\\n", (size_t)({e}));\n'
                         for e in expressions)
        (work / "measure.c").write_text(
            "#define _GNU_SOURCE\n#include <config.h>\n#include <stddef.h>\n"
            "#include <stdio.h>\n#include <infiniband/driver.h>\n"
            "int main(void)\n{\n" + prints + "return 0;\n}\n")
        subprocess.run(["cc", "-std=gnu11", "-w", "-I", work, "-o",
                        work / "measure", work / "measure.c"], check=True)
        out = subprocess.run([work / "measure"], check=True,
                             capture_output=True, text=True).stdout
        return [int(n) for n in out.split()]


def read(name):
    """The Release of a source tree, or of a revision in a repository."""
    if pathlib.Path(name).is_dir():
        return Release(name, pathlib.Path(name))
    repository, _, revision = name.rpartition("@")
    with tempfile.TemporaryDirectory() as tree:
        archive = subprocess.run(
            ["git", "-C", repository, "archive", revision, *NEEDED],
            check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", tree], input=archive, check=True)
        return Release(name, pathlib.Path(tree))


class Known:
    """The contents of slots.h."""

    def __init__(self):
        text = SLOTS.read_text()
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        self.families = [
            {"column": int(c), "number": int(n),
             "symbol": None if s == "NULL" else s.strip('"'),
             "count": int(k), "head": int(h)}
            for c, n, s, k, h in re.findall(
                r'^FAMILY\((\d+), (\d+), (NULL|"\w+"), (\d+), (\d+)\)', code,
                re.M)]
        self.slots = {name: [int(v) for v in values.split(",")]
                      for name, values in re.findall(
                          r"^SLOT\((\w+), ([-\d, ]+)\)", code, re.M)}

    def column(self, number):
        """The operations of a column, with their positions."""
        return {name: values[number] for name, values in self.slots.items()
                if values[number] >= 0}

    def chosen(self, release):
        """The family that the provider selects for this release."""
        for family in reversed(self.families):
            if family["number"] == release.number and (
                    not family["symbol"]
                    or family["symbol"] in release.symbols):
                return family
        return None

    def like(self, release):
        """A family with the same table, and any number."""
        for family in self.families:
            if (self.column(family["column"]) == release.ops and
                    family["head"] == release.value[HEAD]):
                return family
        return None

    def with_column(self, release):
        """The text of slots.h with a new column, for release."""
        last = self.families[-1]["column"]
        names = sorted({*self.slots, *release.ops})
        absent = [-1] * (last + 1)
        rows = []
        for name in names:
            values = [*self.slots.get(name, absent),
                      release.ops.get(name, -1)]
            rows.append(f"SLOT({name}, {', '.join(map(str, values))})")
        text = SLOTS.read_text()
        family = (f"FAMILY({last + 1}, {release.number}, NULL, "
                  f"{len(release.ops)}, {release.value[HEAD]})\n")
        text = text.replace("#define PABI_COLUMNS",
                            family + "#define PABI_COLUMNS")
        text = re.sub(r"(#define PABI_COLUMNS) \d+", rf"\1 {last + 2}", text)
        first, end = text.index("\nSLOT("), text.rindex("\nSLOT(")
        end = text.index("\n", end + 1)
        return text[:first + 1] + "\n".join(rows) + text[end:]


def sizes_wrong(release):
    for what, size in SIZES.items():
        want = release.value[size] if isinstance(size, str) else size
        if release.value[what] != want:
            yield f"{what} is {release.value[what]}, but {want} in pabi.h"
    tail = next(size for first, size in QP_TAILS if release.version >= first)
    if release.value[QP_TAIL] != tail:
        yield (f"{QP_TAIL} is {release.value[QP_TAIL]}, but {tail} in "
               "find_qp_tail()")
    if release.value[OPS] != len(release.ops):
        yield f"driver.h has {release.value[OPS]} operations, not " \
              f"{len(release.ops)}"


def check(known, release):
    """The errors of slots.h and pabi.h for this release."""
    wrong = list(sizes_wrong(release))
    family = known.chosen(release)
    if not family:
        wrong.append(f"private ABI {release.number} is not in slots.h")
    elif known.column(family["column"]) != release.ops:
        wrong.append(f"column {family['column']} of slots.h has another table")
    elif (family["count"], family["head"]) != (len(release.ops),
                                               release.value[HEAD]):
        wrong.append(f"{len(release.ops)} operations and "
                     f"{release.value[HEAD]} bytes, but FAMILY has "
                     f"{family['count']} and {family['head']}")
    return wrong


def show(known, release):
    print(f"{release.name}: rdma-core {release.version}, private ABI "
          f"{release.number}, {len(release.ops)} operations, "
          f"{release.value[HEAD]} bytes before the ibv_context")
    for line in sizes_wrong(release):
        print(f"  {line}: change provider/abi/pabi/pabi.[ch] first")
    like = known.like(release)
    if not check(known, release):
        print(f"  known: column {known.chosen(release)['column']}")
    elif like:
        print(f"  the table is that of column {like['column']}; add the line\n"
              f"  FAMILY({like['column']}, {release.number}, NULL, "
              f"{like['count']}, {like['head']})")
    else:
        print("  unknown; slots.h with a new column:\n")
        print(known.with_column(release), end="")


def main(argv):
    only_check = argv[:1] == ["--check"]
    names = argv[1:] if only_check else argv
    if not names or names[0].startswith("-"):
        sys.exit(__doc__)
    known, failed = Known(), 0
    for name in names:
        release = read(name)
        if only_check:
            wrong = check(known, release)
            failed += bool(wrong)
            for line in wrong:
                print(f"{name}: {line}")
        else:
            show(known, release)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
