# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Steps of ./check: each passes, fails or is skipped, and is counted.  A report of
# the failures follows at the end.  Sourced, not run.

passed=0
failed=0
skipped=0
failures=() # one report for each failed step or test

pass()
{
	passed=$((passed + 1))
	say "ok: $1"
}

# fail NAME [REPORT]: count a failure; the report is printed again at the end.
fail()
{
	failed=$((failed + 1))
	failures+=("FAILED: $1${2:+
$2}")
	say "FAILED: $1"
}

skip()
{
	skipped=$((skipped + 1))
	say "skipped: $1"
}

# Set cpu to the CPU time of the children that have ended, in s.
cpu_time()
{
	local file

	file=$(mktemp) || return
	times >"$file" # a subshell would have no children
	cpu=$(tail -n 1 "$file" | tr 'ms' '  ' |
		awk '{ print int($1 * 60 + $2 + $3 * 60 + $4) }')
	rm -f "$file"
}

# Set time to that which passed since `began` and `cpu` were set, as text.
spent()
{
	local before=$cpu

	cpu_time
	time="$((SECONDS - began)) s, $((cpu - before)) CPU s"
}

# step NAME COMMAND...: run the command as one test.  Exit status 77 means skipped;
# the last line of the output is the reason.
step()
{
	local name=$1 log status began=$SECONDS cpu time
	shift
	cpu_time

	log=$(mktemp) || { fail "$name"; return 1; }
	say
	say "== $name"
	"$@" 2>&1 | tee "$log" >&2
	status=${PIPESTATUS[0]}
	case $status in
	0) spent; pass "$name ($time)" ;;
	77) skip "$name: $(tail -n 1 "$log")" ;;
	*) fail "$name" "$(tail -n 40 "$log" | sed 's/^/  /')
  repeat: $(repeat_line "$@")" ;;
	esac
	rm -f "$log"
	return "$status"
}

# Print the command that repeats a step, quoted for a shell.
repeat_line()
{
	if [[ $(type -t "$1") == function ]]; then
		echo "./check --step$(printf ' %q' "$@")"
	else
		printf '%q ' "$@"
	fi
}

# meson_test DIR [OPTION...]: run tests of a build, and add their results.
meson_test()
{
	local dir=$1 status n_ok n_failed n_skipped report before=$failed
	local began=$SECONDS cpu time
	shift
	cpu_time

	say
	say "== tests in $dir"
	meson test -C "$dir" --no-rebuild "$@" </dev/null >&2
	status=$?
	spent
	say "tests in $dir: $time"
	if ! read -r n_ok n_failed n_skipped < <(tests/results.py --sum "$dir")
	then
		fail "meson test in $dir: status $status, no results"
		return 1
	fi
	passed=$((passed + n_ok))
	skipped=$((skipped + n_skipped))
	failed=$((failed + n_failed))
	while IFS= read -r -d '' report; do
		failures+=("$report")
	done < <(tests/results.py --failed "$dir")
	if [[ $failed == "$before" && $status != 0 ]]; then
		fail "meson test in $dir ended with status $status"
	elif [[ $n_ok == 0 ]]; then
		fail "meson test in $dir ran no tests"
	fi
	[[ $failed == "$before" ]]
}

# Print the report and exit: 0 if nothing failed.
finish()
{
	local f

	say
	for f in ${failures[@]+"${failures[@]}"}; do
		say "$f"
		say
	done
	say "$SECONDS s; CPU time of this shell and of its children:"
	times >&2
	# once more only the first lines: the reports may be long
	for f in ${failures[@]+"${failures[@]}"}; do
		say "${f%%$'\n'*}"
	done
	echo "$passed passed, $failed failed, $skipped skipped"
	[[ $failed == 0 ]]
	exit
}
