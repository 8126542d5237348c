#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# devices.sh URXE: programs of the distribution find several devices (--devices)
URXE=$1
. "$(dirname "$0")/lib.sh"

# commands that must fail; has() checks what they print
wire_refused() {
	! "$URXE" run "$@" --wire=lo -- true 2>&1
}
ports_unnamed() {
	! "$URXE" port down 2>&1
}
port_of_none() {
	! "$URXE" port down "${1:-urxe3}" 2>&1
}
other_number() {
	! URXE_DEVICES=2 "$URXE" run -- true 2>&1
}

# the fabric remains between the commands
export URXE_KEEP=1
"$URXE" run --devices 3 -- true || die "run --devices"
"$URXE" run --devices 3 -- ls /sys/class/infiniband >/dev/null || die "ls"

# a program that joins gets the number of the fabric; another one is refused
for k in 0 1 2; do
	sys=/sys/class/infiniband/urxe$k
	has "4: ACTIVE" run cat $sys/ports/1/state
	has "231, 6000$k" run ls -l /dev/infiniband/uverbs100$k
	has urxe$k run cat /sys/class/infiniband_verbs/uverbs100$k/ibdev
	has "231:6000$k" run cat /sys/class/infiniband_verbs/uverbs100$k/dev
	has "231, 6000$k" run ls -lL /dev/char/231:6000$k
	has /7578:ff:0$k.0/infiniband/urxe$k run readlink -f $sys
	has "PCI_SLOT_NAME=7578:ff:0$k.0" run cat $sys/device/uevent
done
[ "$(run cat /sys/class/infiniband/urxe1/node_guid)" != \
	"$(run cat /sys/class/infiniband/urxe2/node_guid)" ] || die "equal GUIDs"
has ffff:7f00:0003 run cat /sys/class/infiniband/urxe2/ports/1/gids/3
"$URXE" run --devices 2 -- true 2>"$URXE_DIR/said" && die "--devices 2 is accepted"
has "has 3 devices" cat "$URXE_DIR/said"
has "has 3 devices" other_number
for bad in 0 9 x 1x ''; do
	"$URXE" run --devices "$bad" -- true 2>"$URXE_DIR/said" &&
		die "--devices $bad is accepted"
	has "is not a number of devices" cat "$URXE_DIR/said"
done
rm "$URXE_DIR/said"

# --wire and several devices exclude each other
has "needs a fabric with one device" wire_refused --devices 2 --fabric new
has "needs a fabric with one device" wire_refused

# the port of one device
has "name one of them" ports_unnamed
has "no device urxe3" port_of_none
"$URXE" port down urxe1 || die "port down"
has "1: DOWN" run cat /sys/class/infiniband/urxe1/ports/1/state
has "4: ACTIVE" run cat /sys/class/infiniband/urxe2/ports/1/state
has "already down" "$URXE" port down urxe1/1
has "no device urxe1/2" port_of_none urxe1/2
has "ports ACTIVE, DOWN, ACTIVE" "$URXE" top --once
has '"device":"urxe2"' "$URXE" info --json
has "device urxe2:" "$URXE" info --fabric t

if have rdma; then
	has "1002: urxe2:" run rdma dev
	has "link urxe1/1 state DOWN" run rdma link
	has "link urxe2/1 state ACTIVE" run rdma link
	has "1001: urxe1:" run rdma resource
	has "link_downed 1" run rdma statistic show link urxe1/1
	has "link_downed 0" run rdma statistic show link urxe2/1
fi
if have ibstat; then
	has urxe2 run ibstat -l
	has "State: Down" run ibstat urxe1
	has "State: Active" run ibstat urxe2
fi
if have ibv_devinfo; then
	has PORT_DOWN run ibv_devinfo -d urxe1
	has PORT_ACTIVE run ibv_devinfo -d urxe2
fi
"$URXE" port up urxe1 || die "port up"

# a fault takes the port of the context down in which it strikes
if have ibv_rc_pingpong; then
	"$URXE" run --fault port:at=recv:nth=1:DOWN -- \
		ibv_rc_pingpong -d urxe2 -g 3 -p 18532 >/dev/null 2>&1 &
	server=$!
	struck() {
		run cat /sys/class/infiniband/urxe2/ports/1/state | grep -q "1: DOWN"
	}
	await "the port of urxe2 is up" struck
	has "4: ACTIVE" run cat /sys/class/infiniband/urxe0/ports/1/state
	kill $server
	wait $server
	"$URXE" port up urxe2 || die "port up"
fi

# a trace has the device of a QP, and its packets the addresses of both
if have ibv_rc_pingpong; then
	"$URXE" run --trace "$URXE_DIR/trace.urxe" -- ibv_rc_pingpong -d urxe2 \
		-g 3 -p 18533 >/dev/null 2>&1 &
	server=$!
	traced() {
		run ibv_rc_pingpong -d urxe1 -g 3 -p 18533 127.0.0.1 >/dev/null 2>&1
	}
	await "a pingpong" traced
	wait $server || die "the traced server"
	has " device=2 on=urxe2" "$URXE" trace "$URXE_DIR/trace.urxe"
	"$URXE" trace --pcap "$URXE_DIR/pcap" "$URXE_DIR/trace.urxe" || die "--pcap"
	grep -aq "] at urxe2 WR " "$URXE_DIR/pcap" || die "no device in the comments"
	rm "$URXE_DIR/trace.urxe"
fi

# a WR that waits for the port of its peer
if have ib_write_lat; then
	"$URXE" run -- ib_write_lat -d urxe1 -x 3 -u 21 -D 600 -p 18534 >/dev/null 2>&1 &
	server=$!
	# 18534 is 0x4866
	await "a server" grep -qs ":4866 " /proc/net/tcp /proc/net/tcp6
	"$URXE" run -- ib_write_lat -d urxe2 -x 3 -u 21 -D 600 -p 18534 127.0.0.1 >/dev/null 2>&1 &
	client=$!
	transmitted() {
		[ "$(run cat /sys/class/infiniband/urxe1/ports/1/counters/port_rcv_packets)" != 0 ]
	}
	await "traffic" transmitted
	"$URXE" port down urxe1 || die "port down"
	waits() {
		"$URXE" why --fabric t 2>&1 | grep -q " at urxe[12]: .*the port of urxe1 is down"
	}
	await "urxe why does not report the port of urxe1: $("$URXE" why 2>&1)" waits
	has "  DEVICE" "$URXE" top --once
	has "  urxe2" "$URXE" top --once
	"$URXE" port up urxe1 || die "port up"
	kill $client $server
	wait $client $server
fi

# two processes, on two devices
if have ibv_rc_pingpong; then
	run ibv_rc_pingpong -d urxe1 -g 3 -p 18531 >"$URXE_DIR/server" 2>&1 &
	server=$!
	pingpong() {
		run ibv_rc_pingpong -d urxe2 -g 3 -p 18531 127.0.0.1 >"$URXE_DIR/client" 2>&1
	}
	await "$(cat "$URXE_DIR/client" 2>&1)" pingpong
	wait $server || die "server: $(cat "$URXE_DIR/server")"
	has ::ffff:127.0.0.2 cat "$URXE_DIR/client"
	has ::ffff:127.0.0.3 cat "$URXE_DIR/server"
fi

# a fabric that no process uses is replaced
numbers() {
	(unset URXE_KEEP; URXE_FABRIC=left "$URXE" run "$@" -- \
		sh -c 'ls /sys/class/infiniband | wc -l')
}
(export URXE_FABRIC=left; "$URXE" run -- ibv_devinfo >/dev/null)
[ -e "$URXE_DIR/left/device" ] || die "the fabric is not left"
has 2 numbers --devices 2
(export URXE_FABRIC=left; "$URXE" run --devices 3 -- ibv_devinfo >/dev/null)
[ -e "$URXE_DIR/left/device" ] || die "the fabric is not left"
has 1 numbers
