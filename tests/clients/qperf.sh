#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The RC tests of qperf, between two processes.  On Ethernet qperf needs rdma_cm to
# connect, which it supports for RC only.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
need qperf

next_port
urxe_run qperf -lp "$port" >"$work/server" 2>&1 &
server=$!
wait_listening $server

measure() # TEST
{
	local status=0 out

	out=$(urxe_run qperf -lp "$port" localhost -cm 1 -t 1 "$1" 2>&1) ||
		status=$?
	if [[ $status == 0 ]] &&
		! grep -qE '^ +(latency|bw|send_bw|msg_rate) +=' <<<"$out"; then
		status='no result'
	fi
	report "$status" "qperf $1"
	[[ $status == 0 ]] || echo "$out"
}

# each test takes a second
for test in rc_bi_bw rc_rdma_write_poll_lat ver_rc_compare_swap; do
	measure $test
done
for test in ver_rc_fetch_add rc_lat rc_bw rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_lat rc_rdma_write_bw \
	rc_compare_swap_mr rc_fetch_add_mr; do
	long measure $test
done
urxe_run qperf -lp "$port" localhost quit
report $? 'qperf quit'
status=0
wait $server || status=$?
report $status 'the server of qperf'
cat "$work/server"
finish
