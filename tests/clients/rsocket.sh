#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# TCP programs with librspreload: their data goes over RDMA only, not over TCP.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
need iperf nc.traditional
cd "$work" || exit 99
rspreload=$(find /usr/lib /usr/lib64 -name librspreload.so 2>/dev/null |
	head -n 1)
if [[ ! $rspreload || ! ${CMSTAT-} ]]; then
	echo 'skipped: librspreload is not installed'
	exit 77
fi

rs()
{
	# shellcheck disable=SC2016 # the inner shell expands them
	urxe_run sh -c 'LD_PRELOAD=$LD_PRELOAD:$0 exec "$@"' "$rspreload" "$@"
}

# Check that the connection uses rdma_cm, and not TCP.
only_cm()
{
	wait_listening "$1"
	cm_listening "$port" && ! listening "$port"
}

next_port
status=0
rs iperf -s -P 1 -p "$port" >server 2>&1 &
server=$!
only_cm $server || status='it does not listen by rdma_cm'
rs iperf -c 127.0.0.1 -p "$port" -n 100M >client 2>&1 || status=$?
wait $server || status=$?
grep -q 'bits/sec' client || status='no result'
report "$status" iperf
[[ $status == 0 ]] || cat server client

next_port
status=0
head -c 3000000 /dev/urandom >data
# nc exits at the end of its standard input
mkfifo input
exec 3<>input
rs nc.traditional -l -p "$port" <input >copy 3<&- &
server=$!
only_cm $server || status='it does not listen by rdma_cm'
rs nc.traditional -q 1 127.0.0.1 "$port" <data 3<&- || status=$?
exec 3<&-
wait $server || status=$?
cmp data copy || status='the data came otherwise'
report "$status" nc
finish
