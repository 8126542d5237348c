#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""table.py [--write MEASURED]

Check that the table in docs/litmus.md equals the test files, and that each cell
of the ordering table in provider/engine/exec/order.c has a test.  With --write,
write the table anew from the files and from MEASURED, the output of `litmus -q`
for all of them.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
DOC = TOP / "docs" / "litmus.md"
BEGIN = "<!-- table: tests/litmus/table.py --write -->"
END = "<!-- end of the table -->"
CLASSES = ["send", "bind", "write", "read", "atomic"]
HEAD = """| test | what | source | outcome | seeds | seen |
| --- | --- | --- | --- | --- | --- |
"""


class Test:
    def __init__(self, path):
        self.name = path.stem
        self.title = self.source = self.seeds = None
        self.outcomes = []
        for line in path.read_text().splitlines():
            key, _, rest = line.partition(" ")
            if key == "#" and not self.title and "SPDX" not in rest:
                self.title = rest
            elif key == "source":
                self.source = rest
            elif key == "seeds":
                self.seeds = int(rest)
            elif key in ("allowed", "forbidden", "unseen"):
                self.outcomes.append((key, " ".join(rest.split())))

    def kinds(self):
        return {kind for kind, _ in self.outcomes}

    def rows(self):
        """Yield the cells of each outcome, except the last one."""
        for i, (kind, text) in enumerate(self.outcomes):
            title = self.title if i == 0 else ""
            source = self.source if i == 0 else ""
            yield (f"`{self.name}`" if i == 0 else "", title, source,
                   f"{kind} `{text}`", str(self.seeds) if i == 0 else "")


def tests():
    return [Test(path) for path in sorted(HERE.glob("*.litmus"))]


def order_table():
    """Return {(first, second): "A" or "F"} as in order.c."""
    text = (TOP / "provider/engine/exec/order.c").read_text()
    cells = {}
    for first in CLASSES:
        row = re.search(rf"\[ORDER_{first.upper()}\]\s*= {{([^}}]*)}}", text)
        kinds = [k.strip() for k in row.group(1).split(",")]
        for second, kind in zip(CLASSES, kinds):
            cells[first, second] = kind
    return cells


def missing_cells(by_name):
    for (first, second), kind in order_table().items():
        name = f"table-{first}-{second}"
        want = {name: "forbidden"}
        if kind == "F":
            want = {name: "allowed", name + "-fence": "forbidden"}
        for name, outcome in want.items():
            test = by_name.get(name)
            if not test or test.kinds() != {outcome}:
                yield f"{name}.litmus is missing, or has outcomes other than {outcome}"


def table_of_doc():
    text = DOC.read_text()
    inner = text[text.index(BEGIN) + len(BEGIN):text.index(END)].strip()
    return [tuple(cell.strip() for cell in line.strip("|").split(" | "))
            for line in inner.splitlines()[2:]]


def measured(path):
    """Return {(test, outcome): how often it was observed}."""
    seen = {}
    name = seeds = None
    for line in pathlib.Path(path).read_text().splitlines():
        head = re.fullmatch(r"(\S+): (\d+) seeds", line)
        if head:
            name, seeds = head.groups()
            continue
        row = re.fullmatch(r"  (\w+ .*): (\d+) times(?:, first by seed (\d+))?"
                           r"(?:: .*)?", line)
        if row:
            text, count, first = row.groups()
            seen[name, text] = f"{count} of {seeds}" + (
                f", first {first}" if first else "")
    return seen


def write(path):
    seen = measured(path)
    lines = []
    for test in tests():
        for row, (kind, text) in zip(test.rows(), test.outcomes):
            lines.append("| " + " | ".join(
                row + (seen[test.name, f"{kind} {text}"],)) + " |")
    doc = DOC.read_text()
    DOC.write_text(doc[:doc.index(BEGIN)] + BEGIN + "\n\n" + HEAD +
                   "\n".join(lines) + "\n\n" + doc[doc.index(END):])


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--write":
        write(sys.argv[2])
        return 0
    wrong = list(missing_cells({t.name: t for t in tests()}))
    want = [row for test in tests() for row in test.rows()]
    have = [row[:5] for row in table_of_doc()]
    for row in want:
        if row not in have:
            wrong.append(f"docs/litmus.md lacks: {' | '.join(row)}")
    for row in have:
        if row not in want:
            wrong.append(f"docs/litmus.md has a row without a test: {' | '.join(row)}")
    if not wrong and want != have:
        wrong.append("docs/litmus.md has its rows in another order")
    for line in wrong:
        print(line)
    if not wrong:
        print(f"{len(tests())} tests, all {len(order_table())} cells")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
