#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# links.sh URXE FAILOVER [SEED...]: fault rules for hosts, devices and links of a cluster
# file; and a client that continues over other rails, with 100 random failures by each
# seed
URXE=$(realpath "$1")
failover=$(realpath "$2")
shift 2
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../shim/lib.sh"
cluster=$(realpath "$here/../../examples/clusters/eight-hca-host.cluster")
cd "$URXE_DIR" || exit 99
export URXE_KEEP=1

# on HOST OPTION... -- CMD...
on() {
	host=$1
	shift
	"$URXE" run --cluster "$cluster" --host "$host" "$@"
}
state() {
	on "$1" -- cat "/sys/class/infiniband/$2/ports/1/state"
}

for seed in "${@:-1}"; do
	rm -f socket
	on node2 -- "$failover" server socket 4 0 >server 2>&1 &
	server=$!
	await "the server" test -S socket
	URXE_FAULT_SEED=$seed on node1 --fault port:link=rail0:ms=20:p=0.5:ready=3:DOWN=9 \
		--fault port:link=rail1/1:ms=20:p=0.5:DOWN=9 \
		--fault port:link=node2/mlx5_2:ms=23:p=0.5:DOWN=9 \
		--fault port:dev=mlx5_3:ms=20:p=0.3:DOWN=9 -- \
		"$failover" client socket 4 100 >client 2>&1 ||
		die "seed $seed: $(cat client server)"
	wait $server || die "seed $seed: server: $(cat server)"
	# a link has two ends: both get the event; on a switch, its other links stay
	for rail in 0 3; do
		grep -q "rail $rail: [1-9]" client || die "seed $seed: $(cat client)"
	done
	grep -q "rail 2: 0 times" client || die "seed $seed: $(cat client)"
	for rail in 0 2; do
		grep -q "rail $rail: [1-9]" server || die "seed $seed: $(cat server)"
	done
	grep -q "rail 3: 0 times" server || die "seed $seed: $(cat server)"
	for rail in 0 1 2 3; do
		has ACTIVE state node1 mlx5_$rail
		has ACTIVE state node2 mlx5_$rail
	done
	grep messages server
done

# hosts and devices
if have ibv_devinfo; then
	rule=ibv_open_device:host=node2:dev=mlx5_3:EMFILE
	on node2 --fault $rule -- ibv_devinfo -d mlx5_2 >out 2>&1 || die "$(cat out)"
	on node1 --fault $rule -- ibv_devinfo -d mlx5_3 >out 2>&1 || die "$(cat out)"
	on node2 --fault $rule -- ibv_devinfo -d mlx5_3 >out 2>&1 && die "$rule"
	grep -q "never struck" out && die "$(cat out)"
	on node2 --fault ibv_alloc_pd:dev=mlx5_1:EIO --fault ibv_query_port:dev=mlx5_0:EIO \
		-- ibv_devinfo -d mlx5_0 >out 2>&1
	has "Failed to query port" cat out
	has "ibv_alloc_pd:dev=mlx5_1:EIO\" never struck: nothing matched it" cat out
	# a link that does not exist
	on node1 --fault port:link=rail9:DOWN -- ibv_devinfo -d mlx5_0 >out 2>&1 &&
		die "rail9"
	has "has no link rail9" cat out
fi

# stays_down RULE...: after these rules, the last of which raises SM_CHANGE, the link is
# down.
stays_down() {
	options=
	for rule; do
		options="$options --fault $rule"
	done
	# shellcheck disable=SC2086 # rules have no spaces
	"$URXE" run --cluster "$cluster" --host node1 $options -- \
		ibv_asyncwatch -d mlx5_0 >watch 2>&1 &
	watch=$!
	await "SM_CHANGE" grep -qi "sm.change\|SM" watch
	has "1: DOWN" state node1 mlx5_0
	kill $watch
	wait $watch
	"$URXE" port up node1/mlx5_0 || die "port up"
}

# overlapping rules for one link, by two of its names: it comes up when the later one
# ends. DOWN without a time outlasts DOWN=MS.
if have ibv_asyncwatch; then
	stays_down port:link=node1/mlx5_0:ms=1:DOWN=3600000 port:link=rail0/1:ms=2:DOWN=1 \
		port:dev=mlx5_0:ms=100:SM_CHANGE
	stays_down port:ms=1:DOWN=20 port:ms=2:DOWN port:ms=100:SM_CHANGE
fi

# a port that is up, and not ready: the event is there, and no packet passes
if have ibv_asyncwatch && have ibv_rc_pingpong; then
	"$URXE" run --cluster "$cluster" --host node1 \
		--fault port:dev=mlx5_4:ms=1:ready=3600000:DOWN=1 -- \
		ibv_asyncwatch -d mlx5_4 >watch 2>&1 &
	watch=$!
	await "PORT_ACTIVE" grep -qi port.active watch
	has "4: ACTIVE" state node1 mlx5_4
	port=$((20000 + $$ % 10000))
	pingpong() {
		port=$((port + 1))
		"$URXE" run --cluster "$cluster" --host node1 -- \
			ibv_rc_pingpong -p $port -d mlx5_4 -g 3 -n 50 >out 2>&1 &
		server=$!
		listens() {
			grep -q "$(printf ':%04X ' $port)" /proc/net/tcp /proc/net/tcp6
		}
		await "pingpong server" listens
		on node2 -- ibv_rc_pingpong -p $port -d mlx5_4 -g 3 -n 50 localhost >client 2>&1
		ret=$?
		kill $server 2>/dev/null
		wait $server
		return $ret
	}
	pingpong && die "packets pass a port that is not ready"
	has "transport retry counter exceeded" cat client
	kill $watch
	wait $watch
	"$URXE" port up node1/mlx5_4 || die "port up"
	pingpong || die "after port up: $(cat client)"
fi
exit 0
