#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The programs that list devices, as the current user and, if that is root, also as an
# unprivileged user.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
need ibv_devices ibv_devinfo

check 'ibv_devices' '^ +urxe0[[:space:]]+[0-9a-f]{16}$' ibv_devices
check 'ibv_devinfo' 'hca_id:.*urxe0' ibv_devinfo
check 'ibv_devinfo -v: RoCE v1 GID' 'GID\[ +0\]:.*RoCE v1' ibv_devinfo -v
check 'ibv_devinfo -v: RoCE v2 GID' 'GID\[ +1\]:.*RoCE v2' ibv_devinfo -v
check 'ibv_devinfo -v: link layer' 'link_layer:.*Ethernet' ibv_devinfo -v
check 'ibv_devinfo -v: active' 'PORT_ACTIVE' ibv_devinfo -v
check 'ibv_devinfo -v: limits' 'max_qp:.*8190' ibv_devinfo -v
check 'ibv_devinfo -d' 'urxe0' ibv_devinfo -d urxe0
check 'ibv_devinfo -l' 'urxe0' ibv_devinfo -l
if command -v ibstat >/dev/null; then
	check 'ibstat' "CA 'urxe0'" ibstat
	check 'ibstat -l' '^urxe0$' ibstat -l
	check 'ibstat urxe0 1' 'State: Active' ibstat urxe0 1
	check 'ibstatus' 'urxe0' ibstatus
fi
if command -v rdma >/dev/null; then
	check 'rdma dev' 'urxe0: node_type ca' rdma dev
	check 'rdma dev show urxe0' 'urxe0: node_type ca' rdma dev show urxe0
	check 'rdma link' 'link urxe0/1 state ACTIVE' rdma link
	check 'rdma -d dev' 'urxe0' rdma -d dev
fi
check 'ls' '^urxe0$' ls /sys/class/infiniband
check 'cat' '^fe80:|^0000:0000:0000:0000:0000:ffff|^[0-9a-f]{4}:' \
	cat /sys/class/infiniband/urxe0/ports/1/gids/0
check 'find' 'urxe0' find /sys/class/infiniband/ -maxdepth 1
if command -v python3 >/dev/null; then
	check 'python, os.listdir' 'urxe0' python3 -c \
		'import os; print(os.listdir("/sys/class/infiniband"))'
fi

# Without urxe no program finds the device.
if ibv_devices 2>/dev/null | grep -q urxe0; then
	report 'seen' 'not seen without urxe run'
else
	report 0 'not seen without urxe run'
fi

# The same as an unprivileged user, in a separate fabric
if [[ $(id -u) == 0 ]] && command -v setpriv >/dev/null; then
	base=$(mktemp -d "$(dirname "$URXE_DIR")/urxe-test-XXXXXX")
	chown 65534:65534 "$base"
	URXE_DIR=$base
	unprivileged()
	{
		timeout -k 2 "$LIMIT" setpriv --reuid=65534 --regid=65534 \
			--clear-groups "$URXE" run -- "$@"
	}
	if ! unprivileged true 2>/dev/null; then
		echo "skipped: the user nobody cannot execute $URXE"
	else
		for cmd in 'ibv_devices' 'ibv_devinfo -v' 'rdma dev'; do
			command -v "${cmd%% *}" >/dev/null || continue
			# shellcheck disable=SC2086 # the options are words
			unprivileged $cmd 2>&1 | grep -q urxe0
			report $? "$cmd as nobody"
		done
	fi
	rm -rf "$base"
fi
finish
