#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# discovery.sh URXE [nobody]: programs of the distribution find urxe0
URXE=$1
. "$(dirname "$0")/lib.sh"

if [ "${2-}" = nobody ]; then
	[ "$(id -u)" = 0 ] || skip "this is not root"
	have setpriv || skip "setpriv is not installed"
	as="setpriv --reuid=65534 --regid=65534 --clear-groups"
	chown 65534:65534 "$URXE_DIR"
	# with a shell of that user: setpriv itself has still the rights of root
	$as sh -c '"$0" --version' "$(realpath "$URXE")" >/dev/null 2>&1 ||
		skip "the user nobody cannot enter the build directory"
	run() {
		$as "$URXE" run -- "$@"
	}
fi

sys=/sys/class/infiniband/urxe0
has urxe0 run ls /sys/class/infiniband
has "4: ACTIVE" run cat $sys/ports/1/state
has 0xffff run cat $sys/ports/1/pkeys/0
has fe80: run cat $sys/ports/1/gids/0
has "IB/RoCE v1" run cat $sys/ports/1/gid_attrs/types/0
has "RoCE v2" run cat $sys/ports/1/gid_attrs/types/1
has "crw-rw-rw-" run ls -l /dev/infiniband/uverbs1000
has "231, 60000" run ls -l /dev/infiniband/uverbs1000
has /sys/devices/pci7578:ff/7578:ff:00.0/infiniband/urxe0 run readlink -f $sys
has 0000:0000:0000:0000:0000:0000:0000:0000 run cat $sys/ports/1/gids/255
out=$(run cat $sys/ports/1/gid_attrs/types/255 2>&1) &&
	die "an empty slot was read: $out"
case $out in
*"Invalid argument"*) ;;
*) die "reading an empty slot: $out" ;;
esac
run sh -c 'test -d '$sys' -a -r '$sys'/node_type' || die "test -r"
[ -n "$(run ls $sys/device/net)" ] || die "no interface in device/net"

# without free descriptors the call fails, and programs do not hang
if have ibv_devices; then
	for n in 4 5 6; do
		timeout 600 "$URXE" run -- sh -c "ulimit -n $n; exec ibv_devices" \
			>/dev/null 2>&1
		[ $? = 124 ] && die "ibv_devices hangs with $n descriptors"
	done
fi

if have rdma; then
	has "1000: urxe0:" run rdma dev
	has "node_type ca" run rdma -d dev show urxe0
	has '"ifname": "urxe0"' run rdma -j -p dev
	has "link urxe0/1 state ACTIVE physical_state LINK_UP" run rdma link
	has "netdev" run rdma -d link show urxe0/1
	has "qp 0" run rdma resource show
	has "ctx 0" run rdma resource show urxe0
	has "copy-on-fork on" run rdma system
	run rdma dev show nosuch0 >/dev/null 2>&1 && die "rdma shows nosuch0"
fi
if have ibstat; then
	has "CA 'urxe0'" run ibstat
	has "State: Active" run ibstat urxe0 1
	has urxe0 run ibstat -l
fi
if have ibstatus; then
	has "LinkUp" run ibstatus
fi
if have python3; then
	run python3 - <<-EOF || die "python"
		import glob, os, stat
		d = "/sys/class/infiniband"
		assert os.listdir(d) == ["urxe0"], os.listdir(d)
		assert open(d + "/urxe0/node_type").read() == "1: CA\n"
		assert glob.glob(d + "/*/ports/*") == [d + "/urxe0/ports/1"]
		st = os.stat("/dev/infiniband/uverbs1000")
		assert stat.S_ISCHR(st.st_mode)
		assert st.st_rdev == os.makedev(231, 60000)
		assert sorted(e.name for e in os.scandir("/dev/infiniband")) == \
			["rdma_cm", "uverbs1000"]
	EOF
fi
if have ibv_devices && [ -e "$(dirname "$URXE")/../provider/liburxe-rdmav34.so" ]; then
	has urxe0 run ibv_devices
	has PORT_ACTIVE run ibv_devinfo
	has "GID[  0]" run ibv_devinfo -v
fi

# no files are left, inside or outside the directory of the fabric
[ -z "$(ls "$URXE_DIR")" ] || die "left in $URXE_DIR: $(ls "$URXE_DIR")"
