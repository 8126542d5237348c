#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Test of the two hosts: they are separate, they reach each other, and the cable has the
# requested faults.
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need python3 ibv_devinfo

bare a sh -c 'echo a >/dev/shm/who' && bare b test ! -e /dev/shm/who
report $? 'each host has a separate /dev/shm'
[[ $(bare a hostname)$(bare b hostname) == ab ]]
report $? 'each host has its own name'

# The path MTU of the port is the largest that the interface MTU allows.
for host in a b; do
	mtu=$(bare "$host" cat /sys/class/net/eth0/mtu)
	path=4096
	while ((path + 80 > mtu)); do
		path=$((path / 2))
	done
	on "$host" ibv_devinfo | grep -q "active_mtu:.*\b$path "
	report $? "$host has MTU $mtu, and its port $path"
done

# datagrams.py sends some thousand datagrams to port 4791, and prints what happened
for v in 4 6; do
	[[ $(gid_index a $v) && $(gid_index b $v) ]]
	report $? "both have a GID of IPv$v"
	said=$("$(dirname "$0")/datagrams.py" "$HOST_a" "$HOST_b" \
		"$(address b $v)")
	for word in $1; do
		grep -qw "$word" <<<"$said"
		report $? "datagrams over IPv$v: $word; they were: $said"
	done
done
finish_hosts
