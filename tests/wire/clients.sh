#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# clients.sh NAME...: stock clients of the distribution, between two hosts: pingpong,
# perftest, libfabric, ucx, openmpi; "few" is a selection.  Programs that are not
# installed are omitted.
# shellcheck disable=SC2317,SC2086 # called by name; numbers are words
# shellcheck source=tests/wire/lib.sh
. "$(dirname "$0")/lib.sh"
here_absolute=$(realpath "$here") # this script

has() # COMMAND...
{
	command -v "$@" >/dev/null || {
		echo "not installed: $1"
		return 1
	}
}

declare -A index_of
gid_at() # HOST: its index, looked for once
{
	[[ ${index_of[$1$version]-} ]] ||
		index_of[$1$version]=$(gid_index "$1")
	answer=${index_of[$1$version]}
}

# Message sizes and counts; smaller with a cable that loses packets (WIRE_LOSES)
much=65536
big=1048576
few=20
if [[ ${WIRE_LOSES-} ]]; then
	much=16384
	big=65536
	few=5
fi

# Both ends run the same program, each with the index of its GID, and the client with the
# address of the server.
same() # NAME PATTERN PROGRAM OPTIONS...
{
	local name="$1, IPv$version" index_s index_c

	gid_at "$server"
	index_s=$answer
	gid_at "$client"
	index_c=$answer
	want=$2
	next_port
	meet "$name" "$3" "$gid_option" "$index_s" -p "$port" "${@:4}" -- \
		"$3" "$gid_option" "$index_c" -p "$port" "${@:4}" \
		"$(address "$server" 4)"
}

# ------------------------------------------------------- pingpongs

# One end of a pingpong exits when it has received.  If its last ACK is lost, the other
# end fails, so they are not run over a lossy link.
try_pingpong()
{
	local kind gid_option=-g

	[[ ! ${WIRE_LOSES-} ]] || return 0
	has ibv_rc_pingpong || return
	for kind in rc uc ud srq xsrq; do
		# shellcheck disable=SC2046 # one word or none
		same "ibv_${kind}_pingpong" 'iters in|^success' "ibv_${kind}_pingpong" \
			-n 200 $(checked "$kind")
	done
	same 'ibv_rc_pingpong, 64 KiB' 'iters in' ibv_rc_pingpong -n 50 \
		-s 65537 -c
	same 'ibv_rc_pingpong, events' 'iters in' ibv_rc_pingpong -n 200 -e
	same 'ibv_srq_pingpong, 4 QPs' 'iters in' ibv_srq_pingpong -n 200 \
		-q 4
}

checked() # KIND
{
	[[ $1 == @(rc|uc|ud|srq|xsrq) ]] && "ibv_${1}_pingpong" --help 2>&1 |
		grep -q -- --chk && echo -c
}

# Programs that wait for each datagram hang if one is lost.
lossy() # TRANSPORT
{
	[[ ${WIRE_LOSES-} && ${1,,} == @(uc|ud) ]]
}

# ------------------------------------------------------- perftest

perf() # PROGRAM OPTIONS...
{
	local gid_option=-x

	# the name of the server is resolved to IPv4
	[[ $version == 4 || " $* " != *' -R '* ]] || return 0
	same "$*" '^ *[0-9]+ +[0-9]+ +[0-9.]+' "$1" -F "${@:2}"
}

try_perftest()
{
	local op type

	has ib_write_lat || return
	for op in write read send; do
		perf ib_${op}_lat -n 200
		perf ib_${op}_bw -n 100 -s "$much"
		perf ib_${op}_bw -b -n 100 -s "$much"
		perf ib_${op}_bw -q 8 -n 50 -s 4096
		perf ib_${op}_bw -q 8 -b -n 50 -s 4096
		perf ib_${op}_bw -R -n 100 -s "$much"
		perf ib_${op}_lat -R -n 200
		# up to 8 MiB
		[[ ${WIRE_LOSES-} ]] || perf ib_${op}_lat -a -n 8
		[[ ${WIRE_LOSES-} ]] || perf ib_${op}_bw -a -n 8
	done
	perf ib_atomic_lat -n 200
	perf ib_atomic_bw -n 100 -q 8
	perf ib_atomic_bw -n 200 -A CMP_AND_SWAP
	for type in UC UD; do
		lossy $type && continue
		perf ib_send_lat -c $type -n 300
		perf ib_send_bw -c $type -n 100 -s 1024
	done
	lossy UC || perf ib_write_lat -c UC -n 300
	lossy UC || perf ib_write_bw -c UC -n 100 -s 1024
	lossy UD || perf ib_send_bw -R -c UD -n 100 -s 1024
	perf ib_send_bw --use-srq -n 100 -q 4 -s 4096
	for op in write_lat write_bw send_lat send_bw read_bw atomic_bw; do
		perf ib_$op -c XRC -n 100
	done
}

# ------------------------------------------------------- libfabric

fabric() # PROVIDER ENDPOINT OPTIONS...
{
	want='^(1m|64k) .*[0-9]$'
	next_port
	meet "fi_pingpong, $1 $2 ${*:3}, IPv$version" \
		fi_pingpong -p "$1" -e "$2" -d urxe0 -I "$few" "${@:3}" \
		-S "$big" -B "$port" -- \
		fi_pingpong -p "$1" -e "$2" -d urxe0 -I "$few" "${@:3}" \
		-S "$big" -P "$port" "$(address "$server" 4)"
}

try_libfabric()
{
	[[ $version == 4 ]] || return 0 # it takes the server's name
	has fi_pingpong || return
	fabric verbs msg -c
	fabric 'verbs;ofi_rxm' rdm -c
}

# ------------------------------------------------------- UCX

ucx_perf() # TLS TEST OPTIONS...
{
	local index_s index_c

	gid_at "$server"
	index_s=$answer
	gid_at "$client"
	index_c=$answer
	want='^Final: '
	next_port
	meet "ucx_perftest $*, IPv$version" \
		env UCX_TLS="$1,self" UCX_IB_GID_INDEX="$index_s" \
		ucx_perftest -p "$port" -t "${@:2}" -- \
		env UCX_TLS="$1,self" UCX_IB_GID_INDEX="$index_c" \
		ucx_perftest -p "$port" -t "${@:2}" "$(address "$server" 4)"
}

uct_perf() # TRANSPORT TEST OPTIONS...
{
	ucx_perf rc_v,ud_v "$2" -d urxe0:1 -x "$1" "${@:3}"
}

try_ucx()
{
	local tls t

	has ucx_perftest || return
	ucx_has_verbs || { echo 'not tested: this UCX was built without verbs'; return; }
	export UCX_NET_DEVICES=urxe0:1 UCX_WARN_UNUSED_ENV_VARS=n
	for tls in rc_v ud_v; do
		for t in tag_lat tag_bw ucp_put_lat ucp_put_bw ucp_get; do
			ucx_perf $tls $t -n 200 -w 20 -s 64
		done
		for t in ucp_add ucp_fadd ucp_swap ucp_cswap; do
			ucx_perf $tls $t -n 200 -w 20 -s 8
		done
		ucx_perf $tls tag_bw -n "$few" -w 2 -s "$big"
		ucx_perf $tls tag_lat -n 200 -w 10 -E sleep
	done
	for t in am_lat am_bw; do
		uct_perf rc_verbs $t -n 200 -w 20
		uct_perf ud_verbs $t -n 200 -w 20
	done
}

# ------------------------------------------------------- Open MPI

ranks() # NAME OPTIONS...
{
	local out status=0

	out=$(on a mpirun --host a:1,b:1 -np 2 --mca plm_rsh_agent \
		"$here_absolute/launch" --mca oob_tcp_if_include eth0 \
		--mca orte_tmpdir_base "$work" "${@:2}" \
		python3 "$here_absolute/../clients/mpi.py" $((big * 4)) 2>&1) || status=$?
	if [[ $status == 0 ]] && ! grep -q '^2 ranks, all right$' <<<"$out"
	then
		status='no result'
	fi
	report "$status" "Open MPI, $1"
	[[ $status == 0 ]] || echo "$out"
}

try_openmpi()
{
	local tls

	[[ $version == 4 ]] || return 0 # by the first address
	has mpirun ompi_info || return
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	export UCX_NET_DEVICES=urxe0:1 UCX_WARN_UNUSED_ENV_VARS=n
	gid_at a
	export UCX_IB_GID_INDEX=$answer
	if ompi_info | grep -q 'MCA pml: ucx' && ucx_has_verbs; then
		for tls in rc_v ud_v; do
			ranks "UCX, $tls" --mca pml ucx --mca btl self \
				-x UCX_TLS=$tls,self -x UCX_NET_DEVICES \
				-x UCX_IB_GID_INDEX
		done
	fi
}

try_few()
{
	local gid_option=-g

	[[ $version == 4 ]] || return 0
	same 'ibv_srq_pingpong' 'iters in' ibv_srq_pingpong -n 200
	if has fi_pingpong; then
		fabric 'verbs;ofi_rxm' rdm -c
	fi
	if has ucx_perftest && ucx_has_verbs; then
		export UCX_NET_DEVICES=urxe0:1 UCX_WARN_UNUSED_ENV_VARS=n
		ucx_perf rc_v tag_lat -n 200 -w 20 -s 64
		ucx_perf ud_v ucp_get -n 200 -w 20 -s 4096
	fi
	try_openmpi
}

for version in ${WIRE_VERSION-4 6}; do
	for name in "$@"; do
		"try_$name"
	done
done
finish_hosts
