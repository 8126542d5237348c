#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# pingpong.sh KIND...: the pingpong programs of libibverbs between two hosts, over IPv4
# and IPv6, with small and large messages; the data is checked.
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need ibv_rc_pingpong

want='iters in|^success'
pingpong() # KIND SIZE MTU
{
	local index_c index_s

	next_port
	index_c=$(gid_index "$client")
	index_s=$(gid_index "$server")
	meet "$1, $2 bytes, path MTU $3, IPv$version" \
		"ibv_$1_pingpong" -g "$index_s" -p "$port" -n 200 -c \
		-s "$2" -m "$3" -- \
		"ibv_$1_pingpong" -g "$index_c" -p "$port" -n 200 -c \
		-s "$2" -m "$3" "$(address "$server" 4)"
}

# for datagrams, the path MTU is that of the port
datagrams() # SIZE
{
	next_port
	meet "ud, $1 bytes, IPv$version" \
		ibv_ud_pingpong -g "$(gid_index "$server")" -p "$port" -n 200 -c -s "$1" -- \
		ibv_ud_pingpong -g "$(gid_index "$client")" -p "$port" -n 200 -c -s "$1" \
		"$(address "$server" 4)"
}

# checks the number of bytes only, not the data
xsrq() # SIZE
{
	next_port
	meet "xsrq, $1 bytes, IPv$version" \
		ibv_xsrq_pingpong -g "$(gid_index "$server")" -p "$port" -n 200 -s "$1" -- \
		ibv_xsrq_pingpong -g "$(gid_index "$client")" -p "$port" -n 200 -s "$1" \
		"$(address "$server" 4)"
}

for version in ${WIRE_VERSION-4 6}; do
	for kind in "$@"; do
		if [[ $kind == ud ]]; then
			datagrams 1
			datagrams 1000
			continue
		fi
		if [[ $kind == xsrq ]]; then
			xsrq 1
			xsrq 65537
			continue
		fi
		pingpong "$kind" 1 1024
		pingpong "$kind" 4096 1024
		pingpong "$kind" 65537 1024
	done
done
finish_hosts
