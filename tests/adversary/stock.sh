#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# stock.sh [-c CMSTAT] [-n SEEDS] [-f FIRST] [-k KNOBS] [-v] [GROUP...]
#
# Stock programs under the adversary, each with the seeds FIRST (1) to
# FIRST+SEEDS-1 (2): its data is right, and it ends.  The groups are pingpong,
# rping, cm, perftest, ucx, libfabric, fio and openmpi, and few, which are some of
# the first three; without one the first two.  What is not installed is skipped.
#
# KNOBS are as in URXE_ADVERSARY, for all programs.  A knob behind a name is
# turned off for that program, which counts on what the knob takes away:
# docs/adversary.md says why.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/../clients/lib.sh"

LIMIT=${URXE_TEST_LIMIT:-120}
CMSTAT=${CMSTAT-}
seeds=2
first=1
all_knobs=
verbose=
while getopts c:n:f:k:v option; do
	case $option in
	c) CMSTAT=$(realpath "$OPTARG") ;;
	n) seeds=$OPTARG ;;
	f) first=$OPTARG ;;
	k) all_knobs=,$OPTARG ;;
	v) verbose=1 ;;
	*) sed -n 's/^# //p' "$0" | sed -n '2,9p'; exit 2 ;;
	esac
done
export CMSTAT
shift $((OPTIND - 1))
groups=("$@")
[[ ${groups[*]} ]] || groups=(pingpong rping)
here=$(dirname "$0")/../clients

# seeded NAME KNOBS COMMAND...: COMMAND, which reports as lib.sh does, with
# each seed; one line of the table.
seeded()
{
	local name=$1 knobs=$2 bad=() seed begun=$SECONDS
	shift 2

	for ((seed = first; seed < first + seeds; seed++)); do
		next_port
		(
			export URXE_ADVERSARY=$seed$all_knobs$knobs
			"$@"
		) >"$work/said" 2>&1
		grep -q '^ok: ' "$work/said" &&
			! grep -q '^FAILED' "$work/said" && continue
		bad+=("$seed")
		cat "$work/said"
	done
	printf '%-38s %-24s %d of %d, %d s%s\n' "$name" "${knobs#,}" \
		$((seeds - ${#bad[@]})) "$seeds" $((SECONDS - begun)) \
		"${bad[*]:+, failed with seed ${bad[*]}}"
	passed=$((passed + seeds - ${#bad[@]}))
	failed=$((failed + ${#bad[@]}))
	[[ ! $verbose ]] || cat "$work/said"
}

has() # PROGRAM OPTION
{
	command -v "$1" >/dev/null && [[ ! $2 ]] ||
		"$1" --help 2>&1 | grep -q -- " $2\\b"
}

# absent PROGRAM...: say so
absent()
{
	local program

	for program in "$@"; do
		command -v "$program" >/dev/null && continue
		echo "skipped: $program is not installed"
		return 0
	done
	return 1
}

pingpongs()
{
	local kind options knobs

	want='iters in|^success'
	for kind in rc uc ud srq xsrq; do
		absent ibv_${kind}_pingpong && continue
		# One message is on its way; whoever waits for a lost one
		# waits for ever.
		knobs=
		[[ $kind != u? ]] || knobs=,loss=0
		for options in '-n 200' '-n 200 -e' '-n 200 -c' '-n 100 -c -e'
		do
			[[ $options != *-c* || $kind != xsrq ]] || continue
			[[ $options != *-c* ]] || has ibv_${kind}_pingpong -c ||
				continue
			[[ $kind != xsrq ]] || options=${options#-n 200}
			options=${options# }
			# shellcheck disable=SC2086 # words are meant
			seeded "ibv_${kind}_pingpong $options" "$knobs" \
				pingpong $kind $options
		done
	done
}

pingpong() # KIND OPTIONS...
{
	pair "$*" "ibv_$1_pingpong" -g 0 -p "$port" "${@:2}"
}

rping_pair()
{
	duo rping rping -s -a 0.0.0.0 -p "$port" "$@" -- \
		sh -c "$rping_client" rping -a 127.0.0.1 -p "$port" "$@"
}

rpings()
{
	absent rping && return
	want=''
	seeded 'rping -V' '' rping_pair -V -C 200
	seeded 'rping -V, 4 KiB' '' rping_pair -V -C 100 -S 4096
}

both() # COMMAND...: it takes -p PORT, and -s ADDRESS makes it a client
{
	duo "$1" "$@" -p "$port" -- "$@" -p "$port" -s 127.0.0.1
}

ends() # SERVER CLIENT OPTIONS...
{
	duo "$2" "$1" -p "$port" "${@:3}" -- \
		"$2" -p "$port" -s 127.0.0.1 "${@:3}"
}

connections()
{
	absent ucmatose udaddy rdma_client rstream && return
	want='return status 0$'
	seeded 'ucmatose -c 10' '' both ucmatose -c 10
	want='end 0$'
	seeded 'rdma_client' '' ends rdma_server rdma_client
	seeded 'rdma_xclient' '' ends rdma_xserver rdma_xclient
	want='^custom '
	seeded 'rstream -T v' '' both rstream -T v -S 1000 -C 200
	seeded 'riostream -T v' ,place=0 both riostream -T v -S 1000 -C 200
}

few()
{
	absent ibv_rc_pingpong ibv_srq_pingpong rping ucmatose && exit 77
	want='iters in'
	seeded 'ibv_rc_pingpong -e' '' pingpong rc -n 300 -e
	seeded 'ibv_srq_pingpong -e' '' pingpong srq -n 300 -e
	want=''
	seeded 'rping -V' '' rping_pair -V -C 50
	want='return status 0$'
	seeded 'ucmatose -c 20' '' both ucmatose -c 20
}

perf() # PROGRAM OPTIONS...
{
	pair "$*" "$1" -d urxe0 -F -p "$port" "${@:2}"
}

perftest()
{
	local op

	absent ib_write_bw ib_atomic_bw && return
	want='^ *[0-9]+ +[0-9]+ +[0-9.]+'
	for op in write_bw read_bw send_bw atomic_bw send_lat read_lat \
		atomic_lat; do
		seeded "ib_$op" '' perf ib_$op -n 200
	done
	for op in write_bw read_bw send_bw; do
		seeded "ib_$op -q 4" '' perf ib_$op -n 100 -q 4
	done
	for op in read_bw send_bw; do
		seeded "ib_$op -e" '' perf ib_$op -n 200 -e
	done
	seeded 'ib_send_bw -R' '' perf ib_send_bw -n 200 -R
	seeded 'ib_write_lat' '' perf ib_write_lat -n 200
}

ucx() # TLS TEST [OPTIONS...]
{
	export UCX_TLS=$1,self
	pair "$*" ucx_perftest -p "$port" -n 500 -w 50 -t "${@:2}"
}

ucxs()
{
	local tls t knobs=,fill=0

	absent ucx_perftest ucx_info && return
	if ! ucx_has_verbs ||
		ldd "$(command -v ucx_perftest)" | grep -q libmpi; then
		echo 'skipped: this UCX has no verbs, or takes itself for MPI'
		return
	fi
	export UCX_NET_DEVICES=urxe0:1 UCX_WARN_UNUSED_ENV_VARS=n
	want='^Final: '
	for tls in rc_v ud_v; do
		for t in tag_lat tag_bw ucp_put_bw ucp_get ucp_fadd; do
			seeded "ucx_perftest $tls $t" ,fill=0 \
				ucx $tls $t -s 8
		done
		# what is lost or overtaken is sent again after a long time
		[[ $tls == rc_v ]] || knobs=$knobs,loss=0,reorder=0
		seeded "ucx_perftest $tls tag_bw 64 KiB" "$knobs" \
			ucx $tls tag_bw -s 65536
	done
}

fi_pair() # PROVIDER ENDPOINT DOMAIN
{
	local common=(fi_pingpong -p "$1" -e "$2" -d "$3" -I 5 -c)

	duo "$1" "${common[@]}" -B "$port" -- \
		"${common[@]}" -P "$port" 127.0.0.1
}

libfabric()
{
	absent fi_pingpong && return
	want='^(1m|4k) .*[0-9]$'
	seeded 'fi_pingpong -c, verbs msg' '' fi_pair verbs msg urxe0
	seeded 'fi_pingpong -c, ofi_rxm' '' fi_pair 'verbs;ofi_rxm' rdm urxe0
	seeded 'fi_pingpong -c, verbs dgram' ,loss=0 \
		fi_pair verbs dgram urxe0-dgram
}

fio_pair() # VERB [OPTIONS...]
{
	local common=(--ioengine=rdma --port="$port" --bs=64k --size=2m
		--thread)

	duo "fio $*" fio --name=receiver "${common[@]}" --rw=read \
		--iodepth=64 "${@:2}" -- fio --name=sender "${common[@]}" \
		--rw=write --verb="$1" --iodepth=16 --hostname=127.0.0.1 \
		"${@:2}"
}

fios()
{
	absent fio && return
	want='err= 0'
	seeded 'fio, verb write' '' fio_pair write
	seeded 'fio, verb read' '' fio_pair read
	seeded 'fio, verb send' ,rnr=0 fio_pair send
}

ranks() # TRANSPORT
{
	export UCX_TLS=$1,self
	check "$1" '^2 ranks, all right$' mpirun --oversubscribe -np 2 \
		--mca pml ucx --mca btl self python3 "$here/mpi.py"
}

openmpi()
{
	absent mpirun ompi_info python3 && return
	if ! ompi_info 2>/dev/null | grep -q 'MCA pml: ucx'; then
		echo 'skipped: this Open MPI has no UCX PML'
		return
	fi
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	export UCX_NET_DEVICES=urxe0:1 UCX_WARN_UNUSED_ENV_VARS=n
	seeded 'Open MPI, rc_v' ,fill=0 ranks rc_v
	seeded 'Open MPI, ud_v' ,fill=0,loss=0,reorder=0 ranks ud_v
}


for group in "${groups[@]}"; do
	case $group in
	pingpong) pingpongs ;;
	rping) rpings ;;
	cm) connections ;;
	few) few ;;
	perftest) perftest ;;
	ucx) ucxs ;;
	libfabric) libfabric ;;
	fio) fios ;;
	openmpi) openmpi ;;
	*) echo "no group $group"; exit 2 ;;
	esac
done
finish
