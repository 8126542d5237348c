#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# diags.sh URXE: the tools of infiniband-diags, with the built-in agents
URXE=$1
. "$(dirname "$0")/../shim/lib.sh"
have ibnetdiscover || skip "infiniband-diags is not installed"

export URXE_KEEP=1
"$URXE" run --devices 4 --link-layer infiniband,infiniband,infiniband,ethernet -- true ||
	die "run --link-layer"
guid() {
	run cat /sys/class/infiniband/urxe"$1"/node_guid | tr -d :
}

# the local port
has "urxe1" run ibstat -l
has "0x$(guid 1)" run ibstat -p
has "LID start 0x1 end 0x1" run ibaddr -C urxe0
has "sm lid 1 sm guid 0x$(guid 0 | sed 's/^0//')" run sminfo
has SMINFO_MASTER run sminfo

# the subnet: three CAs, one switch; the Ethernet device is not part of it
run ibnetdiscover >"$URXE_DIR/net" || die ibnetdiscover
[ "$(grep -c ^Ca "$URXE_DIR/net")" = 3 ] || die "CAs: $(cat "$URXE_DIR/net")"
[ "$(grep -c ^Switch "$URXE_DIR/net")" = 1 ] || die "switches: $(cat "$URXE_DIR/net")"
has "urxe2\" lid 3" cat "$URXE_DIR/net"
[ "$(run ibhosts | wc -l)" = 3 ] || die "ibhosts: $(run ibhosts)"
has "urxe switch\" base port 0 lid 64" run ibswitches
has "64    2[  ] ==( 4X" run iblinkinfo
has "To ca {0x$(guid 2)} portnum 1 lid 3-3" run ibtracert 1 3
has "0x0003 003" run ibroute 64

# SMPs by LID and by directed route
has "NodeType:........................Channel Adapter" run smpquery nodeinfo 2
has "NodeType:........................Switch" run smpquery -D nodeinfo 0,1
has "urxe2" run smpquery -D nodedesc 0,1,3
has "0x$(guid 1)" run smpquery guidinfo 2
has "LinkState:.......................Active" run smpquery portinfo 2 1
has "LinkState:.......................Down" run smpquery portinfo 64 8
has "LinearFdbCap:....................49152" run smpquery switchinfo 64
has "0: 0xffff 0x0000" run smpquery pkeys 2
"$URXE" port set urxe1 lid=8 lmc=1 pkeys=0xffff,0x8001 || die "port set"
has "0: 0xffff 0x8001" run smpquery pkeys 9
has "Lid:.............................8" run smpquery portinfo 8 1
has "0x0009 002" run ibroute 64
"$URXE" port set urxe1 lid=2 lmc=0

# counters: what was sent, and cleared
if have ib_write_bw; then
	run ib_write_bw -d urxe1 -p 18557 -n 100 -s 4096 >/dev/null 2>&1 &
	server=$!
	client() {
		run ib_write_bw -d urxe2 -p 18557 -n 100 -s 4096 127.0.0.1 >/dev/null 2>&1
	}
	await ib_write_bw client
	wait $server || die "ib_write_bw"
	# in units of 4 bytes
	has "PortXmitData:....................102400" run perfquery -x 3
	has "PortXmitPkts:....................100" run perfquery 3
	has "PortRcvData:.....................102400" run perfquery 2
	has "PortRcvData:.....................102400" run perfquery -x 64 3
	run perfquery -R 3 >/dev/null || die "perfquery -R"
	has "PortXmitData:....................0" run perfquery 3
	has 102400 run cat /sys/class/infiniband/urxe2/ports/1/counters/port_xmit_data
fi
has "0 ports have errors" run ibqueryerrors

# the subnet administrator
[ "$(run saquery | grep -c node_guid)" = 4 ] || die "saquery: $(run saquery)"
has "lid.....................3" run saquery 3
has "dlid....................3" run saquery -p --slid 1 --dlid 3
has "rate....................0x91" run saquery -p --slid 1 --dlid 3
[ "$(run saquery -p | grep -c PathRecord)" = 16 ] || die "saquery -p"
has "ToPort.....................1" run saquery -x
has "base_lid................1" run saquery -s
if have mckey; then
	"$URXE" run -- mckey -b 127.0.0.2 -m 239.1.1.9 >/dev/null 2>&1 &
	member=$!
	joined() {
		run saquery -g | grep -q "MGID....................ff12:4001:ffff::f01:109"
	}
	await "a multicast group" joined
	has "urxe1" run saquery --smkey 1 -m
	kill $member
	wait $member
fi

# a server in another process; by LID and by GUID
"$URXE" run -- ibping -C urxe1 -S >/dev/null 2>&1 &
server=$!
pinged() {
	run ibping -c 1 2 | grep -q "1 received"
}
await ibping pinged
has "1 packets transmitted, 1 received" run ibping -c 1 -G "0x$(guid 1)"
kill $server
wait $server
has "0 received" run ibping -c 1 2
"$URXE" run -- ibsysstat -C urxe1 -S >/dev/null 2>&1 &
server=$!
has_cpus() {
	run ibsysstat 2 cpu 2>&1 | grep -q "cpu 0:"
}
await ibsysstat has_cpus
has "$(uname -n)" run ibsysstat 2 host
kill $server
wait $server
# no vendor class
run vendstat -N 2 >/dev/null 2>&1 && die "vendstat"

# a port that is down
has "Peer PortInfo" run ibportstate 64 2 query
run ibportstate 64 2 disable >/dev/null || die "ibportstate disable"
has "1: DOWN" run cat /sys/class/infiniband/urxe1/ports/1/state
has "PhysLinkState:...................Disabled" run ibportstate 64 2 query
has "PhysLinkState:...................Polling" run ibportstate 64 8 query
[ "$(run ibhosts | wc -l)" = 2 ] || die "ibhosts: $(run ibhosts)"
run ibportstate 64 2 enable >/dev/null || die "ibportstate enable"
has "4: ACTIVE" run cat /sys/class/infiniband/urxe1/ports/1/state
[ "$(run ibhosts | wc -l)" = 3 ] || die "ibhosts: $(run ibhosts)"

# multicast joined by MADs
if have ib_send_bw; then
	run ib_send_bw -c UD -g -d urxe0 -p 18558 -n 500 >"$URXE_DIR/server" 2>&1 &
	server=$!
	client() {
		run ib_send_bw -c UD -g -d urxe1 -p 18558 -n 500 127.0.0.1 >/dev/null 2>&1
	}
	await "multicast" client
	wait $server || die "multicast: $(cat "$URXE_DIR/server")"
fi

# the vendor class of Mellanox HCAs; a tool that knows the device ID shows all of the
# firmware version
profiles=$(cd "$(dirname "$0")/../../profiles" && pwd)
export URXE_FABRIC=mlx
sed 's/^vendor_part_id .*/vendor_part_id 4123/' "$profiles/connectx-7.profile" >"$URXE_DIR/six.profile"
"$URXE" run --devices 2 --link-layer infiniband --profile "$URXE_DIR/six.profile" -- true ||
	die "run --profile"
has "hw_dev_id:   0x101b" run vendstat -N 2
has "fw_version:  28.43.3608" run vendstat -N 2
has "fw_psid:     'MT_0000000838'" run vendstat -N 1
rm -f "$URXE_DIR/net" "$URXE_DIR/server" "$URXE_DIR/six.profile"
