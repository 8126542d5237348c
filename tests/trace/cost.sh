#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# cost.sh URXE INSTRUCTIONS: without a trace, a WRITE and its poll execute no function
# of the recorder; with a trace, the instructions of each record are limited (counted by
# callgrind).
set -u
urxe=$1 program=$2
most=400 # 318 with gcc 12, including the cost that a traced WRITE does not use the fast path
n=200
here=$(mktemp -d) || exit 99
trap 'rm -rf "$here"' EXIT

command -v valgrind callgrind_annotate >/dev/null ||
	{ echo "SKIP: valgrind is not installed"; exit 77; }

# count NAME [OPTION OF URXE RUN...]: count the instructions of n WRITEs, and list the
# functions of the recorder
count()
{
	local out=$here/$1
	shift
	"$urxe" run "$@" -- valgrind --tool=callgrind \
		--callgrind-out-file="$out" --toggle-collect=measured \
		"$program" write-private $n >"$out.said" 2>&1 ||
		{ cat "$out.said"; return 1; }
	sed -nE 's/.*Collected : ([0-9]+).*/\1/p' "$out.said" >"$out.n"
	callgrind_annotate --threshold=100 "$out" |
		grep -E ':(observe|record|recorder|trace)(_[a-z_]*)?( |$)' >"$out.who"
}

failed=0
expect()
{
	"${@:2}" && return
	echo "FAILED: $1"
	failed=1
}

count off
count on --trace "$here/trace"
# check that the pattern finds these functions in a run with a trace
expect "with a trace, functions of the recorder are executed" test -s "$here/on.who"
expect "without a trace, none are executed: $(cat "$here/off.who")" \
	test ! -s "$here/off.who"
off=$(cat "$here/off.n") on=$(cat "$here/on.n")
per=$(((on - off) / n / 6))
echo "$((off / n)) instructions, $((on / n)) with six records: $per each"
expect "a record takes $most instructions at most" test $per -le $most
exit $failed
