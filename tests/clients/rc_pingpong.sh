#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# ibv_rc_pingpong between two processes
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
need ibv_rc_pingpong

help=$(ibv_rc_pingpong --help 2>&1)
want='iters in'

pingpong() # OPTIONS...
{
	next_port
	pair "ibv_rc_pingpong $*" ibv_rc_pingpong -p "$port" "$@"
}

pingpong -g 0
pingpong -g 0 -e
# after an event it arms and polls; it fails without a completion
if grep -q -- --ts <<<"$help"; then
	pingpong -g 0 -e -t
	for _ in {2..7}; do
		long pingpong -g 0 -e -t
	done
fi
long pingpong -g 0 -n 100000
long pingpong -g 0 -s 1
pingpong -g 0 -s 1048576
pingpong -g 0 -m 256
pingpong -g 0 -m 4096 -r 1
pingpong -g 0 -d urxe0 -i 1
if grep -q -- --chk <<<"$help"; then
	long pingpong -g 0 -c
	pingpong -g 0 -c -e -s 100000
	long pingpong -g 0 -c -s 17 -n 20000
fi
if grep -q -- --dm <<<"$help"; then
	pingpong -g 0 -j
	pingpong -g 0 -j -e
fi
pingpong -g 1
if has_gid 3; then
	pingpong -g 3
fi

# two pairs at once
next_port
pair 'first of two pairs' ibv_rc_pingpong -g 0 -n 2000 -p "$port" \
	>"$work/first" &
first=$!
next_port
port=$((port + 1)) # the other pair has not bound its port yet
pair 'second of two pairs' ibv_rc_pingpong -g 0 -n 2000 -p "$port"
wait $first
cat "$work/first"
if grep -q FAILED "$work/first"; then
	failed=$((failed + 1))
else
	passed=$((passed + 1))
fi
finish
