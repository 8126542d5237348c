#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# infiniband.sh URXE: programs of the distribution over InfiniBand (--link-layer)
URXE=$1
. "$(dirname "$0")/lib.sh"

# commands that must fail; has() checks what they print
refused() {
	! "$@" 2>&1
}

# the fabric remains between the commands
export URXE_KEEP=1
has "must be ethernet or infiniband" refused "$URXE" run --link-layer ib -- true
has "must be ethernet or infiniband" refused \
	"$URXE" run --devices 1 --link-layer infiniband,foo -- true
has "needs an Ethernet device" refused \
	"$URXE" run --link-layer infiniband --fabric new --wire=lo -- true
"$URXE" run --devices 3 --link-layer infiniband,infiniband,ethernet -- true ||
	die "run --link-layer"
has "has the link layer InfiniBand" refused \
	"$URXE" run --link-layer ethernet -- true
has "needs a fabric with one device" refused "$URXE" run --wire=lo -- true

# what tools show
port=/sys/class/infiniband/urxe1/ports/1
has InfiniBand run cat $port/link_layer
has 0x2 run cat $port/lid
has 0x1 run cat $port/sm_lid
has 0xffff run cat $port/pkeys/0
has 0x0000 run cat $port/pkeys/31
has "IB/RoCE v1" run cat $port/gid_attrs/types/0
has Ethernet run cat /sys/class/infiniband/urxe2/ports/1/link_layer
has "LID 2, LMC 0, subnet manager at LID 1" "$URXE" info
has '"lid":2,"lmc":0,"sm_lid":1' "$URXE" info --json
if have rdma; then
	has "urxe1/1 subnet_prefix fe80:0000:0000:0000 lid 2 sm_lid 1 lmc 0 state ACTIVE" \
		run rdma link
	has "urxe2/1 state ACTIVE physical_state LINK_UP netdev lo" run rdma link
fi
if have ibv_devinfo; then
	has "port_lid:		2" run ibv_devinfo -d urxe1
	has "link_layer:		InfiniBand" run ibv_devinfo -d urxe1
fi
if have ibstat; then
	has "Base lid: 2" run ibstat urxe1
	has "Link layer: InfiniBand" run ibstat urxe1
fi
if have ibstatus; then
	has "base lid:	 0x2" run ibstatus urxe1
fi

# urxe port set
has "no LIDs and no P_Keys" refused "$URXE" port set urxe2 lid=3
has "LID 1 with LMC 0 is in use" refused "$URXE" port set urxe1 lid=1
has "LID 5 with LMC 1 is invalid" refused "$URXE" port set urxe1 lid=5 lmc=1
has "is not one of rate=N, lid=N" refused "$URXE" port set urxe1 lid=0xffff
has "is not one of rate=N, lid=N" refused "$URXE" port set urxe1 pkeys=1,
has "is not one of rate=N, lid=N" refused "$URXE" port set urxe1 lid=4x
has "name one of them" refused "$URXE" port set lid=4
"$URXE" port set urxe1/1 lid=4 lmc=1 pkeys=0x8001,0xffff sm_lid=9 sm_sl=2 ||
	die "port set"
has 0x4 run cat $port/lid
has 1 run cat $port/lid_mask_count
has 0x8001 run cat $port/pkeys/0
has 0xffff run cat $port/pkeys/1
has 0x9 run cat $port/sm_lid
has 2 run cat $port/sm_sl

# a fabric that has been changed is not replaced
has "has 3 devices" refused "$URXE" run --devices 2 -- true

# the reason why there is no response
if have ib_write_lat; then
	"$URXE" run -- ib_write_lat -d urxe1 -u 21 -D 600 -p 18551 >/dev/null 2>&1 &
	server=$!
	# 18551 is 0x4877
	await "a server" grep -qs ":4877 " /proc/net/tcp /proc/net/tcp6
	"$URXE" run -- ib_write_lat -d urxe0 -u 21 -D 600 -p 18551 127.0.0.1 >/dev/null 2>&1 &
	client=$!
	waits() {
		"$URXE" why --fabric t 2>&1 | grep -q "$1"
	}
	await "a wait for the P_Key" waits "of this QP does not match 0x[f8]"
	"$URXE" port set urxe1 pkeys=0xffff lid=6
	await "a wait for the LID" waits "LID 4, .* has LID 6"
	kill $client $server
	wait $client $server
fi
"$URXE" port set urxe1 lid=2 lmc=0 pkeys=0xffff sm_lid=1 sm_sl=0

# Run a server on urxe1 and, until it succeeds, a client on urxe0.
pair() {
	server_args=$1
	client_args=$2
	run sh -c "$server_args" >"$URXE_DIR/server" 2>&1 &
	server=$!
	client() {
		run sh -c "$client_args" >"$URXE_DIR/client" 2>&1
	}
	await "$client_args" client
	wait $server || die "$server_args: $(cat "$URXE_DIR/server")"
}

for type in rc uc ud srq xsrq; do
	have ibv_${type}_pingpong || continue
	pair "ibv_${type}_pingpong -d urxe1 -p 18552 -n 100" \
		"ibv_${type}_pingpong -d urxe0 -p 18552 -n 100 127.0.0.1"
	pair "ibv_${type}_pingpong -d urxe1 -p 18552 -n 100 -g 0" \
		"ibv_${type}_pingpong -d urxe0 -p 18552 -n 100 -g 0 127.0.0.1"
done
for test in ib_write_bw ib_read_lat ib_atomic_lat "ib_send_bw -c UD"; do
	have ${test%% *} || continue
	pair "$test -d urxe1 -p 18553 -n 100" \
		"$test -d urxe0 -p 18553 -n 100 127.0.0.1"
done
if have rping; then
	pair "rping -s -a 127.0.0.2 -p 18554 -C 3" \
		"rping -c -a 127.0.0.2 -p 18554 -C 3 -V"
	pair "udaddy -b 127.0.0.2" "udaddy -s 127.0.0.2"
	has "data transfers complete" run sh -c \
		"mckey -b 127.0.0.2 -m 239.1.1.9 & mckey -b 127.0.0.2 -m 239.1.1.9 -s; wait"
fi
rm -f "$URXE_DIR/server" "$URXE_DIR/client"
