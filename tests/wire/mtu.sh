#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# mtu.sh: the MTU of the sender's interface is reduced while an RC QP sends.  urxe why,
# and the reason of the error, name the interface, its MTU and the path MTU.
# shellcheck disable=SC2317 # called by name
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need ib_write_bw ip

version=4
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# Start a transfer that does not end, with that ACK timeout, and reduce the MTU.
transfer() # TIMEOUT
{
	local options=(ib_write_bw -F -s 65536 -D 1000 -u "$1")

	next_port
	before=$(received)
	on b "${options[@]}" -p "$port" -x "$(gid_index b)" >/dev/null 2>&1 &
	receiver=$!
	await $receiver listens_on b
	on a env URXE_LOG=1 "${options[@]}" -p "$port" -x "$(gid_index a)" \
		"$(address b)" >"$out" 2>&1 &
	sender=$!
	await $sender has_sent
	bare a ip link set eth0 mtu 1500
}

# Print the number of packets that b has received.
received()
{
	bare b "$URXE" info --fabric wire 2>/dev/null |
		sed -nE 's/.*\brcvd_pkts ([0-9]+).*/\1/p' | grep . || echo 0
}

has_sent()
{
	[[ $(received) -gt $((before + 100)) ]]
}

why_says() # PATTERN
{
	bare a "$URXE" why --fabric wire 2>/dev/null | grep -q "$1"
}

ends()
{
	kill -KILL "$(program "$sender")" "$(program "$receiver")" 2>/dev/null
	wait "$sender" "$receiver" 2>/dev/null
	bare a ip link set eth0 mtu 9000
}

what='up to 4156 bytes, but the MTU of eth0 is 1500'
transfer 20
await "$sender" why_says "$what"
why_says "$what"
report $? 'urxe why names the interface'
ends

transfer 14 # RETRY_EXC_ERR after 1.8 s
wait "$sender"
grep -q 'up to 4096 bytes of payload.* but the MTU of eth0 is 1500' "$out"
report $? 'the error names the interface' || cat "$out"
ends
finish_hosts
