#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# lib.sh with a client that is too early, or that fails: no process waits for the
# other one.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"

# in_turn WHO WORD...: the program WHO, whose behaviour in each run is the next WORD
# shellcheck disable=SC2317 # lib.sh calls it
in_turn() # WHO WORD...
{
	local who=$1 turn=0
	shift

	[[ ! -e $work/$who ]] || turn=$(<"$work/$who")
	echo $((turn + 1)) >"$work/$who"
	set -- "${@:turn + 1:1}"
	case $1 in
	rejected) echo 'Unexpected CM event bl blka 8'; return 139 ;;
	event) echo 'Event: RDMA_CM_EVENT_REJECTED; error: 8.'; return 1 ;;
	refused) echo 'Event: RDMA_CM_EVENT_REJECTED; error: 28.'; return 1 ;;
	hangs)
		echo 'Unexpected CM event bl blka 8'
		timeout 3600 sleep infinity
		;;
	waits) timeout 3600 sleep infinity ;;
	late) # no child process exists when the client fails
		turn=$((${EPOCHREALTIME/[.,]/} + 300000))
		while ((${EPOCHREALTIME/[.,]/} < turn)); do
			:
		done
		timeout 3600 sleep infinity
		;;
	fails) return 1 ;;
	works) ;;
	*) echo "turn $turn: not expected"; return 1 ;;
	esac
}

# shellcheck disable=SC2317
run_server()
{
	in_turn server "$@"
}

# shellcheck disable=SC2317
run_client()
{
	in_turn client "$@"
}

# shellcheck disable=SC2317
server_listens()
{
	[[ -e $work/server ]]
}

runs() # NAME STATUS TURNS SERVER... -- CLIENT...
{
	local status=0

	rm -f "$work/server" "$work/client"
	serve_and_ask "$work/out" "${@:4}" || status=$?
	[[ $status == "$2" && $(<"$work/client") == "$3" ]]
	report $? "$1"
}

runs 'no failure' 0 1 works -- works
runs 'too early once' 0 2 waits works -- rejected works
runs 'too early, other message' 0 3 waits waits works -- event rejected works
runs 'too early, and the client hangs' 0 2 waits works -- hangs works
runs 'rejected for another reason' 1 1 waits -- refused
runs 'the client fails' 1 1 waits -- fails
runs 'the client fails before the server has started' 1 1 late -- fails
runs 'the server fails' 1 1 fails -- works
finish
