#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# opensm.sh URXE: OpenSM brings the subnet up, and programs communicate then
URXE=$1
. "$(dirname "$0")/../shim/lib.sh"
have opensm || skip "opensm is not installed"
have ibstat || skip "infiniband-diags is not installed"

export URXE_KEEP=1
"$URXE" run --devices 3 --link-layer infiniband --sm external -- true || die "run --sm"
state=/sys/class/infiniband/urxe0/ports/1/state
has "2: INIT" run cat $state
has "Base lid: 0" run ibstat urxe0
if have ibv_devinfo; then
	has "PORT_INIT" run ibv_devinfo -d urxe0
fi
"$URXE" run --sm builtin -- true 2>/dev/null && die "another subnet manager is accepted"

# no daemon, no console; its files in a private directory
mkdir "$URXE_DIR/opensm"
OSM_TMP_DIR="$URXE_DIR/opensm/" OSM_CACHE_DIR="$URXE_DIR/opensm/" \
	"$URXE" run -- opensm -f "$URXE_DIR/opensm/log" -s 1 \
	-g "$(run cat /sys/class/infiniband/urxe0/node_guid | sed 's/://g; s/^/0x/')" \
	>"$URXE_DIR/opensm/out" 2>&1 &
sm=$!
is_active() {
	for k in 0 1 2; do
		run cat /sys/class/infiniband/urxe$k/ports/1/state | grep -q ACTIVE || return 1
	done
}
await "OpenSM activates the ports" is_active
has "Base lid: 1" run ibstat urxe0
has "SM lid: 1" run ibstat urxe2
has SMINFO_MASTER run sminfo
[ "$(run saquery | grep -c node_guid)" = 4 ] || die "saquery: $(run saquery)"
[ "$(run saquery -p --slid 1 --dlid 2 | grep -c PathRecord)" = 1 ] ||
	die "saquery -p: $(run saquery -p --slid 1 --dlid 2)"
lid=$(run cat /sys/class/infiniband/urxe2/ports/1/lid)
has "To ca" run ibtracert 1 "$((lid))"

pair() {
	run sh -c "$1" >"$URXE_DIR/opensm/server" 2>&1 &
	server=$!
	client_args=$2
	client() {
		run sh -c "$client_args" >"$URXE_DIR/opensm/client" 2>&1
	}
	await "$2" client
	wait $server || die "$1: $(cat "$URXE_DIR/opensm/server")"
}
if have ibv_rc_pingpong; then
	pair "ibv_rc_pingpong -d urxe1 -p 18559 -n 50" \
		"ibv_rc_pingpong -d urxe2 -p 18559 -n 50 127.0.0.1"
	pair "ibv_ud_pingpong -d urxe1 -p 18559 -n 50" \
		"ibv_ud_pingpong -d urxe2 -p 18559 -n 50 127.0.0.1"
fi
if have rping; then
	pair "rping -s -a 127.0.0.2 -p 18560 -C 3" \
		"rping -c -a 127.0.0.2 -p 18560 -C 3 -V"
	has "data transfers complete" run sh -c \
		"mckey -b 127.0.0.2 -m 239.1.1.9 & mckey -b 127.0.0.2 -m 239.1.1.9 -s; wait"
fi
if have ib_send_bw; then
	pair "ib_send_bw -c UD -g -d urxe1 -p 18561 -n 500" \
		"ib_send_bw -c UD -g -d urxe2 -p 18561 -n 500 127.0.0.1"
fi

# a link that was down comes up again
"$URXE" port down urxe1 || die "port down"
has "1: DOWN" run cat /sys/class/infiniband/urxe1/ports/1/state
"$URXE" port up urxe1 || die "port up"
await "OpenSM activates the port" is_active
kill $sm
wait $sm
rm -rf "$URXE_DIR/opensm"

# the LIDs that it has assigned do not keep the fabric
unset URXE_KEEP
run cat $state >/dev/null || die "run"
[ -z "$(ls "$URXE_DIR")" ] || die "the fabric remains: $(ls "$URXE_DIR")"
