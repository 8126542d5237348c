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
# shown HOST FILE: print a file of the device
shown() {
	on "$1" cat "/sys/class/infiniband/mlx5_0/$2"
}
lid() {
	shown "$1" ports/1/lid
}
# pair SERVER-HOST CMD CLIENT-HOST CMD: run both, in shells.  The client is repeated
# until it succeeds, as the server may not be ready.
pair() {
	"$URXE" run --cluster "$tree" --host "$1" -- sh -c "$2" >"$URXE_DIR/server" 2>&1 &
	server=$!
	client_on=$3
	client_does=$4
	client() {
		on "$client_on" sh -c "$client_does" >"$URXE_DIR/client" 2>&1
	}
	(await "$4" client) || die "$(cat "$URXE_DIR/client")"
	wait $server || die "$2: $(cat "$URXE_DIR/server")"
}
# traffic PORT [FUNCTION]: by LID, between the leaf switches.  The function succeeds when
# node8 has joined a multicast group.
traffic() {
	if have ibv_rc_pingpong; then
		pair node8 "ibv_rc_pingpong -p $1 -n 50" node1 "ibv_rc_pingpong -p $1 -n 50 localhost"
		pair node8 "ibv_ud_pingpong -p $1 -n 50" node1 "ibv_ud_pingpong -p $1 -n 50 localhost"
	fi
	have rping || return 0
	pair node8 "rping -s -a 10.0.0.8 -p $1 -C 3" node1 "rping -c -a 10.0.0.8 -p $1 -C 3 -V"
	"$URXE" run --cluster "$tree" --host node8 -- mckey -b 10.0.0.8 -m 239.1.1.9 \
		>"$URXE_DIR/server" 2>&1 &
	server=$!
	[ -z "${2-}" ] || await "$2" "$2"
	# until it has received ten datagrams
	receives() {
		on node1 mckey -b 10.0.0.1 -m 239.1.1.9 -s >"$URXE_DIR/client" 2>&1
		! kill -0 $server 2>/dev/null
	}
	await "mckey" receives
	wait $server || die "mckey: $(cat "$URXE_DIR/server")"
	has "data transfers complete" cat "$URXE_DIR/server"
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

# the port of a host
has "Base lid: 5" on node5 ibstat mlx5_0
has "State: Active" on node5 ibstat mlx5_0
has "Rate: 400" on node5 ibstat mlx5_0
has "sm lid:		 0x1" on node5 ibstatus mlx5_0
has "rate:		 400 Gb/sec (4X NDR)" on node5 ibstatus mlx5_0

# IsSM at the port of the subnet manager only, as in its PortInfo
has 0x02014802 shown node1 ports/1/cap_mask
has 0x02014800 shown node5 ports/1/cap_mask

# eight links of hosts and four between switches, at both ends
on node1 iblinkinfo >"$URXE_DIR/net" || die iblinkinfo
[ "$(grep -c '==( 4X  *106.25 Gbps Active/  LinkUp)==>' "$URXE_DIR/net")" = 24 ] ||
	die "iblinkinfo: $(cat "$URXE_DIR/net")"
grep -Eq '^ +65 +2\[  \] ==.*==> +67 +2\[  \] "spine1"' "$URXE_DIR/net" ||
	die "iblinkinfo: leaf1 to spine1"

# nodes and ports by LID
guid=$(shown node5 node_guid | tr -d :)
has "NodeType:........................Channel Adapter" on node1 smpquery nodeinfo 5
has "Guid:............................0x$guid" on node1 smpquery nodeinfo 5
has "NodeType:........................Switch" on node1 smpquery nodeinfo 66
has "NumPorts:........................4" on node1 smpquery nodeinfo 66
has "spine0" on node1 smpquery nodedesc 66
has "LinkState:.......................Active" on node1 smpquery portinfo 5 1
has "NeighborMTU:.....................4096" on node1 smpquery portinfo 5 1
has "LinkState:.......................Down" on node1 smpquery portinfo 65 7
has "LinearFdbTop:....................67" on node1 smpquery switchinfo 65
has "0x0005 003 : (Channel Adapter portguid 0x$guid: 'node5 mlx5_0')" on node1 ibroute 65

# the subnet administrator
[ "$(on node2 saquery -N | grep -c NodeDescription)" = 12 ] || die "saquery -N"
for value in slid....................1 dlid....................8 mtu.....................0x85 \
	rate....................0x95; do
	has "$value" on node3 saquery -p --src-to-dst 1:8
done

# ibping's server, by LID and by GUID
"$URXE" run --cluster "$tree" --host node5 -- ibping -S >/dev/null 2>&1 &
server=$!
pinged() {
	on node1 ibping -c 1 5 | grep -q "1 received"
}
await ibping pinged
has "3 packets transmitted, 3 received, 0% packet loss" on node1 ibping -f -c 3 5
has "1 packets transmitted, 1 received" on node1 ibping -c 1 -G "0x$guid"
kill $server
wait $server
has "0 received" on node1 ibping -c 1 5

# counters: what was sent, at the ports of the hosts and at those of their switches
if have ib_write_bw; then
	# else perftest of Debian 13 creates QPs of NVIDIA's NICs with mlx5dv
	posts=--use_old_post_send
	pair node8 "ib_write_bw $posts -p 18702 -n 100 -s 4096" \
		node1 "ib_write_bw $posts -p 18702 -n 100 -s 4096 localhost"
	# in units of 4 bytes
	has "PortXmitData:....................102400" on node2 perfquery -x 1 1
	has "PortXmitPkts:....................100" on node2 perfquery -x 1 1
	has "PortRcvData:.....................102400" on node2 perfquery -x 64 3
	has "PortXmitData:....................102400" on node2 perfquery -x 65 6
	has "PortRcvData:.....................102400" on node2 perfquery -x 8 1
	has "PortRcvPkts:.....................100" on node2 perfquery -x 8 1
	has "PortXmitData:....................0" on node2 perfquery -x 65 5
fi
is_member() {
	on node2 saquery --smkey 1 -m | grep -q "NodeDescription.........node8 mlx5_0"
}
traffic 18703 is_member

# the route goes through the leaf switches and one of the spines
spine() {
	on node1 ibtracert 1 8 | grep -o 'spine[01]'
}
first=$(spine) || die ibtracert
"$URXE" port down "$first" || die "port down $first"
other=$(spine) || die "no route besides $first"
[ "$first" != "$other" ] || die "the route goes through $first, which is down"
if have ibv_rc_pingpong; then
	pair node8 "ibv_rc_pingpong -p 18700 -n 50" node1 "ibv_rc_pingpong -p 18700 -n 50 localhost"
fi
"$URXE" port down "$other" || die "port down $other"
on node1 ibtracert 1 8 >/dev/null 2>&1 && die "a route without spines"
for to in 8 65 66; do
	! on node1 saquery -p --src-to-dst 1:$to 2>/dev/null | grep -q dlid ||
		die "a path record to LID $to"
done
for to in 4 64; do
	has "dlid" on node1 saquery -p --src-to-dst 1:$to
done
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

# the built-in subnet manager is at the first port whose link is up
sed "0,/link = leaf0/s//& down/" "$tree" >"$URXE_DIR/down.cluster"
(
	export URXE_FABRIC=down
	tree=$URXE_DIR/down.cluster
	has "sm lid 2 " on node3 sminfo
	has "dlid" on node3 saquery -p --src-to-dst 3:8
) || exit 1

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
traffic 18704

# a sweep finds that the links of a switch are down
first=$(on node1 ibtracert $(($(lid node1))) $(($(lid node8))) | grep -o 'spine[01]')
"$URXE" port down "$first" || die "port down $first"
is_rerouted() {
	is_routed && ! grep -q "$first" "$URXE_DIR/out"
}
await "a route besides $first by OpenSM" is_rerouted
traffic 18705
kill $sm
wait $sm
exit 0
