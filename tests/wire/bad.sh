#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# bad.sh all|perftest
#
# Large messages over a cable with losses: they arrive, at the rate of the cable, and not
# at one packet for each ACK timeout.
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need ib_write_bw

# The client of a pingpong ends when it has received, and may lose the last ACK.
if [[ $1 == all ]]; then
	want='iters in'
	next_port
	meet 'ibv_rc_pingpong, 65536 bytes' \
		ibv_rc_pingpong -g "$(gid_index "$server")" -p "$port" -n 30 -c \
		-s 65536 -- \
		ibv_rc_pingpong -g "$(gid_index "$client")" -p "$port" -n 30 -c \
		-s 65536 "$(address "$server" 4)"
fi

want='^ *[0-9]+ +[0-9]+ '
for operation in write read send; do
	next_port
	meet "ib_${operation}_bw, 65536 bytes" \
		"ib_${operation}_bw" -p "$port" -x "$(gid_index "$server")" \
		-m 1024 -F -s 65536 -n 30 -- \
		"ib_${operation}_bw" -p "$port" -x "$(gid_index "$client")" \
		-m 1024 -F -s 65536 -n 30 "$(address "$server" 4)"
done
finish_hosts
