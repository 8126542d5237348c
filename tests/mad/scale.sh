#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# scale.sh URXE: a cluster file with 1,000 hosts, 32 leaf switches and 16 spines
URXE=$1
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../shim/lib.sh"
export URXE_KEEP=1 URXE_CLUSTER="$URXE_DIR/big.cluster" LC_ALL=C
awk 'BEGIN {
	print "[defaults]\nlink_layer = infiniband\nrate = 400"
	for (i = 0; i < 16; i++)
		printf "[switch spine%d]\nports = 32\n", i
	for (i = 0; i < 32; i++) {
		printf "[switch leaf%d]\nports = 48\n", i
		for (k = 0; k < 16; k++)
			printf "link = spine%d\n", k
	}
	for (i = 0; i < 1000; i++)
		printf "[hca host%d/mlx5_0]\naddress = 10.1.%d.%d\nlink = leaf%d\n",
			i, i / 200, i % 200 + 1, i % 32
}' >"$URXE_CLUSTER"
on() {
	host=$1
	shift
	"$URXE" run --host "$host" -- "$@"
}
now() {
	echo $(($(date +%s%N) / 1000000))
}

# A program finds its device in less than two seconds, from the creation of the fabric
# on: in one of 20 attempts, since the machine may be busy.
tries=0
while tries=$((tries + 1)); do
	URXE_FABRIC=big$tries
	before=$(now)
	has mlx5_0 on host999 ls /sys/class/infiniband
	took=$(($(now) - before))
	[ $took -ge 2000 ] || break
	[ $tries -lt 20 ] || die "the fabric is created in $took ms"
	"$URXE" rm $URXE_FABRIC
done
memory=$(du -sk "$URXE_DIR/$URXE_FABRIC" | cut -f 1)
echo "created in $took ms, $memory KiB"
[ "$memory" -lt 32768 ] || die "the fabric has $memory KiB"
if have ibv_rc_pingpong; then
	"$URXE" run --host host999 -- ibv_rc_pingpong -p 18710 -n 20 >/dev/null 2>&1 &
	server=$!
	pinged() {
		on host0 ibv_rc_pingpong -p 18710 -n 20 localhost >/dev/null 2>&1
	}
	await "pingpong between host0 and host999" pinged
	wait $server || die "pingpong"
fi

have ibnetdiscover || exit 0
before=$(now)
on host500 ibnetdiscover -l >"$URXE_DIR/nodes" || die ibnetdiscover
echo "ibnetdiscover: $(($(now) - before)) ms"
# names, in the order of sort
nodes() {
	sed -n "s/^$1.*\"\(.*\)\".*/\1/p" "$URXE_DIR/nodes" | sort
}
nodes Ca >"$URXE_DIR/hosts"
seq -f 'host%.0f mlx5_0' 0 999 | sort | cmp - "$URXE_DIR/hosts" || die "hosts"
nodes Switch >"$URXE_DIR/switches"
{ seq -f leaf%.0f 0 31; seq -f spine%.0f 0 15; } | sort | cmp - "$URXE_DIR/switches" ||
	die "switches"
has '"host999 mlx5_0"' on host0 ibtracert 1 1000
