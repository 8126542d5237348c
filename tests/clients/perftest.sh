#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# perftest.sh lat|bw|types: Debian's perftest between two processes: RC; with "types"
# the other transports, SRQ, multicast and rdma_cm.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
need ib_write_lat ib_write_bw ib_read_lat ib_read_bw ib_send_lat ib_send_bw \
	ib_atomic_lat ib_atomic_bw

# pattern of a line of results
want='^ *[0-9]+ +[0-9]+ +[0-9.]+'

perf() # PROGRAM OPTIONS...
{
	local prog=$1
	shift

	next_port
	pair "$prog $*" "$prog" -d urxe0 -F -p "$port" "$@"
}

what=$1

if [[ $what == types ]]; then
	for type in UC UD XRC; do
		perf ib_send_lat -c $type -n 500
		perf ib_send_bw -c $type -n 500 -s 2048
		long perf ib_send_bw -c $type -n 500 -s 64 -e
	done
	long perf ib_write_lat -c UC -n 500
	perf ib_write_bw -c UC -n 500
	for op in write_lat read_lat write_bw; do
		long perf ib_$op -c XRC -n 500
	done
	for op in read_bw atomic_bw; do
		perf ib_$op -c XRC -n 500
	done
	long perf ib_send_bw --use-srq -n 500
	perf ib_send_bw --use-srq -n 500 -q 4
	# the GID of a multicast group is not IPv4-mapped, so the port's must not be either
	long perf ib_send_bw -c UD -g -x 0 -n 500 -s 1024
	perf ib_send_bw -c UD -g -x 1 -n 500 -s 1024
	perf ib_write_bw -R -n 500
	for op in read_bw send_bw send_lat; do
		long perf ib_$op -R -n 500
	done
	perf ib_send_bw -R -c UD -n 500 -s 1024
	finish
fi

for op in write read send; do
	if [[ $what == lat ]]; then
		perf ib_${op}_lat -n 1000
		long perf ib_${op}_lat -a -n 8
	else
		perf ib_${op}_bw -n 500 -q 4
		long perf ib_${op}_bw -n 1000
		long perf ib_${op}_bw -a -n 8
		long perf ib_${op}_bw -n 500 -b
		long perf ib_${op}_bw -n 500 -b -q 4 -s 2
	fi
done
long perf "ib_atomic_$what" -n 1000
perf "ib_atomic_$what" -n 1000 -A CMP_AND_SWAP

# with completion events, if the program supports them
for op in read write atomic; do
	if "ib_${op}_$what" --help 2>&1 | grep -q -- '--events'; then
		long perf "ib_${op}_$what" -n 500 -e
	fi
done
perf "ib_send_$what" -n 500 -e

# several QPs, smallest and largest messages, MTUs, another GID
if [[ $what == lat ]]; then
	long perf ib_write_lat -n 500 -I 0
	long perf ib_send_lat -n 500 -s 1
	long perf ib_write_lat -n 500 -x 0
	if has_gid 3; then
		perf ib_write_lat -n 500 -x 3
	fi
else
	long perf ib_atomic_bw -n 500 -q 4
	perf ib_atomic_bw -n 500 -b
	long perf ib_write_bw -n 100 -s 1
	long perf ib_send_bw -n 100 -s 1
	perf ib_write_bw -n 20 -s 1048576 -m 256
	long perf ib_send_bw -n 20 -s 1048576 -m 4096
	perf ib_send_bw -n 500 -r 8 -t 4
	perf ib_write_bw -n 800 -t 32 -l 8
fi
finish
