#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# cluster.sh URXE PCI: stock programs on the hosts of cluster files (--cluster, --host)
URXE=$(realpath "$1")
pci_topology=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
examples=$here/../../examples/clusters
cd "$URXE_DIR" || exit 99
cp "$examples"/*.cluster .

# on HOST CMD...: run a command on a host of $cluster
on() {
	host=$1
	shift
	"$URXE" run --cluster "$cluster" --host "$host" -- "$@"
}
refused() {
	! "$URXE" run "$@" -- true 2>&1
}
export URXE_KEEP=1

cluster=eight-hca-host.cluster
URXE_FABRIC=eight
on node1 true || die "run --cluster"
has "$(printf 'mlx5_%s\n' 0 1 2 3 4 5 6 7)" on node2 ls /sys/class/infiniband
pci=/sys/devices/pci0000:9a/0000:9a:00.0
[ "$(on node2 readlink -f /sys/class/infiniband/mlx5_4/device)" = $pci ] ||
	die "PCI function"
has 1 on node2 cat $pci/numa_node
has 0000:9a:00.0 on node2 ls /sys/bus/pci/devices
has 28.39.1002 on node2 cat /sys/class/infiniband/mlx5_7/fw_ver
has "400 Gb/sec" on node2 cat /sys/class/infiniband/mlx5_7/ports/1/rate
has rail7 on node2 ls /sys/class/infiniband/mlx5_7/device/net
[ "$(on node1 cat /sys/class/infiniband/mlx5_3/node_guid)" != \
	"$(on node2 cat /sys/class/infiniband/mlx5_3/node_guid)" ] || die "GUIDs"
# as NCCL, UCX and hwloc read it
for rail in 0:0 3:0 4:1 7:1; do
	on node2 "$pci_topology" mlx5_${rail%:*} ${rail#*:} || die "topology of rail $rail"
done
# other paths of PCI functions are the machine's
on node1 ls -d /sys/devices/pci0000:00 >out 2>&1
ls -d /sys/devices/pci0000:00 >in 2>&1
cmp in out || die "/sys/devices/pci0000:00"
for dir in /sys/devices/pci0000:00 /sys/devices/pci0000:77 /sys/class/pci_bus/0000:77; do
	on node1 find $dir -maxdepth 1 -type d >out 2>/dev/null
	find $dir -maxdepth 1 -type d >in 2>/dev/null
	cmp in out || die $dir
done
# a relative path of the file, and a program that changes its directory
(
	export URXE_CLUSTER=$cluster
	has mlx5_7 "$URXE" run --host node2 -- sh -c 'cd / && ls /sys/class/infiniband'
) || exit 1
if have ibv_devinfo; then
	on node1 ibv_devinfo >out || die "ibv_devinfo"
	[ "$(grep -c hca_id out)" = 8 ] && [ "$(grep -c "PORT_ACTIVE" out)" = 8 ] ||
		die "ibv_devinfo: $(cat out)"
	has "fw_ver:				28.39.1002" on node2 ibv_devinfo -d mlx5_6
fi
if have rdma; then
	for host in node1 node2; do
		on $host rdma link >out || die "rdma link"
		for rail in 0 1 2 3 4 5 6 7; do
			echo "link mlx5_$rail/1 state ACTIVE physical_state LINK_UP netdev rail$rail "
		done | cmp - out || die "rdma link: $(cat out)"
	done
fi
if have ibstatus; then
	on node2 ibstatus >out || die ibstatus
	[ "$(grep -c "^Infiniband device 'mlx5_[0-7]' port 1 status:" out)" = 8 ] &&
		[ "$(grep -c "rate:		 400 Gb/sec (4X NDR)" out)" = 8 ] &&
		[ "$(grep -c "state:		 4: ACTIVE" out)" = 8 ] || die "ibstatus: $(cat out)"
fi
if have ibstat; then
	on node2 ibstat -l >out || die "ibstat -l"
	printf 'mlx5_%s\n' 0 1 2 3 4 5 6 7 | cmp - out || die "ibstat -l"
fi

# pingpong DEVICE DEVICE: from node2 to a server on node1
port=18600
pingpong() {
	port=$((port + 1))
	# a server without a client remains: it is killed
	"$URXE" run --cluster "$cluster" --host "$first" -- \
		ibv_rc_pingpong -p $port -d "$1" -g 3 -n 50 >server 2>&1 &
	server=$!
	listens() {
		grep -q "$(printf ':%04X ' $port)" /proc/net/tcp /proc/net/tcp6
	}
	await "pingpong server" listens
	on "$second" ibv_rc_pingpong -p $port -d "$2" -g 3 -n 50 localhost >client 2>&1
	ret=$?
	kill $server 2>/dev/null
	wait $server
	return $ret
}
if have ibv_rc_pingpong; then
	first=node1 second=node2
	for rail in 0 3 7; do
		pingpong mlx5_$rail mlx5_$rail || die "rail $rail: $(cat client)"
	done
	pingpong mlx5_0 mlx5_1 && die "two rails are joined"

	# a link of a switch is cut, which both devices of the rail notice
	"$URXE" port down rail3/1 || die "port down rail3/1"
	has "1: DOWN" on node1 cat /sys/class/infiniband/mlx5_3/ports/1/state
	has "4: ACTIVE" on node2 cat /sys/class/infiniband/mlx5_3/ports/1/state
	has "already down" "$URXE" port down rail3/1
	pingpong mlx5_3 mlx5_3 && die "pingpong over a link that is down"
	pingpong mlx5_2 mlx5_2 || die "the other rail: $(cat client)"
	"$URXE" port up rail3 || die "port up rail3"
	has "4: ACTIVE" on node1 cat /sys/class/infiniband/mlx5_3/ports/1/state
	pingpong mlx5_3 mlx5_3 || die "after port up: $(cat client)"
	"$URXE" port down node2/mlx5_6 || die "port down node2/mlx5_6"
	has "1: DOWN" on node2 cat /sys/class/infiniband/mlx5_6/ports/1/state
	has "4: ACTIVE" on node1 cat /sys/class/infiniband/mlx5_6/ports/1/state
fi

# the device at the other end of a link gets the events
if have ibv_asyncwatch; then
	"$URXE" run --cluster $cluster --host node1 -- ibv_asyncwatch -d mlx5_5 >watch 2>&1 &
	watch=$!
	watched() {
		grep -qi "$1" watch
	}
	await "ibv_asyncwatch" watched "async event FD"
	"$URXE" port down rail5 || die "port down rail5"
	await "PORT_ERR" watched port.err
	"$URXE" port up node1/mlx5_5 || die "port up node1/mlx5_5"
	await "PORT_ACTIVE" watched port.active
	kill $watch
	wait $watch
fi

# rdma_cm: the address selects the rail, at both ends
if have rping; then
	cluster=rail-isolated.cluster
	URXE_FABRIC=rails
	"$URXE" run --cluster $cluster --host bob -- rping -s -a 10.0.1.2 -C 2 >server 2>&1 &
	server=$!
	connects() {
		on alice rping -c -v -a 10.0.1.2 -C 2 >client 2>&1
	}
	await "rping to 10.0.1.2" connects
	wait $server || die "rping server: $(cat server)"
	# each host has its own ports
	for host in alice bob; do
		"$URXE" run --cluster $cluster --host $host -- rping -s -p 7200 -C 1 >$host 2>&1 &
		echo $! >$host.pid
	done
	for to in 10.0.0.1 10.0.0.2; do
		from=alice
		[ $to = 10.0.0.2 ] || from=bob
		connects() {
			on $from rping -c -a $to -p 7200 -C 1 >client 2>&1
		}
		await "rping to $to" connects
	done
	for host in alice bob; do
		wait "$(cat $host.pid)" || die "rping server of $host: $(cat $host)"
	done
	# no path: urxe why names the two ends
	"$URXE" run --cluster $cluster --host bob -- rping -s -p 7201 >server 2>&1 &
	server=$!
	"$URXE" run --cluster $cluster --host alice -- \
		rping -c -I 10.0.0.1 -a 10.0.1.2 -p 7201 >client 2>&1 &
	client=$!
	explained() {
		"$URXE" why | grep -q "no links that are up join alice/mlx5_0 and bob/mlx5_1"
	}
	await "urxe why" explained
	kill $client $server
	wait $client $server
	# the address of another host
	! on alice timeout 20 rping -s -a 10.0.0.2 -C 1 >out 2>&1 || die "bind"
fi

# what is refused
cluster=two-rails.cluster
URXE_FABRIC=two
on bob true || die "two-rails"
# urxe port keeps the fabric, also without the variables that it was created with
unset URXE_KEEP
has "no device rail9; the devices are alice/mlx5_0" eval '! "$URXE" port down rail9 2>&1'
has "mlx5_0 is a device of several hosts; name one of them, such as alice/mlx5_0 or" \
	eval '! "$URXE" port down mlx5_0 2>&1'
env URXE_HOST=bob "$URXE" port down mlx5_0 || die "port down mlx5_0"
has "already down" "$URXE" port down bob/mlx5_0
"$URXE" port up bob/mlx5_0 || die "port up"
export URXE_KEEP=1
has "alice/mlx5_1" "$URXE" info
has "cannot be combined with a cluster file" refused --wire=lo
has "has no host carol" refused --cluster two-rails.cluster --host carol
has "from another cluster file" refused --cluster mixed-mtu.cluster
has "excludes" refused --cluster two-rails.cluster --devices 2
has "a built-in subnet manager" refused --cluster two-rails.cluster --sm external
has "excludes" refused --fabric new --cluster two-rails.cluster --devices 2
has "no file" refused --cluster absent.cluster
# no directory remains if a fabric was not made
has "has no host carol" refused --fabric none --cluster two-rails.cluster --host carol
printf '[hca a/mlx5_0]\nlink = nowhere\n' >bad.cluster
has "there is no nowhere" refused --fabric none --cluster bad.cluster
has "no device is InfiniBand" refused --fabric none --cluster two-rails.cluster --sm external
has "no device is InfiniBand" refused --fabric none --sm external
[ ! -e "$URXE_DIR/none" ] || die "$URXE_DIR/none remains"
has mlx4_0 "$URXE" run --fabric mixed --cluster mixed-mtu.cluster --host old -- \
	ls /sys/class/infiniband

# an unused fabric is replaced
unset URXE_KEEP
URXE_FABRIC=two
has mlx5_0 "$URXE" run --cluster rail-isolated.cluster -- ls /sys/class/infiniband
has urxe0 "$URXE" run ls /sys/class/infiniband
