#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# rdmacm.sh PROGRAM...: rdmacm-utils and perftest -R, between two hosts
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need rping udaddy ucmatose mckey rstream rcopy cmtime

any()
{
	if [[ $version == 4 ]]; then
		echo 0.0.0.0
	else
		echo ::0
	fi
}

try_rping()
{
	want='' # rping prints nothing on success
	next_port
	meet "rping, IPv$version" "$rping" -s -a "$(any)" -p "$port" -C 200 -V -- \
		"$rping" -c -a "$(address "$server")" -p "$port" -C 200 -V
	next_port
	meet "rping, 30,000 bytes, IPv$version" \
		"$rping" -s -a "$(any)" -p "$port" -C 20 -V -S 30000 -- \
		"$rping" -c -a "$(address "$server")" -p "$port" -C 20 \
		-V -S 30000
}

# The link loses the first DREQs.  The client ends soon, and no process is left on its
# host; yet the server gets one.
try_last_dreq()
{
	want=''
	next_port
	meet 'rping, first DREQs lost' \
		"$rping" -s -a "$(any)" -p "$port" -C 1 -- \
		"$rping" -c -a "$(address "$server")" -p "$port" -C 1
}

try_ucmatose()
{
	want='return status 0$'
	next_port
	meet "ucmatose, 10 connections, IPv$version" \
		ucmatose -b "$(address "$server")" -p "$port" -c 10 -- \
		ucmatose -s "$(address "$server")" -p "$port" -c 10
}

try_udaddy()
{
	want='return status 0$'
	port=7174
	meet "udaddy, IPv$version" udaddy -b "$(address "$server")" -c 3 -- \
		udaddy -s "$(address "$server")" -c 3
}

# the data is verified
try_rstream()
{
	want='sec'
	next_port
	meet "rstream, IPv$version" \
		rstream -b "$(address "$server")" -p "$port" -S 10000 -C 20 -I 20 -T v -- \
		rstream -s "$(address "$server")" -p "$port" -S 10000 -C 20 -I 20 -T v
}

# Like meet, but the server does not exit.
visit() # NAME SERVER... -- CLIENT...
{
	local name=$1 command=() pid status=0
	shift

	while [[ $1 != -- ]]; do
		command+=("$1")
		shift
	done
	shift
	on "$server" "${command[@]}" >"$work/visit" 2>&1 &
	pid=$!
	await $pid listens_on "$server"
	on "$client" "$@" >>"$work/visit" 2>&1 || status=$?
	report $status "$name"
	[[ $status == 0 ]] || cat "$work/visit"
	stop $pid
}

try_rcopy()
{
	local from to

	# rcopy splits HOST:FILE at the first colon, so it cannot use IPv6 addresses; with
	# rxe, the hosts share no writable files
	[[ $version == 4 && ! ${RXE_HOST-} ]] || return
	next_port
	from=$(mktemp -p "$work")
	to=$(mktemp -p "$work")
	head -c 3000001 /dev/urandom >"$from"
	visit "rcopy, IPv$version" rcopy -p "$port" -- \
		rcopy "$from" "$(address "$server"):$to" -p "$port"
	cmp "$from" "$to"
	report $? 'rcopy: the copy is the same'
}

try_cmtime()
{
	next_port
	visit "cmtime, 50 connections, IPv$version" \
		cmtime -b "$(address "$server")" -p "$port" -c 50 -- \
		cmtime -s "$(address "$server")" -p "$port" -c 50
}

# The neighbour is not resolved when the client starts.
try_unresolved()
{
	[[ $client != "${RXE_HOST-}" ]] || return
	want=''
	next_port
	bare "$client" ip neigh flush dev eth0
	meet "rping, unresolved neighbour, IPv$version" \
		"$rping" -s -a "$(any)" -p "$port" -C 20 -V -- \
		"$rping" -c -a "$(address "$server")" -p "$port" -C 20 -V
}

# No process listens, but a socket owner rejects the request.
try_no_listener()
{
	local said pid other

	next_port
	other=$port
	on "$server" rping -s -a "$(any)" -p "$other" >/dev/null 2>&1 &
	pid=$!
	await $pid listens_on "$server"
	next_port
	said=$(on "$client" rping -c -d -a "$(address "$server")" -p "$port" \
		-C 1 2>&1)
	grep -q 'RDMA_CM_EVENT_REJECTED, error 8' <<<"$said"
	report $? "no listener: rejected with reason 8, IPv$version"
	grep -q 'RDMA_CM_EVENT_REJECTED, error 8' <<<"$said" || echo "$said"
	stop $pid
}

# the name of the server is resolved to IPv4
try_perftest()
{
	[[ $version == 4 ]] || return
	want='^ *[0-9]+ +[0-9]+ '
	next_port
	meet "ib_write_bw -R, IPv$version" ib_write_bw -R -p "$port" -n 100 -- \
		ib_write_bw -R -p "$port" -n 100 "$(address "$server")"
}

# The server forks for each test.  The child, the only process with an open device,
# crashes in its second ibv_destroy_qp, before it has disconnected.
try_qperf()
{
	[[ $version == 4 ]] && command -v qperf >/dev/null || return 0
	next_port
	visit "qperf, whose server forks, IPv$version" qperf -lp "$port" -- \
		qperf -lp "$port" "$(address "$server")" -cm 1 -t 1 rc_lat
}

for version in ${WIRE_VERSION-4 6}; do
	for program in "$@"; do
		# over IPv6 only rping and ucmatose; others with URXE_TEST_LONG
		[[ $version == 4 || $program == @(rping|ucmatose|unresolved) ||
			${WIRE_VERSION-}${URXE_TEST_LONG-} ]] || continue
		"try_$program"
	done
done
finish_hosts
