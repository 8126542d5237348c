#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# hostcm.sh URXE FAKECM: which rdma_cm device a process gets if the host has one
URXE=$1
LD_PRELOAD=$2
. "$(dirname "$0")/lib.sh"
FAKECM=$URXE_DIR/.hostcm
export LD_PRELOAD FAKECM
echo >"$FAKECM"
tables=$URXE_DIR/$URXE_FABRIC/cm

# gives WHAT OPTION...: check the file type of the opened device; that of urxe is a FIFO.
gives() {
	what=$1
	shift
	out=$("$URXE" run "$@" sh -c 'exec 3<>/dev/infiniband/rdma_cm &&
		stat -L -c %F /proc/self/fd/3') || die "cannot open: $out"
	[ "$out" = "$what" ] || die "$* opened a $out, not a $what"
}

for value in '' urxe host; do
	URXE_RDMA_CM=$value
	export URXE_RDMA_CM
	gives fifo
done
unset URXE_RDMA_CM
gives fifo
gives fifo --with-host-devices
URXE_RDMA_CM=urxe
export URXE_RDMA_CM
gives fifo --with-host-devices
[ -e "$tables" ] || die "the rdma_cm tables do not exist"

rm "$tables"
URXE_RDMA_CM=host
gives "regular file" --with-host-devices
[ ! -e "$tables" ] || die "rdma_cm of urxe was opened as well as that of the host"
for path in /dev/infiniband/rdma_cm /sys/class/misc/rdma_cm; do
	[ -e $path ] || ! "$URXE" run --with-host-devices ls -d $path 2>/dev/null ||
		die "$path still belongs to urxe"
done
has uverbs1000 "$URXE" run --with-host-devices ls /dev/infiniband
