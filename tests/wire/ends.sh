#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# ends.sh NAME...: a process or the network fails or stops during traffic between two
# hosts.  Traffic that must continue is that of rping -V, which checks the data.
# shellcheck disable=SC2317,SC2086 # called by name; numbers are words
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need rping ib_write_bw ip pgrep
patience=${WIRE_PATIENCE-}
[[ $patience ]] || {
	echo "skipped: the headers of librdmacm are not installed"
	exit 77
}

# The library of a sanitizer remains the first one.
preloaded=${LD_PRELOAD:+$LD_PRELOAD:}$patience

# Print the number of packets that a host has received.
packets() # HOST
{
	bare "$1" "$URXE" info --fabric wire 2>/dev/null |
		sed -nE 's/.*\brcvd_pkts ([0-9]+).*/\1/p' | grep . || echo 0
}

# Wait until HOST has received N more packets; fail if the program has ended.
still_transfers() # HOST N PID
{
	local from

	from=$(packets "$1")
	await "$3" has_received "$1" $((from + $2))
	has_received "$1" $((from + $2))
}

# Check whether a request of that host had an ACK timeout.
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

# Print the PID of the socket owner of a host, in its PID namespace.
reader() # HOST
{
	bare "$1" "$URXE" info --fabric wire 2>/dev/null |
		sed -nE 's/.*socket owner is PID ([0-9]+) .*/\1/p'
}

said() # PATTERN FILE
{
	grep -qE -- "$1" "$2"
}

ended() # PID
{
	! kill -0 "$1" 2>/dev/null
}

listen_on() # HOST: start rping for all addresses; its PID is in $listener
{
	on "$1" rping -s -P -a 0.0.0.0 -p "$port" -V >"$work/listener.$1" 2>&1 &
	listener=$!
	server=$1 await $listener listens_on "$1"
}

# Start a listener without connections, which becomes the socket owner.
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

# rping between the hosts: $serving on b, $asking on a, with ACK timeouts of seconds
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
	still_transfers b 50 $asking && still_transfers a 50 $asking
	see "$what: traffic has started"
}

# ib_write_bw, whose client always has outstanding WRs
writes()
{
	perftest ib_write_bw --run_infinitely
}

perftest() # PROGRAM OPTION...
{
	next_port
	on b "$1" -F -x "$(gid_index b)" -p "$port" "${@:2}" \
		>"$work/serving" 2>&1 &
	serving=$!
	server=b await $serving listens_on b
	on a "$1" -F -x "$(gid_index a)" -p "$port" "${@:2}" \
		"$(address b 4)" >"$work/asking" 2>&1 &
	asking=$!
	still_transfers b 50 $asking && still_transfers a 50 $asking
	see "$what: traffic has started"
}

traffic_goes_on() # NAME
{
	still_transfers b 200 $asking && still_transfers a 200 $asking
	see "$1"
}

# Check that the output of the client matches PATTERN.
asking_ends() # PATTERN NAME
{
	await $asking said "$1" "$work/asking"
	said "$1" "$work/asking"
	see "$2"
}

see() # NAME: report whether the previous command succeeded
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

# A short run of rping
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
		"$what: WRs of the client fail with RETRY_EXC_ERR"
	over $asking $serving

	# the server of rping has no outstanding WRs that could fail
	what='the peer of a waiting program is killed'
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
	see "$what: the server is disconnected"
	over $asking $serving "$keeper"
}

# The peer does not answer while it is stopped.
try_peer_stopped()
{
	what='the peer is stopped for a short time'
	traffic
	kill -STOP "$(program $serving)"
	await $asking has_lost a
	kill -CONT "$(program $serving)"
	traffic_goes_on "$what: the traffic continues"
	over $asking $serving

	what='the peer is stopped'
	writes
	kill -STOP "$(program $serving)"
	asking_ends '[Ff]ailed status 12' \
		"$what: WRs fail with RETRY_EXC_ERR"
	kill -CONT "$(program $serving)"
	over $asking $serving
	short "$what, and continued: new connections work"
}

# Packets for the killed program reach the host, which has a new program.
try_restarted()
{
	local old old_server

	what='the peer is restarted'
	writes
	old=$asking
	old_server=$serving
	mv "$work/asking" "$work/old"
	kill -KILL "$(program $serving)"
	await $old ended "$(program $old_server)"
	writes
	await $old said '[Ff]ailed status 12' "$work/old"
	said '[Ff]ailed status 12' "$work/old"
	see "$what: WRs for the killed one fail with RETRY_EXC_ERR"
	traffic_goes_on "$what: WRs for the new one are executed"
	over $old $old_server $asking $serving
}

# All programs of both hosts are killed.
try_both()
{
	local host pid

	what='all programs of both hosts are killed'
	writes
	kill -KILL "$(program $serving)" "$(program $asking)"
	over $asking $serving
	short "$what: new connections work"
	what='both interfaces are down for a short time'
	traffic
	for host in a b; do
		bare $host ip link set eth0 down
	done
	await $asking somebody_has_lost
	for host in a b; do
		bare $host ip link set eth0 up
	done
	traffic_goes_on "$what: the traffic continues"
	over $asking $serving
}

# ------------------------------------------------------- the network

eth0() # up|down
{
	bare b ip link set eth0 "$1"
}

try_link()
{
	what='the interface is down for a short time'
	traffic
	eth0 down
	await $asking somebody_has_lost
	eth0 up
	traffic_goes_on "$what: the traffic continues"
	over $asking $serving

	what='the interface is down'
	writes
	eth0 down
	asking_ends '[Ff]ailed status 12' \
		"$what: WRs fail with RETRY_EXC_ERR"
	eth0 up
	over $asking $serving
	short "$what, and up again: new connections work"
}

try_address()
{
	local pid

	what='the address is removed'
	keep b
	writes
	bare b ip address del 10.91.0.2/24 dev eth0
	asking_ends '[Ff]ailed status 12' \
		"$what: WRs fail with RETRY_EXC_ERR"
	over $asking $serving

	what='another address is added'
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
	see "$what: a new program is reached at that address"
	wait $serving
	see "$what: the program succeeds"
	bare b ip address del 10.91.0.3/24 dev eth0
	bare b ip address add 10.91.0.2/24 dev eth0
	short "$what, and the old one again: new connections work"
}

# ARP requests are not answered.
try_arp()
{
	what='ARP is lost for a short time'
	traffic
	arp off
	await $asking has_lost a
	arp on
	traffic_goes_on "$what: the traffic continues"
	over $asking $serving

	what='ARP is lost'
	writes
	arp off
	await $asking unresolved a
	unresolved a
	see "$what: urxe why reports it"
	asking_ends '[Ff]ailed status 12' \
		"$what: WRs fail with RETRY_EXC_ERR"
	arp on
	over $asking $serving
	short "$what, and answered again: new connections work"
}

arp() # off|on
{
	bare b ip link set eth0 arp "$1"
	bare a ip neigh flush dev eth0
}

unresolved() # HOST
{
	bare "$1" "$URXE" why --fabric wire |
		grep -q 'the address of .* does not resolve'
}

# ------------------------------------------------------- the socket owner

# Check that all threads of a process are stopped.
is_stopped() # PID
{
	! grep -hE '^State:' "/proc/$1"/task/*/status | grep -qv 'T (stopped)'
}

# Stop a socket owner that executes no packet: otherwise packets for that QP are dropped
# while the owner is stopped.
stop_between_packets() # HOST PID
{
	while kill -STOP "$2"; do
		await "$2" is_stopped "$2"
		bare "$1" "$CMSTAT" "$URXE_DIR/$URXE_FABRIC" executes "$2" ||
			break
		kill -CONT "$2"
	done
}

# Kill it: a connection is lost if its request is being executed (docs/deviations.md).
kill_between_packets() # HOST PID
{
	stop_between_packets "$@"
	kill -KILL "$2"
}

try_holder()
{
	local host

	for host in a b; do
		what="the socket owner of $host is killed"
		keep "$host"
		traffic
		kill_between_packets "$host" "$(program "$keeper")"
		traffic_goes_on "$what: another process takes over"
		over $asking $serving "$keeper"
	done
}

# Only the QP of the packet that the stopped owner executes has to wait.
try_stopped()
{
	local host pid

	for host in a b; do
		what="the socket owner of $host is stopped"
		keep "$host"
		traffic
		pid=$(program "$keeper")
		kill -STOP "$pid"
		await $asking replaced "$host" "$pid"
		replaced "$host" "$pid"
		see "$what: another process takes over"
		short "$what: new connections work"
		kill -CONT "$pid"
		traffic_goes_on "$what: after SIGCONT the traffic continues"
		over $asking $serving "$keeper"
	done
}

# Two pairs of processes poll.  Those that started first receive for both.
try_pollers()
{
	local program first second

	for program in ib_send_lat ib_write_lat; do
		what="$program receives for another process, is stopped"
		perftest "$program" -n 5000000 -u 18
		first=($asking $serving)
		await $serving holds b $serving
		perftest "$program" -n 5000000 -u 18
		second=($asking $serving)
		holds b "${first[1]}"
		see "$what: the first process is the socket owner"
		stop_between_packets b "$(program "${first[1]}")"
		traffic_goes_on "$what: the other process receives"
		kill -CONT "$(program "${first[1]}")"
		asking=${first[0]}
		over "${second[@]}"
		traffic_goes_on "$what: after SIGCONT its traffic continues"

		what="$program receives for another process, is killed"
		perftest "$program" -n 5000000 -u 18
		kill_between_packets b "$(program "${first[1]}")"
		traffic_goes_on "$what: the other process receives"
		over "${first[@]}" $asking $serving
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
