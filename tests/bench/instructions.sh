#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Instructions per operation, post and poll together, counted by callgrind:
#   instructions.sh BUILD_DIR [LIMITS]
# LIMITS is a file with a name and a number in each line.  The exit status is 1 if an
# operation takes more than 1.2 times that number, or less than half of it, as it does
# if the program fails.
set -eu
build=$1
limits=${2-}
command -v valgrind >/dev/null || { echo 'SKIP: no valgrind'; exit 77; }
URXE_DIR=$(mktemp -d /dev/shm/urxe-instructions.XXXXXX)
export URXE_DIR
unset MALLOC_PERTURB_ # set by meson; its instructions would be counted
trap 'rm -rf "$URXE_DIR"' EXIT

ops='write-private write-dm write-list wr-write wr-list read-dm fetch-add
	fetch-add-dm send poll-empty qp qp-of-4000'
set --
for op in $ops; do
	n=2000
	case $op in qp*) n=200 ;; esac
	set -- "$@" "$op" "$n"
done
# callgrind writes a file at each return of measured()
"$build/tools/urxe" run -- valgrind --tool=callgrind \
	--callgrind-out-file="$URXE_DIR/out" --toggle-collect=measured \
	--dump-after=measured "$build/tests/bench/urxe-instructions" "$@" \
	>"$URXE_DIR/said" 2>&1 || {
	cat "$URXE_DIR/said"
	! grep -q '^urxe-instructions: ' "$URXE_DIR/said" || exit 1
	# an old valgrind may not understand the debug information
	echo 'SKIP: callgrind cannot run urxe-instructions'
	exit 77
}

status=0
part=1
while [ $# -gt 0 ]; do
	op=$1 n=$2
	shift 2
	total=$(sed -n 's/^totals: //p' "$URXE_DIR/out.$part")
	part=$((part + 1))
	limit=$(awk -v op="$op" '$1 == op { print $2 }' "${limits:-/dev/null}")
	per=1
	case $op in *-list) per=32 ;; esac
	awk -v op="$op" -v n="$total" -v times="$n" -v per=$per -v limit="${limit:-0}" 'BEGIN {
		n = n / times / per
		bad = limit && (n > 1.2 * limit || n < limit / 2)
		printf "%-14s %7.1f instructions%s%s\n", op, n,
		       (per > 1 ? " per WR" : ""),
		       (bad ? ", expected " limit : "")
		exit bad }' || status=1
done
exit $status
