#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the private ABI of a release of rdma-core is, for slots.h.

usage: table.py [--check] TREE...

A TREE is a source tree of rdma-core, or REPOSITORY@REVISION, which is taken
out of a git repository.  Prints what was read of each: the number of its
private ABI, how many operations its table has, what verbs_context has in front
of the ibv_context, and which column of slots.h that is.  If it is none, the
new slots.h follows, with one more column; the symbol that tells the release
from others with the same number, and pabi.h where a struct has another size
than there, are left to whoever adds it.

With --check nothing else is printed than what is wrong: a table that is not in
slots.h, that the provider would not choose for this release, or a struct of
another size."""

import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SLOTS = HERE / "slots.h"

# What pabi.h counts on, the same in every release, on 64-bit machines.
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
    """What a tree says."""

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
    """Compile them against the tree's headers, and run that."""
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "infiniband").mkdir()
        (work / "kernel-abi").mkdir()
        # some of the kernel's are installed beside verbs.h, too
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
    """A Release of a tree, or of a revision in a repository."""
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
    """slots.h as it is."""

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
        """The operations that have a place in a column, by their places."""
        return {name: values[number] for name, values in self.slots.items()
                if values[number] >= 0}

    def chosen(self, release):
        """The family that the provider would take this release for."""
        for family in reversed(self.families):
            if family["number"] == release.number and (
                    not family["symbol"]
                    or family["symbol"] in release.symbols):
                return family
        return None

    def like(self, release):
        """One that has the same table, whatever its number is."""
        for family in self.families:
            if (self.column(family["column"]) == release.ops and
                    family["head"] == release.value[HEAD]):
                return family
        return None

    def with_column(self, release):
        """slots.h with one more column, that of release."""
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
            yield f"{what} is {release.value[what]}, and pabi.h has {want}"
    tail = next(size for first, size in QP_TAILS if release.version >= first)
    if release.value[QP_TAIL] != tail:
        yield (f"{QP_TAIL} is {release.value[QP_TAIL]}, and find_qp_tail() "
               f"says {tail}")
    if release.value[OPS] != len(release.ops):
        yield f"driver.h has {release.value[OPS]} operations, not " \
              f"{len(release.ops)}"


def check(known, release):
    """Does the provider know this release, and rightly?"""
    wrong = list(sizes_wrong(release))
    family = known.chosen(release)
    if not family:
        wrong.append(f"private ABI {release.number} is not in slots.h")
    elif known.column(family["column"]) != release.ops:
        wrong.append(f"column {family['column']} of slots.h is not its table")
    elif (family["count"], family["head"]) != (len(release.ops),
                                               release.value[HEAD]):
        wrong.append(f"it has {len(release.ops)} operations and "
                     f"{release.value[HEAD]} bytes, FAMILY says "
                     f"{family['count']} and {family['head']}")
    return wrong


def show(known, release):
    print(f"{release.name}: rdma-core {release.version}, private ABI "
          f"{release.number}, {len(release.ops)} operations, "
          f"{release.value[HEAD]} bytes before the ibv_context")
    for line in sizes_wrong(release):
        print(f"  {line}: mend provider/abi/pabi/pabi.[ch] first")
    like = known.like(release)
    if not check(known, release):
        print(f"  known: column {known.chosen(release)['column']}")
    elif like:
        print(f"  column {like['column']} is its table; it needs a line\n"
              f"  FAMILY({like['column']}, {release.number}, NULL, "
              f"{like['count']}, {like['head']})")
    else:
        print("  not known; slots.h with it:\n")
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
