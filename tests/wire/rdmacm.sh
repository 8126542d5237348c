#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# rdmacm.sh PROGRAM...: rdmacm-utils between two hosts, and perftest -R.
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need rping udaddy ucmatose mckey

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
	want='' # rping says nothing when all is well
	next_port
	meet "rping, IPv$version" rping -s -a "$(any)" -p "$port" -C 200 -V -- \
		sh -c "$rping_client" rping -a "$(address "$server")" -p "$port" -C 200 -V
	next_port
	meet "rping, 30,000 bytes, IPv$version" \
		rping -s -a "$(any)" -p "$port" -C 20 -V -S 30000 -- \
		sh -c "$rping_client" rping -a "$(address "$server")" -p "$port" -C 20 \
		-V -S 30000
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

# Nobody listens there, but somebody is there to say so.
try_nobody()
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
	report $? "nobody listens: rejected with reason 8, IPv$version"
	grep -q 'RDMA_CM_EVENT_REJECTED, error 8' <<<"$said" || echo "$said"
	stop $pid
}

# its server's name is one of IPv4
try_perftest()
{
	[[ $version == 4 ]] || return
	want='^ *[0-9]+ +[0-9]+ '
	next_port
	meet "ib_write_bw -R, IPv$version" ib_write_bw -R -p "$port" -n 100 -- \
		ib_write_bw -R -p "$port" -n 100 "$(address "$server")"
}

for version in ${WIRE_VERSION-4 6}; do
	for program in "$@"; do
		"try_$program"
	done
done
finish_hosts
