#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# uDAPL, over rdma_cm (its provider cma), and over plain verbs with addresses exchanged
# over TCP (scm).  Its third provider, ucm, needs InfiniBand LIDs, which a RoCE port
# does not have.
#
# URXE_DAPL is a list of providers; the default is cma.  scm sometimes loses its
# position in its TCP stream, and then waits forever for data that it has received.
# shellcheck source=tests/apps/lib.sh
. "$(dirname "$0")/lib.sh"
need_packages dapl2-utils libdapl2 -- dtest dtestx dtestcm dtestsrq dapltest
need_address

export DAT_OVERRIDE=$work/dat.conf
{
	common='u2.0 nonthreadsafe default'
	echo "cma $common libdaplofa.so.2 dapl.2.0 \"$address 0\" \"\""
	echo "scm $common libdaploscm.so.2 dapl.2.0 \"urxe0 1\" \"\""
} >"$DAT_OVERRIDE"

# The programs have fixed ports: run only one such test on a machine at a time.
tcp_port()
{
	local i

	port=$1
	for ((i = 0; i < 600; i++)); do
		listening "$port" || return 0
		sleep 0.1
	done
	skip "TCP port $port is in use"
}

test_duo() # PORT WANT PROGRAM PROVIDER OPTION...
{
	local program=("$3" -P "$4" "${@:5}")

	tcp_port "$1"
	want=$2
	duo "${program[*]}" "${program[@]}" -- "${program[@]}" -h "$address"
}

for provider in ${URXE_DAPL:-cma}; do
	test_duo 15828 PASSED dtest $provider -b 65536 -B 10
	test_duo 15828 PASSED dtest $provider -b 4096 -B 10 -c
	test_duo 15828 PASSED dtest $provider -b 4096 -B 10 -p
	test_duo 15828 'immed/atomic test PASSED' dtestx $provider
	test_duo 15828 'Connections: ' dtestcm $provider -c 50
	# scm adds 1000
	service=45248
	[[ $provider == cma ]] || service=46248
	test_duo $service 'SRQ Test Complete' dtestsrq $provider -c 4 -B 10

	# One server for several clients; the last client stops it.
	next_port
	service=$port
	urxe_run dapltest -T S -D $provider -n "$service" >"$work/server" 2>&1 &
	server=$!
	[[ $provider == cma ]] || port=$((service + 1000))
	wait_listening $server
	client() # WANT TEST OPTION...
	{
		local status=0

		urxe_run dapltest -T "$2" -s "$address" -D $provider \
			-n "$service" "${@:3}" >"$work/out" 2>&1 || status=$?
		[[ $status != 0 ]] || grep -q "$1" "$work/out" ||
			status='not what it should print'
		report "$status" "dapltest -T $2 -D $provider ${*:3}"
		[[ $status == 0 ]] || sed 's/^/  /' "$work/out" "$work/server"
	}
	client 'Total RDMA Read' T -V -i 100 -t 2 -w 2 \
		client SR 256 server SR 256 client RW 4096 4 server RR 2048 2
	client '^raw: RW' P -i 100 RW 4096 2
	client '^raw: RR' P -i 100 RR 4096 2
	client . Q
	status=0
	wait $server || status=$?
	report $status "dapltest's server, $provider, exits on request"
	status=0
	urxe_run dapltest -T L -D $provider -w 4 -m 100 >"$work/out" 2>&1 ||
		status=$?
	[[ $status != 0 ]] || grep -q 'OK - stopping now' "$work/out" ||
		status='it did not come to its end'
	report "$status" "dapltest -T L -D $provider"
	[[ $status == 0 ]] || sed 's/^/  /' "$work/out"
done
finish
