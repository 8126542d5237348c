#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# rdmacm-utils: connections, datagrams, multicast and rsockets, between two processes
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
need rping ucmatose udaddy rdma_server rdma_client rdma_xserver rdma_xclient \
	cmtime mckey rstream riostream udpong rcopy
cd "$work" || exit 99

# Addresses of this machine; CI machines may have the loopback only.
host=$(ip -4 -o addr show scope global up 2>/dev/null |
	sed -nE '1s/.* inet ([0-9.]+).*/\1/p')
host=${host:-127.0.0.1}
host6=$(ip -6 -o addr show scope global up 2>/dev/null |
	sed -nE '1s/.* inet6 ([0-9a-f:]+).*/\1/p')
[[ $host6 ]] || ! ip -6 -o addr show dev lo 2>/dev/null | grep -q '::1/' ||
	host6=::1

# meet PORT NAME SERVER... -- CLIENT...: like duo, for programs with a fixed port
meet()
{
	port=$1
	shift
	duo "$@"
}

# both NAME COMMAND...: like pair, for commands with -p PORT, and -s ADDRESS for the
# client
both()
{
	local name=$1
	shift

	next_port
	duo "$name" "$@" -p "$port" -- "$@" -p "$port" -s "$host"
}

rping_pair() # NAME ADDRESS ANY OPTIONS...
{
	next_port
	duo "$1" "$rping" -s -a "$3" -p "$port" "${@:4}" -- \
		"$rping" -c -a "$2" -p "$port" "${@:4}"
}

want='' # rping prints nothing on success
rping_pair 'rping, 1000 times, data checked' "$host" 0.0.0.0 -C 1000 -V
long rping_pair 'rping, 10000 times' "$host" 0.0.0.0 -C 10000 -V
rping_pair 'rping by the loopback address' 127.0.0.1 0.0.0.0 -C 10 -V
# before rdma-core 40, rping posts its receive in RESET, which fails
[[ ${RDMA_CORE_RELEASE:-999} =~ ^3 ]] ||
	rping_pair 'rping, its own QP' "$host" 0.0.0.0 -q -C 10
[[ ! $host6 ]] ||
	rping_pair 'rping, IPv6' "$host6" ::0 -C 100 -V

want='return status 0$'
both 'ucmatose, 10 connections' ucmatose -c 10
long both 'ucmatose, 1000 connections' ucmatose -c 1000
both 'ucmatose, migrated ids' ucmatose -m -c 5
both 'ucmatose, port space IB' ucmatose -P ib
both 'ucmatose, ACK timeout and TOS' ucmatose -a 18 -t 8
gid=$(urxe_run cat /sys/class/infiniband/urxe0/ports/1/gids/3)
next_port
duo 'ucmatose, by GID' ucmatose -f gid -b "$gid" -P ib -p "$port" -- \
	ucmatose -f gid -b "$gid" -s "$gid" -P ib -p "$port"
meet 7174 'udaddy' udaddy -c 10 -- udaddy -s "$host" -c 10
[[ ! $host6 ]] || meet 7174 'udaddy, IPv6' udaddy -b "$host6" -- \
	udaddy -s "$host6"

# pair_of NAME SERVER-PROGRAM CLIENT-PROGRAM OPTIONS...
pair_of()
{
	next_port
	duo "$1" "$2" -p "$port" "${@:4}" -- \
		"$3" -p "$port" -s "$host" "${@:4}"
}

want='end 0$'
pair_of 'rdma_client' rdma_server rdma_client
pair_of 'rdma_xclient' rdma_xserver rdma_xclient
pair_of 'rdma_xclient, XRC' rdma_xserver rdma_xclient -c x

# From release 59 on it has other options, and its server exits.
connections()
{
	local status=0 server

	next_port
	if cmtime -h 2>&1 | grep -q -- '-L'; then
		want='^disconnect' duo "cmtime, $1 connections" \
			cmtime -L -b "$host" -C "$host" -p "$port" -c "$1" -- \
			cmtime -b "$host" -C "$host" -p "$port" -c "$1"
		return
	fi
	urxe_run cmtime -p "$port" -c "$1" >"$work/server" 2>&1 &
	server=$!
	wait_listening $server
	urxe_run cmtime -p "$port" -c "$1" -s "$host" >"$work/client" 2>&1 ||
		status=$?
	stop $server
	grep -q '^disconnect' "$work/client" || status='no result'
	report "$status" "cmtime, $1 connections"
	[[ $status == 0 ]] || cat "$work/client"
}
connections 100
long connections 1000

# the receiver waits for ten messages, the sender for its peer
multicast() # NAME OPTIONS...
{
	local name=$1 status=0 server
	shift

	: >"$work/server" # discard the output of the previous test
	urxe_run stdbuf -oL mckey -m 239.1.2.3 -b "$host" "$@" \
		>"$work/server" 2>&1 &
	server=$!
	await $server grep -q joined "$work/server"
	urxe_run mckey -m 239.1.2.3 -b "$host" "$@" -s >"$work/client" 2>&1 ||
		status=$?
	wait $server || status=$?
	grep -q 'return status 0$' "$work/server" || status='no result'
	report "$status" "$name"
	[[ $status == 0 ]] || cat "$work/server" "$work/client"
}
multicast mckey
if mckey -h 2>&1 | grep -q -- '-l join'; then
	multicast 'mckey, no loopback' -l
fi

want='^custom '
both 'rstream, data checked' rstream -T v -S 1000 -C 1000
both 'rstream, nonblocking' rstream -T n -T v -S 65536 -C 100
both 'rstream, served by a child' rstream -T f -S 1000 -C 1000
both 'rstream, resolved by rdma_cm' rstream -T r -S 1000 -C 1000
both 'riostream, data checked' riostream -T v -S 1000 -C 1000
# Not all sizes of riostream: it polls memory in a loop without any call, so with fewer
# idle CPUs than processes each of its more than 100,000 messages takes a time slice.
for size in 64 4096 65536 1048576; do
	both "riostream, $size bytes" riostream -S $size -C 100
done
want='^1m_bw '
long both 'rstream, all sizes' rstream

want=''
head -c 3000000 /dev/urandom >data
next_port
urxe_run rcopy -p "$port" >"$work/server" 2>&1 &
server=$!
wait_listening $server
urxe_run rcopy data "$host:$work/copy" -p "$port" >"$work/client" 2>&1 &&
	cmp data copy
report $? 'rcopy'
stop $server
finish
