#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# host.sh URXE: a host that has an RDMA device (emulated by a bind mount)
URXE=$1
if [ "${HOST_INSIDE-}" != 1 ]; then
	[ "$(id -u)" = 0 ] || { echo "skip: needs root"; exit 77; }
	unshare -m true 2>/dev/null || { echo "skip: no unshare"; exit 77; }
	HOST_INSIDE=1 exec unshare -m "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
real=$URXE_DIR/.real
class=$URXE_DIR/.class
mkdir -p "$real/mlx5_9/ports" "$real/uverbs0" "$class/infiniband" \
	"$class/infiniband_verbs" "$URXE_DIR/.dev"
echo "1: CA" >"$real/mlx5_9/node_type"
ln -s "$real/mlx5_9" "$class/infiniband/mlx5_9"
ln -s "$real/uverbs0" "$class/infiniband_verbs/uverbs0"
mount --bind "$class" /sys/class || skip "no bind mounts"
ls /sys/class/infiniband/mlx5_9/ports || die "the bind mount does not show mlx5_9"

[ "$(run ls /sys/class/infiniband)" = urxe0 ] || die "the host device is not hidden"
run ls /sys/class/infiniband/mlx5_9 2>/dev/null && die "the host device can be accessed by name"
[ "$(run ls /sys/class/infiniband_verbs | tr '\n' ' ')" = \
	"abi_version uverbs1000 " ] || die "uverbs0 is not hidden"

run() {
	"$URXE" run --with-host-devices -- "$@"
}
[ "$(run ls /sys/class/infiniband | tr '\n' ' ')" = "mlx5_9 urxe0 " ] ||
	die "the devices are not merged: $(run ls /sys/class/infiniband)"
has "1: CA" run cat /sys/class/infiniband/mlx5_9/node_type
has "1: CA" run cat /sys/class/infiniband/urxe0/node_type
has uverbs0 run ls /sys/class/infiniband_verbs
has uverbs1000 run ls /sys/class/infiniband_verbs
[ "$(run readlink -f /sys/class/infiniband)" = /sys/class/infiniband ] ||
	die "the merged directory has a different name"
rm "$class/infiniband/mlx5_9"
[ "$(run ls /sys/class/infiniband)" = urxe0 ] || die "a removed device is listed"
