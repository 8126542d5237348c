#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Each pingpong program of libibverbs, between two processes
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/../clients/lib.sh"
want='iters in|^success'

kind_has() # OPTION
{
	ibv_${kind}_pingpong --help 2>&1 | grep -q -- " $1,"
}

for kind in rc uc ud srq xsrq; do
	command -v ibv_${kind}_pingpong >/dev/null || continue
	for options in '' -e -o -O -t -c -j -N -U '-U -e' '-U -N'; do
		[[ ! $options ]] || kind_has "${options%% *}" || continue
		[[ $kind$options != xsrq-c ]] || continue # clients
		# 100 messages; -n has another meaning for xsrq
		[[ $kind == xsrq ]] || options="-n 100 $options"
		next_port
		# shellcheck disable=SC2086 # the options are words
		pair "ibv_${kind}_pingpong $options" ibv_${kind}_pingpong \
			-g 0 -p "$port" $options
	done
done
if [[ $((passed + failed)) == 0 ]]; then
	echo "skipped: no ibv_*_pingpong is installed"
	exit 77
fi
finish
