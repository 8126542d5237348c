#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Counters and traces of packets between two hosts
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need ibv_rc_pingpong ib_read_bw

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

# the inboxes are in use
next_port
on "$server" ib_read_bw -F -D 1000 -p "$port" -x "$(gid_index "$server")" \
	>/dev/null 2>&1 &
pid=$!
await $pid listens_on "$server"
on "$client" ib_read_bw -F -D 1000 -p "$port" -x "$(gid_index "$client")" \
	"$(address "$server" 4)" >/dev/null 2>&1 &
reader=$!
has_read()
{
	[[ $(counter "$client" rcvd_pkts) -gt $((received + 1000)) ]]
}
received=$(counter "$client" rcvd_pkts)
await $reader has_read
said=$(bare "$client" "$URXE" doctor --fabric wire 2>&1)
[[ $said == *'is consistent; 1 context is open'* ]]
report $? "urxe doctor finds no error during a transfer: $said"
kill -KILL "$(program $pid)" "$(program $reader)"
wait $pid $reader 2>/dev/null

# each host has its own trace, with the complete payload
traced() # HOST COMMAND...
{
	URXE_TRACE=$work/$1.trace URXE_TRACE_PAYLOAD=4096 on "$@"
}

need python3
next_port
traced "$server" ibv_rc_pingpong -g "$(gid_index "$server")" -p "$port" \
	-n 20 -s 3001 >"$work/server" 2>&1 &
pid=$!
await $pid listens_on "$server"
traced "$client" ibv_rc_pingpong -g "$(gid_index "$client")" -p "$port" \
	-n 20 -s 3001 "$(address "$server")" >"$work/client" 2>&1 && wait $pid
report $? 'rc, 20 exchanges, traced'
for host in a b; do
	"$URXE" trace --html "$work/$host.html" "$work/$host.trace" &&
		grep -q 'packet.,.RC ACKNOWLEDGE to QP' "$work/$host.html"
	report $? "what $host sent and received, on a page"
done
"$URXE" trace --pcap "$work/pcapng" "$work/a.trace" "$work/b.trace" &&
	said=$("$(dirname "$0")/packets.py" "$work/pcapng" 2>&1)
report $? "the packets are those that travelled: $said"
finish_hosts
