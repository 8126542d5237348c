#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# timing.sh URXE SPEED ERRORS: with --timing, messages take at least the time that rates
# and latencies imply, and two rails carry more than one. Without it, they do not. WRs
# that fail do so in their turn.
URXE=$(realpath "$1")
speed=$(realpath "$2")
errors=$(realpath "$3")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../shim/lib.sh"
cd "$URXE_DIR" || exit 99
export URXE_KEEP=1
cat >slow.cluster <<END
[defaults]
rate = 10 1
latency = 1000000
[hca a/mlx5_0]
[hca a/mlx5_1]
[hca b/mlx5_0]
END
export URXE_CLUSTER=slow.cluster

# takes LEAST ARGS...: check that the program takes so many microseconds
takes() {
	least=$1
	shift
	us=$("$URXE" run --timing -- "$speed" "$@") || die "speed $*"
	[ "$us" -ge "$least" ] || die "speed $* takes $us us, less than $least"
}
# 640 messages of 65536 bytes, and 82 bytes for each packet of 1024, at 10 Gb/s; and
# the latencies, to and fro: of both ends, each 1 ms
wire=$((640 * (65536 + 64 * 82) * 8 / 10000))
takes $((wire + 4000)) write 1 640 65536
takes $((wire + 4000)) read 1 640 65536
takes $((wire / 2 + 4000)) write 2 640 65536
takes 4000 write 1 1 8
# two rails: less than one takes
two_are_faster() {
	us=$("$URXE" run --timing -- "$speed" write 2 640 65536) && [ "$us" -lt "$wire" ]
}
await "two rails are not faster than one" two_are_faster
# without --timing, nothing is delayed
quick() {
	us=$("$URXE" run -- "$speed" write 1 640 65536) && [ "$us" -lt "$wire" ]
}
await "without --timing" quick

"$URXE" run --timing -- "$errors" || die "errors"

# a degraded rate
"$URXE" port set a/mlx5_0 rate=5 || die "port set"
has "5 Gb/sec" "$URXE" run -- cat /sys/class/infiniband/mlx5_0/ports/1/rate
if have ibv_devinfo; then
	has "active_speed:		5.0 Gbps" "$URXE" run -- ibv_devinfo -v -d mlx5_0
	has "active_speed:		10.0 Gbps" "$URXE" run -- ibv_devinfo -v -d mlx5_1
fi
takes $((2 * wire + 4000)) write 1 640 65536
"$URXE" port set a/mlx5_0 rate=0 || die "port set"
has "10 Gb/sec" "$URXE" run -- cat /sys/class/infiniband/mlx5_0/ports/1/rate
has "no link of a/mlx5_0 has a rate of 7 Gb/s" eval '! "$URXE" port set a/mlx5_0 rate=7 2>&1'
# by a fault rule, while the program runs
us=$("$URXE" run --timing --fault port:at=post:nth=1:RATE=5 -- "$speed" write 1 640 65536) ||
	die "RATE=5"
[ "$us" -ge $((2 * wire - 2 * wire / 640)) ] || die "RATE=5: $us us"
has "5 Gb/sec" "$URXE" run -- cat /sys/class/infiniband/mlx5_0/ports/1/rate

# what is refused
has "cannot be combined" eval '! "$URXE" run --timing --adversary -- "$speed" write 1 1 8 2>&1'
has "must be 0 or 1" eval '! URXE_TIMING=x "$URXE" run -- "$speed" write 1 1 8 2>&1'
exit 0
