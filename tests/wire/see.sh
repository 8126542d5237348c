#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What is seen of packets between two hosts: counters.
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need ibv_rc_pingpong

counter() # HOST NAME
{
	on "$1" cat "/sys/class/infiniband/urxe0/ports/1/hw_counters/$2"
}

next_port
want='iters in'
meet 'rc, 200 exchanges' \
	ibv_rc_pingpong -g "$(gid_index "$server")" -p "$port" -n 200 -- \
	ibv_rc_pingpong -g "$(gid_index "$client")" -p "$port" -n 200 \
	"$(address "$server")"

for host in a b; do
	# 200 messages of 4096 bytes, in packets of 1024, and their ACKs
	sent=$(counter $host sent_pkts)
	received=$(counter $host rcvd_pkts)
	[[ $sent -ge 800 && $received -ge 800 ]]
	report $? "$host counted packets: $sent sent, $received received"
	[[ $(counter $host rdma_sends):$(counter $host rdma_recvs) == 200:200 ]]
	report $? "$host counted 200 SENDs and 200 receives"
	if command -v rdma >/dev/null; then
		said=$(on $host rdma statistic show link urxe0/1)
		[[ $said == *" sent_pkts $sent rcvd_pkts $received "* ]]
		report $? "rdma statistic says the same: $said"
	fi
	said=$(bare $host "$URXE" info --fabric wire)
	[[ $said == *"counters: sent_pkts $sent, rcvd_pkts $received, "* ]]
	report $? 'and so does urxe info'
done
finish_hosts
