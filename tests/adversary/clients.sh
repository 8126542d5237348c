#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# clients.sh CMSTAT SEEDS: stock clients, which are correct, while receives are
# posted late, verbs are slow, events come late and too often.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/../clients/lib.sh"
need ibv_rc_pingpong ibv_srq_pingpong rping ucmatose
CMSTAT=$(realpath "$1")
export CMSTAT
cd "$work" || exit 99

knobs=fill=1000,rnr=200,wake=500,async=500,cm=500,slow=20
for ((seed = 1; seed <= $2; seed++)); do
	export URXE_ADVERSARY=$seed,none,$knobs
	want='iters in'
	next_port
	pair "ibv_rc_pingpong -e, seed $seed" \
		ibv_rc_pingpong -g 0 -e -n 300 -p "$port"
	next_port
	pair "ibv_srq_pingpong -e, seed $seed" \
		ibv_srq_pingpong -g 0 -e -n 300 -p "$port"
	want=''
	next_port
	duo "rping -V, seed $seed" rping -s -a 127.0.0.1 -p "$port" -C 50 -V -- \
		sh -c "$rping_client" rping -a 127.0.0.1 -p "$port" -C 50 -V
	want='return status 0$'
	next_port
	duo "ucmatose, seed $seed" ucmatose -c 20 -p "$port" -- \
		ucmatose -c 20 -p "$port" -s 127.0.0.1
done
finish
