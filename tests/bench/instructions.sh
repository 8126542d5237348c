#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Instructions per operation, post and poll together, counted by callgrind:
#   instructions.sh BUILD_DIR [LIMITS]
# With the file LIMITS, a name and a number a line, 1 if one takes a fifth more, or
# less than half: then the program failed.
set -eu
build=$1
limits=${2-}
command -v valgrind >/dev/null || { echo 'SKIP: no valgrind'; exit 77; }
URXE_DIR=$(mktemp -d /dev/shm/urxe-instructions.XXXXXX)
export URXE_DIR
unset MALLOC_PERTURB_ # as meson sets it: it counts, too
trap 'rm -rf "$URXE_DIR"' EXIT
status=0

for op in write-private write-dm write-list wr-write wr-list read-dm fetch-add \
	fetch-add-dm send poll-empty qp qp-of-4000; do
	n=2000
	case $op in qp*) n=200 ;; esac
	total=$("$build/tools/urxe" run -- valgrind --tool=callgrind \
		--callgrind-out-file=/dev/null --toggle-collect=measured \
		"$build/tests/bench/urxe-instructions" "$op" $n 2>&1 |
		sed -nE 's/.*Collected : ([0-9]+).*/\1/p')
	# valgrind may be older than what the compiler writes for debuggers
	[ -n "$total" ] || { echo 'SKIP: callgrind cannot run it'; exit 77; }
	limit=$(awk -v op="$op" '$1 == op { print $2 }' "${limits:-/dev/null}")
	per=1
	case $op in *-list) per=32 ;; esac
	awk -v op="$op" -v n="$total" -v times=$n -v per=$per -v limit="${limit:-0}" 'BEGIN {
		n = n / times / per
		bad = limit && (n > 1.2 * limit || n < limit / 2)
		printf "%-14s %7.1f instructions%s%s\n", op, n,
		       (per > 1 ? " per WR" : ""),
		       (bad ? ", and not " limit : "")
		exit bad }' || status=1
done
exit $status
