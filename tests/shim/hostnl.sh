#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# hostnl.sh URXE FAKENL: a host whose kernel has RDMA devices
URXE=$1
LD_PRELOAD=$2
. "$(dirname "$0")/lib.sh"
have rdma || skip "rdma is not installed"
export LD_PRELOAD
[ "$(run rdma dev | wc -l)" = 1 ] || die "the host device is not hidden: $(run rdma dev)"
has "1000: urxe0" run rdma dev

run() {
	"$URXE" run --with-host-devices -- "$@"
}
[ "$(run rdma dev | wc -l)" = 2 ] || die "the devices are not merged: $(run rdma dev)"
has "0: mlx5_9: node_type ca" run rdma dev
has "1000: urxe0" run rdma dev
has "0: mlx5_9" run rdma dev show mlx5_9
has "1000: urxe0" run rdma dev show urxe0
has "copy-on-fork on" run rdma system
