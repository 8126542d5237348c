#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# host.sh KERNEL PROGRAM...: a machine that has rdma_cm itself, which the
# preload library KERNEL plays.  Run by in-fabric -n.
LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$1
HOSTCM_DIR=$URXE_DIR/.host
export LD_PRELOAD HOSTCM_DIR
shift

"$URXE" run -- "$1" hidden || exit 1
[ ! -e "$HOSTCM_DIR" ] || { echo "the host's rdma_cm was opened"; exit 1; }
for program; do
	"$URXE" run --with-host-devices -- "$program" || exit 1
	[ -e "$HOSTCM_DIR/cm" ] || { echo "it was not opened"; exit 1; }
done
