#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The report at the end of ./check: for each failure its name, the end of its output,
# and the command that repeats it; the summary; the exit status.
set -u
cd "$(dirname "$0")/../.." || exit 99
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# has TEXT FILE: check that a line of the file equals the text.
has()
{
	grep -qxF -- "$1" "$2" || { echo "no line '$1' in:"; cat "$2"; exit 1; }
}

# A build directory with results of "meson test", and a meson that runs no tests
mkdir -p "$dir/build/meson-logs" "$dir/bin"
printf '#!/bin/sh\nexit 1\n' >"$dir/bin/meson"
chmod +x "$dir/bin/meson"
cat >"$dir/build/meson-logs/testlog.json" <<'END'
{"name": "urxe:verbs / ah", "stdout": "fine\n", "result": "OK", "duration": 0.1, "returncode": 0}
{"name": "urxe:ci+long / ci jobs", "stdout": "first\nlast\n", "result": "FAIL", "duration": 2.0, "returncode": 9}
{"name": "urxe:abi / abi", "stdout": "no library\n", "result": "SKIP", "duration": 0.1, "returncode": 77}
END

# shellcheck disable=SC2016 # for the inner shell
PATH=$dir/bin:$PATH bash -c '
	. .ci/setup.sh
	. .ci/steps.sh
	prints() { seq 100; return 3; }
	step "a step that fails" prints "with blanks"
	step "a step that is skipped" sh -c "echo no such tool; exit 77"
	step "a step that passes" true
	meson_test "$1"
	finish' bash "$dir/build" >"$dir/out" 2>"$dir/err"
status=$?

[[ $status == 1 ]] || { echo "exit status $status"; exit 1; }
has '2 passed, 2 failed, 2 skipped' "$dir/out"
# the name is printed when the step fails, and in the report
awk '/^FAILED: a step that fails$/ { n++ } n == 2' "$dir/err" >"$dir/report"
has 'FAILED: a step that fails' "$dir/report"
has '  61' "$dir/report"
has '  100' "$dir/report"
! grep -qx '  60' "$dir/report" || { echo 'more than 40 lines'; exit 1; }
has '  repeat: ./check --step prints with\ blanks' "$dir/report"
has "FAILED: urxe:ci+long / ci jobs in $dir/build: FAIL after 2 s, status 9" \
	"$dir/report"
has '  last' "$dir/report"
has "  repeat: meson test -C $dir/build --print-errorlogs --suite ci 'ci jobs'" \
	"$dir/report"
has 'skipped: a step that is skipped: no such tool' "$dir/err"
# the names are the end of the output
tail -n 2 "$dir/err" >"$dir/end"
has 'FAILED: a step that fails' "$dir/end"
has "FAILED: urxe:ci+long / ci jobs in $dir/build: FAIL after 2 s, status 9" \
	"$dir/end"
