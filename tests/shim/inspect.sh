#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# inspect.sh URXE SPOIL: urxe doctor --fabric finds inconsistent state
URXE=$1
spoil=$2
. "$(dirname "$0")/lib.sh"

# kill the background processes at exit
pid=
trap 'kill -9 $pid 2>/dev/null; rm -rf "$URXE_DIR"' EXIT

# without WHAT TEXT: damage a fabric without processes
without() {
	URXE_FABRIC=$1 "$spoil" "$1" >/dev/null || die "spoil $1"
	has "FAIL  $2; fix: end the processes of this fabric" doctor "$1"
	[ "$(doctor "$1" | wc -l)" = 1 ] || die "more: $(doctor "$1")"
	"$URXE" doctor --fabric "$1" >/dev/null && die "exit code of $1"
	:
}

# with WHAT TEXT: damage a fabric with one process
with() {
	: >"$URXE_DIR/out"
	URXE_FABRIC=$1 "$spoil" "$1" >"$URXE_DIR/out" &
	pid=$!
	await "spoil $1 does not start" [ -s "$URXE_DIR/out" ]
	has "$2" doctor "$1"
	! doctor "$1" | grep '^FAIL' | grep -v '; fix: ' ||
		die "no remedy: $(doctor "$1")"
	kill -9 $pid
	wait $pid 2>/dev/null
	has "/$1: shared state is consistent; 0 contexts" doctor "$1"
	"$URXE" doctor --fabric "$1" >/dev/null || die "exit code after $1"
}

doctor() {
	"$URXE" doctor --fabric "$1" || :
}

without count 'device: 1 qp counted, contexts have 0'
without directory 'QP directory: QP 0x5: context 77.1 does not exist'
without dm 'device memory: 1 page marked used, 0 in use'
without group 'multicast group 2: 1 QP counted, 0 found'
without domain 'XRC domain 9: not open in any context'
without arena-file 'the file ctx/77.1 belongs to no context'
without fifo 'the file ev/77.1.0 belongs to no context'
without half 'the file device.123.456 is incomplete: its creator died'
with nothing 'is consistent; 1 context is open'
with half-counted 'FAIL  device: 1 qp counted, contexts have 0'
with own-count 'FAIL  context 0.1 (shim-spoil): 1 pd counted, 0 found'
with cq 'CQ 7: invalid ring position'
with heap ': 1 heap page marked used, rings use 0; fix: end the process of this context'
with key 'key entry 7 is live, but its number is marked free'
with pd ': 0 pds counted, 1 found'
with device-lock ' (shim-spoil) has held '
with context-lock 'FAIL  context 0.1: pid '

"$URXE" doctor --fabric 2>/dev/null && die "accepted without a name"
"$URXE" doctor --fabric nowhere 2>/dev/null && die "accepted a fabric that does not exist"
exit 0
