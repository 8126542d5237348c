#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# nolibnl.sh URXE NETLINK LIBRARY: where libnl-3 cannot be loaded, RDMA netlink
# is refused as by a kernel that has none, and URXE_LOG tells why.
URXE=$1
netlink=$2
library=$3
. "$(dirname "$0")/lib.sh"
LD_LIBRARY_PATH=$URXE_DIR/lib
export LD_LIBRARY_PATH
mkdir "$LD_LIBRARY_PATH" || exit 99

# refused WHY
refused() {
	echo "$1"
	URXE_LOG=1
	export URXE_LOG
	has "no RDMA netlink: " run "$netlink" refused
	unset URXE_LOG
	out=$(run "$netlink" refused 2>&1) || die "refused: $out"
	[ -z "$out" ] || die "unasked: $out"
}

# one that is none, and one that has no such functions
echo "no library" >"$LD_LIBRARY_PATH/libnl-3.so.200"
refused "no library"
cp "$library" "$LD_LIBRARY_PATH/libnl-3.so.200" || exit 99
refused "no functions"
