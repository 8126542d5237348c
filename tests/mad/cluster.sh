#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# cluster.sh URXE: a fat tree of InfiniBand switches, with the built-in subnet manager
# and with OpenSM
URXE=$1
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../shim/lib.sh"
have ibnetdiscover || skip "infiniband-diags is not installed"
tree=$here/../../examples/clusters/ib-fat-tree.cluster
export URXE_KEEP=1
# on HOST CMD...
on() {
	host=$1
	shift
	"$URXE" run --cluster "$tree" --host "$host" -- "$@"
}
lid() {
	on "$1" cat /sys/class/infiniband/mlx5_0/ports/1/lid
}

on node1 ibnetdiscover >"$URXE_DIR/net" || die ibnetdiscover
[ "$(grep -c ^Switch "$URXE_DIR/net")" = 4 ] || die "$(cat "$URXE_DIR/net")"
[ "$(grep -c ^Ca "$URXE_DIR/net")" = 8 ] || die "$(cat "$URXE_DIR/net")"
has '"node7 mlx5_0"' on node2 ibhosts
[ "$(on node2 ibhosts | wc -l)" = 8 ] || die ibhosts
[ "$(on node2 ibswitches | wc -l)" = 4 ] || die ibswitches
has "12 nodes checked, 0 bad nodes" on node3 ibqueryerrors
has "0xffff 0x8001" on node3 smpquery pkeys 5
has SMINFO_MASTER on node8 sminfo
has 'leaf1' on node1 iblinkinfo

# the route goes through the leaf switches and one of the spines
spine() {
	on node1 ibtracert 1 8 | grep -o 'spine[01]'
}
first=$(spine) || die ibtracert
"$URXE" port down "$first" || die "port down $first"
other=$(spine) || die "no route besides $first"
[ "$first" != "$other" ] || die "the route goes through $first, which is down"
if have ibv_rc_pingpong; then
	on node8 ibv_rc_pingpong -p 18700 -n 50 >"$URXE_DIR/server" 2>&1 &
	server=$!
	connects() {
		on node1 ibv_rc_pingpong -p 18700 -n 50 127.0.0.1 >"$URXE_DIR/client" 2>&1
	}
	await "pingpong besides $first" connects
	wait $server || die "pingpong: $(cat "$URXE_DIR/server")"
fi
"$URXE" port down "$other" || die "port down $other"
on node1 ibtracert 1 8 >/dev/null 2>&1 && die "a route without spines"
! on node1 saquery -p --src-to-dst 1:8 2>/dev/null | grep -q dlid || die "a path record"
has "dlid" on node1 saquery -p --src-to-dst 1:4
listens() {
	grep -q "$(printf ':%04X ' 18701)" /proc/net/tcp /proc/net/tcp6
}
unanswered() {
	! on node8 ibv_rc_pingpong -p 18701 127.0.0.1 2>&1
}
if have ibv_rc_pingpong; then
	"$URXE" run --cluster "$tree" --host node1 -- ibv_rc_pingpong -p 18701 >/dev/null 2>&1 &
	server=$!
	await "pingpong server" listens
	has "transport retry counter exceeded" unanswered
	kill $server 2>/dev/null
	wait $server
fi

# OpenSM assigns LIDs and writes the forwarding tables of all switches
have opensm || exit 0
export URXE_FABRIC=osm URXE_SM=external
mkdir "$URXE_DIR/opensm"
OSM_TMP_DIR="$URXE_DIR/opensm/" OSM_CACHE_DIR="$URXE_DIR/opensm/" \
	"$URXE" run --cluster "$tree" --host node1 -- opensm -f "$URXE_DIR/log" -s 1 \
	-g "$(on node1 cat /sys/class/infiniband/mlx5_0/node_guid | sed 's/://g; s/^/0x/')" \
	>"$URXE_DIR/opensm/out" 2>&1 &
sm=$!
is_active() {
	[ "$(on node8 cat /sys/class/infiniband/mlx5_0/ports/1/state)" = "4: ACTIVE" ]
}
await "OpenSM" is_active
is_routed() {
	on node1 ibtracert $(($(lid node1))) $(($(lid node8))) >"$URXE_DIR/out" 2>&1
}
await "a route by OpenSM" is_routed
has "mlx5_0" cat "$URXE_DIR/out"
is_known() {
	[ "$(on node3 saquery -N | grep -c NodeDescription)" = 12 ]
}
await "12 nodes by OpenSM" is_known
kill $sm
wait $sm
exit 0
