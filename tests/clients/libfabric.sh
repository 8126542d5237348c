#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The verbs provider of libfabric: it lists the device, and fi_pingpong runs between
# two processes over its endpoints: msg, dgram, and rdm layered on each.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
need fi_info fi_pingpong

status=0
urxe_run fi_info -p verbs >"$work/info" 2>&1 || status=$?
report $status fi_info
for line in 'domain: urxe0$' 'type: FI_EP_MSG$' 'type: FI_EP_DGRAM$' \
	'provider: verbs;ofi_rxm$'; do
	grep -qE "$line" "$work/info"
	report $? "fi_info: $line"
done

# With RxM each process creates a CQ for FI_UNIVERSE_SIZE peers, by default 256: 262144
# entries, 34 MiB of shared memory.
free_mib=$(df --output=avail -m "$URXE_DIR" | tail -n 1)
if [[ $free_mib -lt 96 && ! ${FI_UNIVERSE_SIZE-} ]]; then
	echo "RxM for 16 peers: $URXE_DIR has only $free_mib MiB"
	export FI_UNIVERSE_SIZE=16
fi

# the last line of the table
want='^(1m|4k) .*[0-9]$'
pingpong() # PROVIDER ENDPOINT DOMAIN [OPTIONS...]
{
	local common=(fi_pingpong -p "$1" -e "$2" -d "$3" -I 20 "${@:4}")

	next_port
	duo "fi_pingpong, $1 $2 ${*:4}" "${common[@]}" -B "$port" -- \
		"${common[@]}" -P "$port" 127.0.0.1
}

pingpong verbs msg urxe0
pingpong verbs msg urxe0 -c
pingpong verbs dgram urxe0-dgram
pingpong 'verbs;ofi_rxm' rdm urxe0
pingpong 'verbs;ofi_rxm' rdm urxe0 -c
pingpong 'verbs;ofi_rxd' rdm urxe0-dgram
finish
