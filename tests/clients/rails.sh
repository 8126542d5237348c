#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Stock programs on the two hosts of eight-hca-host.cluster: topology, perftest over
# each rail, UCX and Open MPI over four rails, libfabric.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
export URXE_CLUSTER=${BASH_SOURCE[0]%/*}/../../examples/clusters/eight-hca-host.cluster

# The server runs on node1, the client on node2.
run_server()
{
	URXE_HOST=node1 urxe_run "$@"
}

run_client()
{
	URXE_HOST=node2 urxe_run "$@"
}

# Set $sent to what each rail has sent from node2, in units of 4 bytes.
read_counters()
{
	read -ra sent < <(run_client sh -c \
		'cat /sys/class/infiniband/mlx5_?/ports/1/counters/port_xmit_data' |
		paste -sd ' ')
}

# used NAME RAILS UNITS: check that node2 has sent UNITS or more over each of these
# rails, and nothing over the others, since $sent was set.
used()
{
	local name=$1 rails=$2 units=$3 rail status=0
	local -a before=("${sent[@]}")

	read_counters
	for rail in {0..7}; do
		if [[ " $rails " == *" $rail "* ]]; then
			((sent[rail] - before[rail] >= units))
		else
			((sent[rail] == before[rail]))
		fi || status="rail $rail: ${before[*]} to ${sent[*]}"
	done
	report "$status" "$name: rails $rails"
}

if command -v lstopo-no-graphics >/dev/null; then
	run_client lstopo-no-graphics --of console >"$work/topology"
	rail=0
	for slot in 18 2a 3a 5d 9a ab ba db; do
		grep -A1 "PCI .*$slot:00.0 (Ethernet)" "$work/topology" |
			grep -q "OpenFabrics \"mlx5_$rail\""
		report $? "lstopo: mlx5_$rail in $slot:00.0"
		rail=$((rail + 1))
	done
fi

if command -v ib_write_bw >/dev/null; then
	# else perftest of Debian 13 creates QPs of NVIDIA's NICs with mlx5dv
	posts=--use_old_post_send
	expected=()
	for rail in {0..7}; do
		n=$((100 + rail))
		next_port
		want="^ *65536 +$n +[0-9.]+" pair "ib_write_bw, rail $rail" \
			ib_write_bw $posts -d mlx5_$rail -F -p "$port" -n $n
		expected+=($((n * 65536 / 4)))
	done
	read_counters
	[[ "${sent[*]}" == "${expected[*]}" ]]
	report $? "each rail has sent its messages: ${sent[*]}"
	next_port
	serve_and_ask "$work/apart" ib_write_bw $posts -d mlx5_3 -F -p "$port" -- \
		ib_write_bw $posts -d mlx5_4 -F -p "$port" localhost
	grep -q 'Failed status 12' "$work/apart.client"
	report $? 'ib_write_bw between two rails: transport retry counter exceeded'
fi

# UCX and libfabric register tens of MiB, and the profile enforces RLIMIT_MEMLOCK as
# NICs do (CAP_IPC_LOCK is bit 14).
may_lock()
{
	local capabilities limit

	limit=$(ulimit -l)
	capabilities=$(sed -n 's/^CapEff:\s*//p' /proc/self/status)
	[[ $limit == unlimited || $limit -ge 262144 ]] ||
		((0x$capabilities >> 14 & 1))
}
if ! may_lock; then
	echo "skipped: UCX, Open MPI and libfabric: ulimit -l is $(ulimit -l) KiB"
	finish
fi
read_counters

# Four rails.  Otherwise UCX uses two paths of an NDR port, and two ports.
export UCX_NET_DEVICES=mlx5_0:1,mlx5_2:1,mlx5_5:1,mlx5_7:1 UCX_IB_NUM_PATHS=1
export UCX_MAX_EAGER_RAILS=4 UCX_MAX_RNDV_RAILS=4 UCX_WARN_UNUSED_ENV_VARS=n
four_rails='0 2 5 7'

# 22 MiB, of which each rail sends a quarter, as the sender writes
tag_bw() # TLS
{
	next_port
	UCX_TLS=$1,self UCX_RNDV_SCHEME=put_zcopy pair "ucx_perftest $1" \
		ucx_perftest -p "$port" -t tag_bw -n 20 -w 2 -s 1048576
	used "ucx_perftest $1" "$four_rails" $((5 << 18))
}

if ucx_has_verbs && command -v ucx_perftest >/dev/null; then
	want='^Final: '
	input_for_ucx
	tag_bw rc_v
	long tag_bw ud_v
	input=/dev/null
fi

two_ranks() # TLS
{
	local program
	program=$(dirname "$0")/mpi.py

	UCX_TLS=$1,self check "Open MPI over $1" '^2 ranks, all right$' \
		mpirun --oversubscribe --mca pml ucx --mca btl self \
		-np 1 -x URXE_HOST=node1 python3 "$program" 1048576 : \
		-np 1 -x URXE_HOST=node2 python3 "$program" 1048576
	used "Open MPI over $1" "$four_rails" 100000
}

if ucx_has_verbs && ompi_info 2>/dev/null | grep -q 'MCA pml: ucx'; then
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	two_ranks rc_v
	long two_ranks ud_v
fi

want='^(1m|4k) .*[0-9]$'
pingpong() # PROVIDER ENDPOINT RAIL DOMAIN
{
	local common=(fi_pingpong -p "$1" -e "$2" -d "$4" -I 20)

	next_port
	duo "fi_pingpong, $1 $2 over $4" "${common[@]}" -B "$port" -- \
		"${common[@]}" -P "$port" 127.0.0.1
	used "fi_pingpong, $1 $2" "$3" 20000
}

# RxM needs network interfaces with the addresses, which do not exist.
if command -v fi_pingpong >/dev/null; then
	pingpong verbs msg 6 mlx5_6
	pingpong verbs dgram 3 mlx5_3-dgram
	long pingpong 'verbs;ofi_rxd' rdm 1 mlx5_1-dgram
fi
finish
