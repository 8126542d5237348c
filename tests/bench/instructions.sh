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

for op in write-private write-dm write-list send poll-empty; do
	total=$("$build/tools/urxe" run -- valgrind --tool=callgrind \
		--callgrind-out-file=/dev/null --toggle-collect=measured \
		"$build/tests/bench/urxe-instructions" "$op" 2000 2>&1 |
		sed -nE 's/.*Collected : ([0-9]+).*/\1/p')
	per=32
	[ "$op" = write-list ] || per=1
	awk -v op="$op" -v n="$total" -v per=$per 'BEGIN {
		printf "%-14s %7.1f instructions%s\n", op, n / 2000 / per,
		       (per > 1 ? " per WR" : "") }'
done
