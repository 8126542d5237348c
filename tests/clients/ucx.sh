#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# UCX finds its transports on the device, and ucx_perftest runs its tests between two
# processes over each of them.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
need ucx_perftest
need_ucx_verbs
export UCX_NET_DEVICES=urxe0:1 UCX_WARN_UNUSED_ENV_VARS=n

input_for_ucx

for tl in rc_verbs ud_verbs; do
	status=0
	urxe_run ucx_info -d >"$work/info" 2>&1 || status=$?
	grep -A1 "Transport: $tl" "$work/info" | grep -q urxe0 || status=missing
	report "$status" "ucx_info lists $tl on urxe0"
done

# pattern of the summary line
want='^Final: '
perf() # TLS TEST
{
	next_port
	UCX_TLS=$1,self pair "ucx_perftest $1 $2" ucx_perftest -p "$port" \
		-t "$2" -n 2000 -w 100 -s 64
}

amo() # TLS TEST
{
	next_port
	UCX_TLS=$1,self pair "ucx_perftest $1 $2" ucx_perftest -p "$port" \
		-t "$2" -n 2000 -w 100 -s 8
}

for tls in rc_v ud_v; do
	for t in tag_bw ucp_get; do
		perf $tls $t
	done
	for t in tag_lat ucp_put_bw ucp_put_lat; do
		long perf $tls $t
	done
	amo $tls ucp_fadd
	for t in ucp_add ucp_swap ucp_cswap; do
		long amo $tls $t
	done
done

# over RoCE v1; UCX selects v2 by default
if has_gid 2; then
	export UCX_IB_GID_INDEX=2
	perf rc_v tag_lat
	long perf ud_v tag_lat
	unset UCX_IB_GID_INDEX
fi

# tests of single transports; verbs have no atomic swap
uct() # TRANSPORT TEST [OPTIONS...]
{
	next_port
	UCX_TLS=rc_v,ud_v pair "ucx_perftest $*" ucx_perftest -p "$port" \
		-d urxe0:1 -x "$1" -n 2000 -w 100 -t "${@:2}"
}

for t in am_lat am_bw; do
	long uct rc_verbs $t
	long uct ud_verbs $t
done
uct rc_verbs am_bw -D zcopy -s 4000
uct ud_verbs am_lat -D bcopy -s 4000
long uct rc_verbs am_lat -D zcopy -s 4000
long uct ud_verbs am_bw -D bcopy -s 4000
for t in put_lat put_bw add_lat add_mr fadd; do
	long uct rc_verbs $t
done
uct rc_verbs cswap
uct rc_verbs put_bw -D bcopy -s 8192
uct rc_verbs get -D zcopy -s 8192
long uct rc_verbs put_bw -D zcopy -s 8192
long uct rc_verbs get -D bcopy -s 8192

# different ways to wait, to call, and to pass data
with_options() # TLS OPTIONS
{
	next_port
	# shellcheck disable=SC2086 # the options are words
	UCX_TLS=$1,self pair "ucx_perftest $1 tag_lat $2" \
		ucx_perftest -p "$port" -t tag_lat -n 1000 -w 10 $2
}

for tls in rc_v ud_v; do
	for options in '-E sleep' '-M multi -T 2'; do
		with_options $tls "$options"
	done
	for options in '-D iov,iov' '-e' '-U' '-B'; do
		long with_options $tls "$options"
	done
	next_port
	UCX_TLS=$tls,self pair "ucx_perftest $tls tag_bw, 1 MiB" ucx_perftest \
		-p "$port" -t tag_bw -n 50 -w 5 -s 1048576
done

# over InfiniBand, from one device to another
export URXE_FABRIC=ib
export URXE_TEST_RUN="${URXE_TEST_RUN-} --devices 2 --link-layer infiniband"
latency=(ucx_perftest -t tag_lat -n 100 -s 5000)
for tls in rc_v,ud_v ud_v; do
	next_port
	UCX_TLS=$tls,self duo "ucx_perftest $tls over InfiniBand" \
		env UCX_NET_DEVICES=urxe1:1 "${latency[@]}" -p "$port" -- \
		env UCX_NET_DEVICES=urxe0:1 "${latency[@]}" -p "$port" localhost
done
finish
