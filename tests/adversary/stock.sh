#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# stock.sh [-c CMSTAT] [-n SEEDS] [-f FIRST] [-k OPTIONS] [-r] [-v] [GROUP...]
#
# Run stock programs under the adversary, each with the seeds FIRST (1) to
# FIRST+SEEDS-1 (2): they must end, with correct data.  The groups are pingpong, rping,
# cm, perftest, ucx, libfabric, fio, openmpi, pyverbs, qperf and events; all; few
# (parts of the first three); and perf (a part of perftest).  The default is the first
# two.  Programs that are not installed are skipped.
#
# -r also runs them under the referee, which must report nothing except the findings
# in tests/referee/stock.supp.  -n 0 is one run without the adversary.
#
# OPTIONS are options as in URXE_ADVERSARY, for all programs.  Options after the name of
# a program are turned off for it, as it depends on a guarantee that they remove;
# docs/adversary.md has the reasons.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/../clients/lib.sh"

LIMIT=${URXE_TEST_LIMIT:-120}
CMSTAT=${CMSTAT-}
seeds=2
first=1
all_options=
verbose=
here=$(realpath "$(dirname "$0")/../clients")
while getopts c:n:f:k:rv option; do
	case $option in
	c) CMSTAT=$(realpath "$OPTARG") ;;
	n) seeds=$OPTARG ;;
	f) first=$OPTARG ;;
	k) all_options=,$OPTARG ;;
	r) export URXE_TEST_RUN="--check --leaks --exitcode 9 --suppressions
		$here/../referee/stock.supp" ;;
	v) verbose=1 ;;
	*) sed -n 's/^# //p' "$0" | sed -n '2,12p'; exit 2 ;;
	esac
done
export CMSTAT
shift $((OPTIND - 1))
groups=("$@")
[[ ${groups[*]} ]] || groups=(pingpong rping)
[[ ${groups[*]} != all ]] || groups=(pingpong rping cm perftest ucx libfabric
	fio openmpi pyverbs qperf events)

# seeded NAME OPTIONS COMMAND...: run COMMAND, which reports like check of lib.sh, with
# each seed, and print a line of the table.
seeded()
{
	local name=$1 options=$2 bad=() runs=() seed begun=$SECONDS
	shift 2

	for ((seed = first; seed < first + seeds; seed++)); do
		runs+=("$seed")
	done
	[[ ${runs[*]} ]] || runs=(none)
	for seed in "${runs[@]}"; do
		next_port
		(
			[[ $seed == none ]] ||
				export URXE_ADVERSARY=$seed$all_options$options
			"$@"
		) >"$work/said" 2>&1
		grep -q '^ok: ' "$work/said" &&
			! grep -q '^FAILED' "$work/said" && continue
		bad+=("$seed")
		cat "$work/said"
	done
	printf '%-38s %-24s %d of %d, %d s%s\n' "$name" "${options#,}" \
		$((${#runs[@]} - ${#bad[@]})) ${#runs[@]} \
		$((SECONDS - begun)) \
		"${bad[*]:+, failed with seed ${bad[*]}}"
	passed=$((passed + ${#runs[@]} - ${#bad[@]}))
	failed=$((failed + ${#bad[@]}))
	[[ ! $verbose ]] || cat "$work/said"
}

has() # PROGRAM OPTION
{
	command -v "$1" >/dev/null && [[ ! $2 ]] ||
		"$1" --help 2>&1 | grep -q -- " $2\\b"
}

# absent PROGRAM...: report programs that are not installed
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
	local kind options adversary

	want='iters in|^success'
	for kind in rc uc ud srq xsrq; do
		absent ibv_${kind}_pingpong && continue
		# one message is outstanding: after a loss, both ends would wait
		# forever
		adversary=
		[[ $kind != u? ]] || adversary=,loss=0
		for options in '-n 200' '-n 200 -e' '-n 200 -c' '-n 100 -c -e'
		do
			[[ $options != *-c* || $kind != xsrq ]] || continue
			[[ $options != *-c* ]] || has ibv_${kind}_pingpong -c ||
				continue
			[[ $kind != xsrq ]] || options=${options#-n 200}
			options=${options# }
			# shellcheck disable=SC2086 # the options are words
			seeded "ibv_${kind}_pingpong $options" "$adversary" \
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
	duo rping "$rping" -s -a 0.0.0.0 -p "$port" "$@" -- \
		"$rping" -c -a 127.0.0.1 -p "$port" "$@"
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

# before release 59 its server does not exit
cmtimes()
{
	local server

	if cmtime -h 2>&1 | grep -q -- '-L'; then
		duo cmtime cmtime -L -b 127.0.0.1 -C 127.0.0.1 -p "$port" \
			"$@" -- cmtime -b 127.0.0.1 -C 127.0.0.1 -p "$port" "$@"
		return
	fi
	urxe_run cmtime -p "$port" "$@" >"$work/server" 2>&1 &
	server=$!
	wait_listening $server
	check cmtime "$want" cmtime -p "$port" -s 127.0.0.1 "$@"
	stop $server
}

multicast() # OPTIONS...
{
	local server status=0

	: >"$work/server" # discard the output of the previous run
	urxe_run stdbuf -oL mckey -m 239.1.2.3 -b 127.0.0.1 "$@" \
		>"$work/server" 2>&1 &
	server=$!
	await $server grep -q joined "$work/server"
	urxe_run mckey -m 239.1.2.3 -b 127.0.0.1 -s "$@" 2>&1 || status=$?
	wait $server || status=$?
	cat "$work/server"
	grep -q "$want" "$work/server" || status='no result'
	report "$status" mckey
}

copies()
{
	local server status=0

	head -c 1000000 /dev/urandom >"$work/data"
	urxe_run rcopy -p "$port" >"$work/server" 2>&1 &
	server=$!
	wait_listening $server
	urxe_run rcopy "$work/data" "127.0.0.1:$work/copy" -p "$port" 2>&1 ||
		status=$?
	cmp "$work/data" "$work/copy" || status='other data'
	report "$status" rcopy
	stop $server
}

connections()
{
	absent ucmatose udaddy cmtime mckey rdma_client rstream udpong rcopy &&
		return
	want='return status 0$'
	seeded 'ucmatose -c 10' '' both ucmatose -c 10
	seeded 'udaddy -c 5' ,loss=0 udaddy_pair -c 5
	seeded 'mckey' ,gather=0,complete=0,reorder=0,loss=0 multicast
	want='^disconnect'
	seeded 'cmtime -c 50' '' cmtimes -c 50
	want='end 0$'
	seeded 'rdma_client' '' ends rdma_server rdma_client
	seeded 'rdma_xclient' '' ends rdma_xserver rdma_xclient
	want='^custom '
	seeded 'rstream -T v' '' both rstream -T v -S 1000 -C 200
	seeded 'riostream -T v' ,place=0 both riostream -T v -S 1000 -C 200
	want=''
	seeded 'rcopy' '' copies
}

udaddy_pair()
{
	port=7174
	duo udaddy udaddy "$@" -- udaddy -s 127.0.0.1 "$@"
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

some_perftest()
{
	absent ib_send_bw ib_read_lat && return
	want='^ *[0-9]+ +[0-9]+ +[0-9.]+'
	seeded 'ib_send_bw' '' perf ib_send_bw -n 100
	seeded 'ib_read_lat' '' perf ib_read_lat -n 100
	seeded 'ib_send_bw -R' '' perf ib_send_bw -n 100 -R
}

perftest()
{
	local op type

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
	for op in read_bw send_bw send_lat; do
		seeded "ib_$op -R" '' perf ib_$op -n 200 -R
	done
	seeded 'ib_write_lat' '' perf ib_write_lat -n 200
	seeded 'ib_atomic_bw -A CMP_AND_SWAP' '' \
		perf ib_atomic_bw -n 200 -A CMP_AND_SWAP
	seeded 'ib_atomic_bw -q 4' '' perf ib_atomic_bw -n 100 -q 4
	seeded 'ib_send_bw --use-srq' '' perf ib_send_bw -n 200 --use-srq
	for op in send_bw read_bw atomic_bw; do
		seeded "ib_$op -c XRC" '' perf ib_$op -n 200 -c XRC
	done
	for type in UC UD; do
		for op in send_bw send_lat; do
			seeded "ib_$op -c $type" ,loss=0 \
				perf ib_$op -n 200 -c $type
		done
	done
}

ucx() # TLS TEST [OPTIONS...]
{
	export UCX_TLS=$1,self
	pair "$*" ucx_perftest -p "$port" -n 500 -w 50 -t "${@:2}"
}

ucxs()
{
	local tls t options=,fill=0

	absent ucx_perftest ucx_info && return
	if ! ucx_has_verbs ||
		ldd "$(command -v ucx_perftest)" | grep -q libmpi; then
		echo 'skipped: this UCX has no verbs transport, or was built for MPI only'
		return
	fi
	export UCX_NET_DEVICES=urxe0:1 UCX_WARN_UNUSED_ENV_VARS=n
	want='^Final: '
	for tls in rc_v ud_v; do
		for t in tag_lat tag_bw ucp_put_bw ucp_get ucp_fadd; do
			seeded "ucx_perftest $tls $t" ,fill=0 \
				ucx $tls $t -s 8
		done
		# UCX retransmits lost or reordered packets after a long time
		[[ $tls == rc_v ]] || options=$options,loss=0,reorder=0
		seeded "ucx_perftest $tls tag_bw 64 KiB" "$options" \
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
	seeded 'fio, verb send, --verify' ,rnr=0 fio_pair send --verify=crc32c \
		--verify_state_save=0
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

pyverbs() # MODULE...
{
	"$here/pyverbs.py" "$@"
	report $? pyverbs
}

all_pyverbs()
{
	local source=/usr/share/doc/rdma-core/tests

	if [[ ! -e $source/base.py.gz ]]; then
		echo 'skipped: python3-pyverbs is not installed'
		return
	fi
	seeded 'pyverbs' ,fill=0,loss=0 pyverbs test_addr test_atomic \
		test_cq_events test_cqex test_device test_fork test_mr \
		test_odp test_parent_domain test_pd test_qp test_qpex \
		test_rdmacm test_relaxed_ordering test_shared_pd
	seeded 'pyverbs, test_cq' ,gather=0,complete=0,reorder=0,loss=0 \
		pyverbs test_cq
}

qperfs()
{
	absent qperf && return
	seeded 'qperf, RC' '' "$here/qperf.sh"
}

# output for a port that goes down and up again
asyncwatch()
{
	local pid status=0

	: >"$work/watch" # discard the output of the previous run
	urxe_run stdbuf -oL ibv_asyncwatch -d urxe0 >"$work/watch" 2>&1 &
	pid=$!
	await $pid grep -q 'async event FD' "$work/watch"
	"$URXE" port down
	await $pid grep -q '(10), port 1' "$work/watch"
	"$URXE" port up
	await $pid grep -q '(9), port 1' "$work/watch"
	kill -0 $pid || status='it has ended'
	stop $pid
	cat "$work/watch"
	report "$status" ibv_asyncwatch
}

events()
{
	absent ibv_asyncwatch && return
	seeded 'ibv_asyncwatch' '' asyncwatch
}

for group in "${groups[@]}"; do
	case $group in
	pingpong) pingpongs ;;
	rping) rpings ;;
	cm) connections ;;
	few) few ;;
	perf) some_perftest ;;
	perftest) perftest ;;
	ucx) ucxs ;;
	libfabric) libfabric ;;
	fio) fios ;;
	openmpi) openmpi ;;
	pyverbs) all_pyverbs ;;
	qperf) qperfs ;;
	events) events ;;
	*) echo "unknown group $group"; exit 2 ;;
	esac
done
finish
