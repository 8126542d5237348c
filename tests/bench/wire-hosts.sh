#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# perftest between two hosts, compared with plain UDP in the same run: GSO to GRO
# without verbs, iperf3 -u, and ping-pongs of 8 bytes.  A MB in the output of perftest
# is 2^20 bytes.  As root:
#   tests/wire/hosts BUILD/tools/urxe tests/bench/wire-hosts.sh BUILD [SECONDS]
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/../wire/lib.sh"
bench=$(realpath "$1")/tests/bench/urxe-bench-wire
seconds=${2:-3}
need ib_write_bw
need iperf3

a=$(address a 4)
b=$(address b 4)
for kind in '' bare-; do
	bare b "$bench" "${kind}receive" "$b" &
	sleep 0.5 # until the receiver listens
	bare a "$bench" "${kind}send" "$a" "$b" 1 4096
	wait
done
for kind in '' bare- poll-; do
	bare b "$bench" "${kind}pong" "$b" &
	sleep 0.5
	bare a "$bench" "${kind}ping" "$a" "$b" 1
	wait
done

bare b iperf3 -s -1 -B "$b" >/dev/null &
sleep 0.5
bare a iperf3 -u -b 0 -l 4120 -t "$seconds" -c "$b" | grep -E 'sender|receiver'
wait

# perf PROGRAM OPTIONS...: print its line of results, and the CPU seconds of both hosts
perf()
{
	next_port
	(
		on b "$1" -F -p "$port" -x "$(gid_index b)" -m 4096 "${@:2}" >/dev/null 2>&1
		times
	) >"$work/cpu" &
	until listens_on b; do sleep 0.05; done
	(
		on a "$1" -F -p "$port" -x "$(gid_index a)" -m 4096 "${@:2}" "$b" |
			grep -E '^ *[0-9]+ +[0-9]+ '
		times
	) | sed '2d; 3s/^/  CPU of a: /'
	wait
	sed '1d; 2s/^/  CPU of b: /' "$work/cpu"
}
for program in ib_write_bw ib_send_bw ib_read_bw; do
	echo "$program"
	perf "$program" -s 65536 -D "$seconds" -f 0
done
for program in ib_write_lat ib_send_lat; do
	echo "$program"
	perf "$program" -s 8 -n 5000
done
