#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Check that the lesson programs and pictures are as the pages of the course show.
Usage: lessons.py URXE DIR [--draw] [N...]
  --draw  write the pictures instead of comparing them
Without N the first change of each page is tested; with URXE_TEST_LONG, as in
./check --long, all of them.

A page has, in this order:
  # Lesson N: TITLE
  the command that compiles its program (a line of four spaces and "cc ...")
  a block "```output": the output of the program.  There may be several blocks;
    each belongs to the "urxe run OPTIONS -- ./PROGRAM" above it
  a table of changes: the first column has `-DBREAK=K`, and options of urxe run as
    `code`, if they are not those of the first block; the third column has, as `code` and in order, each line that the
    changed program prints and the unchanged one does not, or "nothing else"
  a picture of a trace, "![TITLE](pictures/FILE)", after a line "<!-- trace
    [BREAK=K] [OPTION...] -->" with options of tests/trace/picture
"""

import concurrent.futures
import difflib
import glob
import html
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

QUESTIONS = "## Say first what you expect\n"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
HANGS = 600  # time limit in seconds; a lesson takes less than one
PICTURE = (r"<!-- trace(?: BREAK=(\d+))?(.*?) -->\n\n?"
           r"!\[([^]]*)\]\((pictures/[\w-]+\.svg)\)")
# addresses, and durations of calls
VARIES = r"0x[0-9a-f]{9,}|[\d.]+ [mu]?s\b"
# connections of librdmacm begin with a random PSN
VARIES_CM = r"PSN \d+|" + VARIES
DRAWER = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "..", "trace", "picture")
failed = []


def expect(what, is_so, said=""):
    if not is_so:
        failed.append(what)
        print(f"FAILED: {what}\n{said}", flush=True)
    return is_so


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Page:
    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path)[:-3]
        self.compiled = {}  # number of a change: (lock, program)
        self.text = read(path)
        title = re.match(r"# (Lesson (\d+): \S.*)\n", self.text)
        command = re.search(r"^    cc (.*)$", self.text, re.M)
        # options of urxe run, and the output
        self.runs = [(options.split(), output) for options, output in
                     re.findall(r"^    urxe run ([^\n]*)-- \./\S+\n(?:[^`]*\n)?"
                                r"```output\n(.*?)^```$",
                                self.text, re.M | re.S)]
        for what, found in (("title", title), ("command", command),
                            ("output", self.runs)):
            if not found:
                raise ValueError(f"{path}: no {what}")
        self.title, self.number = title[1], int(title[2])
        self.command = command[1].split()
        self.breaks = {}
        self.options = {}  # of urxe run
        for row in re.findall(r"^\| `-DBREAK=.*$", self.text, re.M):
            cells = re.split(r"(?<!\\)\|", row)
            number = int(re.search(r"BREAK=(\d+)", cells[1])[1])
            self.options[number] = (re.findall(r"`(--[^`]*)`", cells[1]) or
                                    self.runs[0][0])
            self.breaks[number] = [
                html.unescape(line).replace("\\|", "|")
                for line in re.findall(r"`([^`]*)`", cells[3])]
            if not self.breaks[number] and "nothing else" not in cells[3]:
                raise ValueError(f"{path}: no output for BREAK={number}")

        self.pictures = [(int(number or 0), shlex.split(options), title, file)
                         for number, options, title, file in
                         re.findall(PICTURE, self.text)]
        if self.text.count("![") != len(self.pictures):
            raise ValueError(f"{path}: a picture without a trace comment")

    def compile(self, out, *options, cc="gcc"):
        """Compile with the command of the page, and another output file."""
        words = list(self.command)
        words[words.index("-o") + 1] = out
        done = subprocess.run([cc, *WARNINGS, *options, *words], cwd=DIR,
                              text=True, capture_output=True)
        return expect(f"{self.name}: {cc} {' '.join(options)}",
                      done.returncode == 0, done.stderr)


    def program(self, number=0):
        """Compile the program once, without or with a change.  Return its path, or None."""
        lock, done = self.compiled.setdefault(number, (threading.Lock(), []))
        with lock:
            if not done:
                out = os.path.join(TEMP, f"{self.name}-{number}", self.name)
                os.mkdir(os.path.dirname(out))
                options = [f"-DBREAK={number}"] if number else []
                done.append(out if self.compile(out, *options) else None)
        return done[0]


def show_difference(expected, printed):
    return "".join(difflib.unified_diff(expected.splitlines(True),
                                        printed.splitlines(True),
                                        "the page", "the program"))


def new_lines(before, after):
    """Return the lines that were added."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return [line.strip() for what, _, _, begin, end in matcher.get_opcodes()
            if what != "equal" for line in after[begin:end]]


def run(words):
    """Run a command.  Return its exit status and its output."""
    try:
        done = subprocess.run(words, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, timeout=HANGS,
                              stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as late:
        return -1, f"hangs after {late.stdout}"
    # urxe run names what explains a failure, with the number of the process
    return done.returncode, re.sub(r"^urxe\[\d+\]: .*; for the reason use .*\n", "",
                                   done.stdout, flags=re.M)


def check_lesson(page):
    """urxe lesson N prints the questions, and then the output of the program."""
    code, out = run([URXE, "lesson", str(page.number)])
    begin, _, rest = out.partition("\n$ ")
    command, _, rest = rest.partition("\n")
    printed, _, end = rest.rpartition("\nExplanation")
    expect(f"{page.name}: urxe lesson", code == 0 and
           begin.startswith(page.title) and QUESTIONS in begin and
           command.startswith(" ".join(["urxe run", *page.runs[0][0], "-- "])) and
           page.path in end, out)
    expect(f"{page.name}: what it prints", printed == page.runs[0][1],
           show_difference(page.runs[0][1], printed))


def check_terminal(page):
    """On a terminal urxe lesson waits between the questions and the run."""
    ours, theirs = pty.openpty()
    out = asked = b""
    with subprocess.Popen([URXE, "lesson", str(page.number)], stdin=theirs,
                          stdout=theirs, stderr=theirs) as lesson:
        os.close(theirs)
        try:
            while b"Press Enter" not in out:
                out += os.read(ours, 4096)
            asked = out
            os.write(ours, b"\n")
            while True:
                out += os.read(ours, 4096)
        except OSError:  # EIO: all programs on the terminal have ended
            pass
    os.close(ours)
    expect("urxe lesson waits on a terminal", lesson.returncode == 0 and
           asked and b"$ urxe" not in asked and
           page.runs[0][1].splitlines()[-1].encode() in out, out)


def check_compilers(page):
    """The command of the page works as it is written."""
    ok = page.command[0] == page.name + ".c"
    expect(f"{page.name}: the command is for its program", ok, page.command)
    if shutil.which("clang"):
        page.compile("/dev/null", "-fsyntax-only",
                     "-Wno-unused-command-line-argument", cc="clang")
    program = page.program()
    if not program:
        return
    for number, (options, output) in enumerate(page.runs):
        code, out = run([URXE, "run", "--fabric", f"{page.name}-run{number}",
                         *options, "--", program])
        expect(f"{page.name}: what it prints {options}",
               out == output and code == 0, show_difference(output, out))


def check_break(page, number):
    program = page.program(number)
    if not program:
        return
    options = page.options[number]
    output = dict((tuple(o), out) for o, out in page.runs)[tuple(options)]
    code, out = run([URXE, "run", "--fabric", f"{page.name}-{number}",
                     *options, "--", program])
    new = new_lines(output.splitlines(), out.splitlines())
    wanted = page.breaks[number]
    expect(f"{page.name}: what BREAK={number} prints",
           new == wanted and code in (0, 1),
           show_difference("\n".join(wanted) + "\n", "\n".join(new) + "\n") +
           f"exit code {code}, printed:\n{out}")


def check_picture(page, number, options, title, file):
    """The picture of the page equals one drawn from a trace of the program."""
    where = tempfile.mkdtemp(dir=TEMP)
    trace, picture = (os.path.join(where, name) for name in
                      ("trace", "picture.svg"))
    program = page.program(number)
    if not program:
        return
    run([URXE, "run", "--fabric", f"{page.name}-picture-{number}", "--trace",
         trace, "--", program])
    # without the reasons: they contain addresses, and their texts change
    code, out = run([DRAWER, "--title", title, "--hide", "why", *options, URXE,
                     trace, picture])
    if not expect(f"{page.name}: {file} can be drawn", code == 0, out):
        return
    if DRAW:
        shutil.copy(picture, os.path.join(DIR, file))
        return
    varies = VARIES_CM if "-lrdmacm" in page.command else VARIES
    drawn, shown = (re.sub(varies, "N", text) for text in
                    (read(picture), read(os.path.join(DIR, file))))
    expect(f"{page.name}: {file}", drawn == shown,
           show_difference(shown.replace(">", ">\n"),
                           drawn.replace(">", ">\n")))


def check_switches(page):
    """The page lists each change that the source has."""
    source = read(os.path.join(DIR, page.name + ".c"))
    there = {int(n) for n in re.findall(r"BREAK [=!]= (\d+)", source)}
    expect(f"{page.name}: changes of the source and of the page",
           there == set(page.breaks) and there, (there, set(page.breaks)))


def check_index(pages):
    index = re.findall(r"\((\d\d-\S*)\.md\)",
                       read(os.path.join(DIR, "README.md")))
    expect("the index has each page, in order",
           index == [page.name for page in pages], index)
    code, out = run([URXE, "lesson"])
    expect("urxe lesson lists them", code == 0 and
           out.startswith("".join(p.title + "\n" for p in pages)), out)
    expect("they are numbered", [p.number for p in pages] ==
           list(range(1, len(pages) + 1)))
    for words in (["0"], ["99"]):
        code, out = run([URXE, "lesson", *words])
        expect(f"urxe lesson {words}", code == 2 and "no lesson" in out, out)
    for words in (["x"], ["1", "2"], ["--files"], ["--nonsense"]):
        code, out = run([URXE, "lesson", *words])
        expect(f"urxe lesson {words}", code == 2 and "usage" in out, out)
    code, out = run([URXE, "lesson", "--files", str(pages[0].number)])
    files = out.splitlines()
    expect("urxe lesson --files", code == 0 and len(files) == 3 and
           files[0] == pages[0].path and all(map(os.path.exists, files)), out)


def main():
    pages = [Page(path) for path in
             sorted(glob.glob(os.path.join(DIR, "[0-9][0-9]-*.md")))]
    if not ONLY:
        check_index(pages)
    can_draw = shutil.which("node")
    if not can_draw:
        print("pictures are not compared: node is not installed")
    jobs = []
    workers = os.cpu_count() + 2  # some lessons sleep
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for page in pages:
            if ONLY and page.number not in ONLY:
                continue
            if page is pages[0]:
                jobs.append(pool.submit(check_terminal, page))
            jobs.append(pool.submit(check_switches, page))
            jobs.append(pool.submit(check_lesson, page))
            jobs.append(pool.submit(check_compilers, page))
            changes = list(page.breaks)
            if not ONLY and not os.environ.get("URXE_TEST_LONG"):
                changes = changes[:1]
            jobs += [pool.submit(check_break, page, n) for n in changes]
            if can_draw:
                jobs += [pool.submit(check_picture, page, *picture)
                         for picture in page.pictures]
    for job in jobs:
        job.result()
    print(f"{len(pages)} pages, {len(jobs)} checks")
    return 1 if failed else 0


if __name__ == "__main__":
    URXE = os.path.realpath(sys.argv[1])
    DIR = os.path.realpath(sys.argv[2])
    DRAW = "--draw" in sys.argv[3:]
    ONLY = {int(n) for n in sys.argv[3:] if n != "--draw"}
    with tempfile.TemporaryDirectory() as TEMP:
        sys.exit(main())
