#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# perftest.sh OPERATION...: perftest between two hosts: "write RC", "send UD".
# It does not check data.  Latencies are measured for SEND and WRITE over RC, and for
# the other operations with URXE_TEST_LONG or WIRE_VERSION.
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
need ib_write_bw

want='^ *[0-9]+ +[0-9]+ '
perftest() # PROGRAM CONNECTION OPTIONS...
{
	local name="$1 $2 ${*:3}, IPv$version"

	next_port
	meet "$name" "$1" -c "$2" -p "$port" -x "$(gid_index "$server")" -F "${@:3}" -- \
		"$1" -c "$2" -p "$port" -x "$(gid_index "$client")" -F "${@:3}" \
		"$(address "$server" 4)"
}

for version in ${WIRE_VERSION-4 6}; do
	for what in "$@"; do
		# "./check --long wire" runs all of them over IPv6
		[[ $version == 4 || $what == 'send RC' || ${WIRE_VERSION-} ]] ||
			continue
		read -r operation connection <<<"$what"
		# rxe offers 128 outstanding READs, and each end uses the value of the other
		fetches=()
		[[ $operation != @(read|atomic) ]] || fetches=(-o 16)
		[[ $what != @(send|write)' RC' &&
			! ${WIRE_VERSION-}${URXE_TEST_LONG-} ]] ||
			perftest "ib_${operation}_lat" "$connection" \
				"${fetches[@]}" -n 500
		# it takes one completion for each event, so events must be in order
		[[ $what != 'send RC' ]] || perftest ib_send_lat RC -e -n 500
		n=200 large=10
		# A lost packet of UC is not repeated, and perftest waits for it.  So
		# send no more than the buffer of a socket takes while the receiver
		# does not run.  The test "paced" of wire-requester-uc checks the pace.
		[[ $connection != UC ]] || n=30 large=5
		perftest "ib_${operation}_bw" "$connection" "${fetches[@]}" -n $n
		[[ $operation != atomic && $connection != UD ]] || continue
		perftest "ib_${operation}_bw" "$connection" "${fetches[@]}" \
			-n $large -s 1048577
	done
done
finish_hosts
