#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Instructions per operation, post and poll together, counted by callgrind:
#   instructions.sh BUILD_DIR
set -eu
build=$1
URXE_DIR=$(mktemp -d /dev/shm/urxe-instructions.XXXXXX)
export URXE_DIR
trap 'rm -rf "$URXE_DIR"' EXIT

# count OPERATION N: instructions of the whole program
count()
{
	"$build/tools/urxe" run -- valgrind --tool=callgrind \
		--callgrind-out-file=/dev/null \
		"$build/tests/bench/urxe-instructions" "$1" "$2" 2>&1 |
		sed -nE 's/.*Collected : ([0-9]+).*/\1/p'
}

for op in write-private write-dm write-list send poll-empty; do
	few=$(count "$op" 1000)
	many=$(count "$op" 3000)
	per=32
	[ "$op" = write-list ] || per=1
	awk -v op="$op" -v d=$((many - few)) -v per=$per 'BEGIN {
		printf "%-14s %7.1f instructions%s\n", op, d / 2000 / per,
		       (per > 1 ? " per WR" : "") }'
done
