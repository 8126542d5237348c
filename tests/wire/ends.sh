#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# ends.sh NAME...: two hosts, and something ends, or stops, while there is
# traffic.  It is rping -V where it must go on, which checks what it reads back.
# shellcheck disable=SC2317,SC2086 # called by name; numbers are words
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need rping ib_write_bw ip pgrep
patience=${WIRE_PATIENCE-}
[[ $patience ]] || {
	echo "skipped: there is no header of librdmacm"
	exit 77
}

# A sanitizer's library stays the first.
preloaded=${LD_PRELOAD:+$LD_PRELOAD:}$patience

# How many packets a host has received.
packets() # HOST
{
	bare "$1" "$URXE" info --fabric wire 2>/dev/null |
		sed -nE 's/.*\brcvd_pkts ([0-9]+).*/\1/p' | grep . || echo 0
}

# Until HOST has received N more than now; false if the program ended.
goes_on() # HOST N PID
{
	local from

	from=$(packets "$1")
	await "$3" has_received "$1" $((from + $2))
	has_received "$1" $((from + $2))
}

# Has a request of that host not been answered in time?
has_lost() # HOST
{
	bare "$1" "$URXE" info --fabric wire 2>/dev/null |
		grep -q local_ack_timeout_err
}

somebody_has_lost()
{
	has_lost a || has_lost b
}

has_received() # HOST N
{
	[[ $(packets "$1") -ge $2 ]]
}

# PID of who reads the socket of a host, as it is there.
reader() # HOST
{
	bare "$1" "$URXE" info --fabric wire 2>/dev/null |
		sed -nE 's/.*socket is held by PID ([0-9]+) .*/\1/p'
}

# PID of the program that "on" has in the background.
program() # PID
{
	local pid=$1 next

	while next=$(pgrep -P "$pid" | head -n 1); [[ $next ]]; do
		pid=$next
	done
	echo "$pid"
}

said() # PATTERN FILE
{
	grep -qE -- "$1" "$2"
}

ended() # PID
{
	! kill -0 "$1" 2>/dev/null
}

listen_on() # HOST: rping for every address, in $listener
{
	on "$1" rping -s -P -a 0.0.0.0 -p "$port" -V >"$work/listener.$1" 2>&1 &
	listener=$!
	server=$1 await $listener listens_on "$1"
}

# A listener without a connection: it holds what there is to hold.
keep() # HOST
{
	next_port
	listen_on "$1"
	keeper=$listener
	await "$keeper" holds "$1" "$keeper"
}

holds() # HOST PID
{
	[[ $(reader "$1") == "$(program "$2")" ]]
}

# rping between the hosts: $serving on b, $asking on a, with ACK timeouts for
# seconds.
traffic()
{
	next_port
	LD_PRELOAD=$preloaded on b rping -s -a 0.0.0.0 -p "$port" -V -v \
		>"$work/serving" 2>&1 &
	serving=$!
	server=b await $serving listens_on b
	LD_PRELOAD=$preloaded on a rping -c -a "$(address b)" -p "$port" -V \
		>"$work/asking" 2>&1 &
	asking=$!
	await $asking said 'ping data' "$work/serving"
	goes_on b 50 $asking && goes_on a 50 $asking
	see "$what: there is traffic"
}

# One whose client always has something under way.
writes()
{
	next_port
	on b ib_write_bw -F -x "$(gid_index b)" -p "$port" --run_infinitely \
		>"$work/serving" 2>&1 &
	serving=$!
	server=b await $serving listens_on b
	on a ib_write_bw -F -x "$(gid_index a)" -p "$port" --run_infinitely \
		"$(address b 4)" >"$work/asking" 2>&1 &
	asking=$!
	goes_on b 50 $asking && goes_on a 50 $asking
	see "$what: there is traffic"
}

traffic_goes_on() # NAME
{
	goes_on b 200 $asking && goes_on a 200 $asking
	see "$1"
}

# The client has ended, and what it said matches.
asking_ends() # PATTERN NAME
{
	await $asking said "$1" "$work/asking"
	said "$1" "$work/asking"
	see "$2"
}

see() # NAME: whether the command before it succeeded
{
	local status=$? host

	report $status "$1"
	[[ $status != 0 ]] || return
	tail -n 5 "$work/asking" "$work/serving"
	for host in a b; do
		echo "host $host:"
		bare "$host" "$URXE" why --fabric wire
		bare "$host" "$URXE" info --fabric wire
	done
}

over() # PID...
{
	local pid

	for pid; do
		stop "$pid"
	done
}

# A short one, from beginning to end.
short() # NAME
{
	want=''
	next_port
	server=b client=a meet "$1" \
		"$rping" -s -a 0.0.0.0 -p "$port" -C 20 -V -- \
		"$rping" -c -a "$(address b)" -p "$port" -C 20 -V
}

# ------------------------------------------------------- the peer

try_peer()
{
	what='the peer is killed'
	writes
	kill -KILL "$(program $serving)"
	asking_ends '[Ff]ailed status 12' \
		"$what: the other one's WRs fail with RETRY_EXC_ERR"
	over $asking $serving

	# rping's server has nothing under way that could fail
	what='the peer of one who waits is killed'
	keep a
	next_port
	on b rping -s -a 0.0.0.0 -p "$port" -V -v >"$work/serving" 2>&1 &
	serving=$!
	server=b await $serving listens_on b
	LD_PRELOAD=$preloaded on a rping -c -a "$(address b)" -p "$port" -V \
		>"$work/asking" 2>&1 &
	asking=$!
	await $asking said 'ping data' "$work/serving"
	kill -KILL "$(program $asking)"
	await $serving said 'DISCONNECT EVENT' "$work/serving"
	said 'DISCONNECT EVENT' "$work/serving"
	see "$what: it is disconnected"
	over $asking $serving "$keeper"
}

# ------------------------------------------------------- the network

eth0() # up|down
{
	bare b ip link set eth0 "$1"
}

try_link()
{
	what='the interface is down for a moment'
	traffic
	eth0 down
	await $asking somebody_has_lost
	eth0 up
	traffic_goes_on "$what: the traffic goes on"
	over $asking $serving

	what='the interface is down'
	writes
	eth0 down
	asking_ends '[Ff]ailed status 12' \
		"$what: WRs fail with RETRY_EXC_ERR"
	eth0 up
	over $asking $serving
	short "$what, and up again: there are new connections"
}

try_address()
{
	local pid

	what='the address is taken away'
	keep b
	writes
	bare b ip address del 10.91.0.2/24 dev eth0
	asking_ends '[Ff]ailed status 12' \
		"$what: WRs fail with RETRY_EXC_ERR"
	over $asking $serving

	what='there is another address'
	bare b ip address add 10.91.0.3/24 dev eth0
	next_port
	URXE_WIRE=10.91.0.3 bare b "$URXE" run -- "$rping" -s -a 0.0.0.0 \
		-p "$port" -C 20 -V >"$work/serving" 2>&1 &
	serving=$!
	await $serving listens_on b
	over "$keeper"
	await $serving holds b $serving
	on a "$rping" -c -a 10.91.0.3 -p "$port" -C 20 -V \
		>"$work/asking" 2>&1
	see "$what: a new program is reached there"
	wait $serving
	see "$what: and ends well"
	bare b ip address del 10.91.0.3/24 dev eth0
	bare b ip address add 10.91.0.2/24 dev eth0
	short "$what, and the old one again: there are new connections"
}

# ------------------------------------------------------- the holder

try_holder()
{
	local host

	for host in a b; do
		what="the holder of $host is killed"
		keep "$host"
		traffic
		kill -KILL "$(program "$keeper")"
		traffic_goes_on "$what: another one takes over"
		over $asking $serving "$keeper"
	done
}

# What a stopped one is in the middle of waits for it, and nothing else.
try_stopped()
{
	local host pid

	for host in a b; do
		what="the holder of $host is stopped"
		keep "$host"
		traffic
		pid=$(program "$keeper")
		kill -STOP "$pid"
		await $asking replaced "$host" "$pid"
		replaced "$host" "$pid"
		see "$what: another one takes over"
		short "$what: there are new connections"
		kill -CONT "$pid"
		traffic_goes_on "$what: it goes on, and so does the traffic"
		over $asking $serving "$keeper"
	done
}

replaced() # HOST PID
{
	local now

	now=$(reader "$1")
	[[ $now && $now != "$2" ]]
}

for version in ${WIRE_VERSION-4}; do
	for name in "$@"; do
		"try_$name"
	done
done
finish_hosts
