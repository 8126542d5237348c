#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Large messages over a cable with losses: they arrive, at the rate of the cable, and not
# at one packet for each ACK timeout.
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need ib_write_bw rping

# Not a pingpong: see try_pingpong in clients.sh.
want='' # rping prints nothing on success
next_port
meet 'rping -V, 60,000 bytes' \
	"$rping" -s -a 0.0.0.0 -p "$port" -C 30 -V -S 60000 -- \
	"$rping" -c -a "$(address "$server" 4)" -p "$port" -C 30 -V -S 60000

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
