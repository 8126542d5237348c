#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# nolibnl.sh URXE NETLINK LIBRARY: if libnl-3 cannot be loaded, RDMA netlink sockets
# fail as with a kernel without RDMA, and URXE_LOG logs the reason.
URXE=$1
netlink=$2
library=$3
. "$(dirname "$0")/lib.sh"
dir=$URXE_DIR/lib
mkdir "$dir" || exit 99

# refused WHY
refused() {
	echo "$1"
	URXE_LOG=1
	export URXE_LOG
	has "cannot emulate NETLINK_RDMA: " run env LD_LIBRARY_PATH="$dir" "$netlink" refused
	unset URXE_LOG
	out=$(run env LD_LIBRARY_PATH="$dir" "$netlink" refused 2>&1) || die "refused: $out"
	[ -z "$out" ] || die "unasked: $out"
}

# a file that is not a library, and a library without the functions
echo "no library" >"$dir/libnl-3.so.200"
refused "no library"
cp "$library" "$dir/libnl-3.so.200" || exit 99
refused "no functions"
