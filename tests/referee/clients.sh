#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Nothing is found in stock programs, and nothing keeps them from their work.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/../clients/lib.sh"
need ibv_rc_pingpong

FOUND=99
checked()
{
	timeout -k 2 "$LIMIT" "$URXE" run --check --exitcode $FOUND -- "$@"
}

# both NAME PROGRAM ARGS... : a server, and a client of it on this machine
both()
{
	local name=$1 server status out tries
	shift

	checked "$@" >/dev/null 2>"$work/server" &
	server=$!
	# until the server listens; what failed for that says so, and did nothing
	for ((tries = 0; tries < 100; tries++)); do
		status=0
		out=$(checked "$@" localhost 2>&1) || status=$?
		[[ $status == 0 || $status == "$FOUND" ]] && break
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	[[ $status == 0 ]] || echo "$out"
	report "$status" "$name, client"
	status=0
	wait "$server" || status=$?
	[[ $status == 0 ]] || cat "$work/server"
	report "$status" "$name, server"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
port=$((20000 + $$ % 20000))
for type in rc uc ud srq; do
	both "ibv_${type}_pingpong" "ibv_${type}_pingpong" -d urxe0 -g 1 \
		-n 200 -p $((port++))
done
both 'ibv_rc_pingpong -e' ibv_rc_pingpong -e -d urxe0 -g 1 -n 200 -p $((port++))
both 'ibv_rc_pingpong -N' ibv_rc_pingpong -N -d urxe0 -g 1 -n 200 -p $((port++))
if command -v ib_send_bw >/dev/null; then
	both ib_send_bw ib_send_bw -d urxe0 -n 100 -p $((port++))
	both ib_read_lat ib_read_lat -d urxe0 -n 100 -p $((port++))
fi
finish
