#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# mckey.sh: multicast between two hosts, with rdma_cm, in both directions
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need mckey ip

# Check whether the interface of the host accepts that multicast MAC address.
is_joined() # HOST MAC
{
	bare "$1" ip maddr show | grep -qw "$2"
}

declare -A groups=([4]=239.91.7.9 [6]=ff0e::91:709)
declare -A macs=([4]=01:00:5e:5b:07:09 [6]=33:33:00:91:07:09)

# Start a receiver on both hosts, also on that of the sender, and then the sender.
many=10
exchange() # SENDER
{
	local host pids=() status=0 out i=0
	local group=${groups[$version]} mac=${macs[$version]}
	out=$(mktemp -p "$work")

	for host in a b; do
		on "$host" mckey -m "$group" -b "$(address "$host")" -C $many \
			>"$out.$host" 2>&1 &
		pids+=($!)
		await $! is_joined "$host" "$mac"
	done
	on "$1" mckey -m "$group" -b "$(address "$1")" -s -C $many \
		>"$out.sender" 2>&1 || status=$?
	for host in a b; do
		wait "${pids[i++]}" || status=$?
		grep -q 'data transfers complete' "$out.$host" ||
			status="no data on $host"
	done
	report "$status" "mckey from $1, to both hosts, IPv$version"
	[[ $status == 0 ]] || tail -n 5 "$out".*

	# the group is left at the end
	for host in a b; do
		for ((i = 0; i < 600; i++)); do
			is_joined "$host" "$mac" || break
			sleep 0.1
		done
		[[ $i -lt 600 ]]
		report $? "$host has left the group, IPv$version"
	done
}

for version in ${WIRE_VERSION-4 6}; do
	# rdma_cm of the kernel joins no IPv6 groups for RoCE v2
	[[ $version == 4 || ! ${RXE_HOST-} ]] || continue
	exchange a
	exchange b
done
finish_hosts
