#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# inspect.sh URXE SPOIL: urxe doctor --fabric finds what does not agree.
URXE=$1
spoil=$2
. "$(dirname "$0")/lib.sh"

# whatever happens, nothing of ours goes on
pid=
trap 'kill -9 $pid 2>/dev/null; rm -rf "$URXE_DIR"' EXIT

# without WHAT TEXT: a fabric in which nobody is
without() {
	URXE_FABRIC=$1 "$spoil" "$1" >/dev/null || die "spoil $1"
	has "FAIL  $2" doctor "$1"
	[ "$(doctor "$1" | wc -l)" = 1 ] || die "more: $(doctor "$1")"
	"$URXE" doctor --fabric "$1" >/dev/null && die "exit code of $1"
	:
}

# with WHAT TEXT: in which one process is
with() {
	: >"$URXE_DIR/out"
	URXE_FABRIC=$1 "$spoil" "$1" >"$URXE_DIR/out" &
	pid=$!
	await "spoil $1 does not start" [ -s "$URXE_DIR/out" ]
	has "$2" doctor "$1"
	kill -9 $pid
	wait $pid 2>/dev/null
	has "/$1: all that is shared agrees; 0 contexts" doctor "$1"
	"$URXE" doctor --fabric "$1" >/dev/null || die "exit code after $1"
}

doctor() {
	"$URXE" doctor --fabric "$1" || :
}

without count 'the device counts 1 qps, its contexts 0'
without directory 'QP directory: QP 0x5 is of context 77.1, which is not there'
without dm 'device memory: 1 pages are marked as used, 0 are'
without group 'multicast group 2 counts 1 QPs and has 0'
without domain 'XRC domain 9: nobody has it open'
without arena-file 'the file ctx/77.1 is nobody'
without fifo 'the file ev/77.1.0 is nobody'
without half 'the file device.123.456 was left half made'
with nothing 'agrees; 1 context is open'
with half-counted 'FAIL  the device counts 1 qps, its contexts 0'
with own-count 'FAIL  context 0.1 (shim-spoil): it counts 1 pds and has 0'
with cq 'CQ 7: its ring is where none can be'
with heap ': 1 pages are marked as used by rings, 0 are'
with key 'key entry 7 is live and its number is free'
with pd 'it counts 0 pds and has 1'
with device-lock ' (shim-spoil) has held '
with context-lock 'FAIL  context 0.1: pid '

"$URXE" doctor --fabric 2>/dev/null && die "no name"
"$URXE" doctor --fabric nowhere 2>/dev/null && die "no fabric"
exit 0
