#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# race.sh URXE ROUNDS: six processes find and open the device at once, from an empty
# tree, and some are killed.  Files that a process leaves when it is killed while it
# creates the tree are removed by the next one.
URXE=$1
rounds=$2
. "$(dirname "$0")/lib.sh"
pids=
for i in 1 2 3 4 5 6; do
	"$URXE" run "$rounds" 40 &
	pids="$pids $!"
done
for p in $pids; do
	wait "$p" || die "process $p: exit code $?"
done
for i in 1 2 3; do
	"$URXE" run "$rounds" 100000 &
	p=$!
	until [ -e "$URXE_DIR/t/sys/version" ]; do
		sleep 0.1
	done
	mkdir "$URXE_DIR/t/tree.7.1"
	"$URXE" run "$rounds" 5 || die "a concurrent run failed"
	[ ! -e "$URXE_DIR/t/tree.7.1" ] || die "an incomplete tree was left"
	kill -9 $p
	wait $p 2>/dev/null
	"$URXE" run "$rounds" 5 || die "after a kill"
done
[ -z "$(ls "$URXE_DIR")" ] || die "left: $(ls -R "$URXE_DIR")"
