#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Cost of a trace: CPU time of a WRITE of 8 bytes within a process, post and poll,
# alternately without and with a trace.  Print the best of ROUNDS rounds.
#   trace.sh BUILD_DIR [ROUNDS]
set -eu
build=$1
rounds=${2:-5}
here=$(mktemp -d /dev/shm/urxe-trace-bench.XXXXXX)
export URXE_DIR=$here
trap 'rm -rf "$here"' EXIT
TIMEFORMAT='%U %S'
writes=1100000 # ten rounds of urxe-bench and a warm-up round
records=6 # posted, left, arrived, answered, completed, polled

# measure OPTION...: run with these options of urxe run; print the ns for each WRITE
measure()
{
	{ time "$build/tools/urxe" run "$@" -- "$build/tests/bench/urxe-bench" \
		-w -r 10 >/dev/null; } 2>&1 |
		awk -v n=$writes '{ print ($1 + $2) * 1e9 / n }'
}

best()
{
	printf '%s\n' "$@" | sort -g | head -n 1
}

without=() with=() payload=()
for ((i = 0; i < rounds; i++)); do
	without+=("$(measure)")
	with+=("$(measure --trace "$here/trace")")
	payload+=("$(measure --trace "$here/trace" --trace-payload)")
done
awk -v off="$(best "${without[@]}")" -v on="$(best "${with[@]}")" \
	-v payload="$(best "${payload[@]}")" -v n=$records 'BEGIN {
	printf "WRITE 8 B to DM, post + poll  %.0f ns\n", off
	printf "the same with a trace         %.0f ns: %.0f ns for each of %d records\n",
	       on, (on - off) / n, n
	printf "and with its payload          %.0f ns\n", payload }'
