#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# cost.sh URXE INSTRUCTIONS: without a trace nothing of a recorder is executed
# by a WRITE and its poll; with one, each record takes so many instructions at
# most (callgrind counts).
set -u
urxe=$1 program=$2
most=400 # 318 with gcc 12; a WRITE that is watched goes the long way, too
n=200
here=$(mktemp -d) || exit 99
trap 'rm -rf "$here"' EXIT

command -v valgrind callgrind_annotate >/dev/null ||
	{ echo "SKIP: no valgrind"; exit 77; }

# count NAME [OPTIONS OF URXE RUN]: instructions of n WRITEs, and who has them
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
# the other way round: what is looked for is found where it is
expect "a recorder's functions are seen" test -s "$here/on.who"
expect "without a trace there are none: $(cat "$here/off.who")" \
	test ! -s "$here/off.who"
off=$(cat "$here/off.n") on=$(cat "$here/on.n")
per=$(((on - off) / n / 6))
echo "$((off / n)) instructions, $((on / n)) with six records: $per each"
expect "a record takes $most instructions at most" test $per -le $most
exit $failed
