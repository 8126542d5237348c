#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# passthrough.sh URXE SHIM: without URXE_FABRIC the preload library has no effect
URXE=$1
shim=$2
. "$(dirname "$0")/lib.sh"
unset URXE_FABRIC
ls /sys/class/infiniband /dev/infiniband >"$URXE_DIR/without" 2>&1
LD_PRELOAD=$shim ls /sys/class/infiniband /dev/infiniband \
	>"$URXE_DIR/with" 2>&1
cmp "$URXE_DIR/without" "$URXE_DIR/with" || die "ls differs"
URXE_FABRIC='' LD_PRELOAD=$shim ls /sys/class/infiniband /dev/infiniband \
	>"$URXE_DIR/with" 2>&1
cmp "$URXE_DIR/without" "$URXE_DIR/with" || die "ls differs, empty name"
[ "$(ls "$URXE_DIR" | tr '\n' ' ')" = "with without " ] ||
	die "made: $(ls "$URXE_DIR")"
if have rdma; then
	a=$(rdma dev 2>&1)
	b=$(LD_PRELOAD=$shim rdma dev 2>&1)
	[ "$a" = "$b" ] || die "rdma dev differs: $b"
fi
# programs that do not use RDMA create no fabric
URXE_FABRIC=t LD_PRELOAD=$shim ls / >/dev/null || die "ls /"
[ ! -e "$URXE_DIR/t" ] || die "ls / made a fabric"
# nor do they look for it, at the start or at the end
if have strace && strace -o "$URXE_DIR/calls" true 2>/dev/null; then
	(
		unset URXE_DIR
		URXE_FABRIC=t LD_PRELOAD=$shim strace -e trace=file true 2>&1
	) >"$URXE_DIR/calls"
	! grep -E '"/dev/shm"|urxe-[0-9]' "$URXE_DIR/calls" || die "true looks for a fabric"
fi
exit 0
