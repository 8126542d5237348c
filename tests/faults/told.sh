#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# told.sh URXE CLIENT: who runs a program with faults is told which of them it
# never met; and how often each program of several meets them.
set -u
URXE=$1
failures=0
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/t"
export TMPDIR=$tmp/t
ln -s "$(realpath "$2")" "$tmp/client"
ln -s client "$tmp/server"
PATH=$tmp:$PATH

failed()
{
	echo "failed: $*: $(cat "$tmp/err")"
	failures=$((failures + 1))
}

# "status options... -- command" ends so, and says of its faults what is in $want
want=
ends()
{
	local status=$1 got
	shift
	"$URXE" run "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ $got = "$status" ] || failed "$*: exit status $got"
	[ "$(sed -n 's/^urxe: --fault: //p' "$tmp/err")" = "$want" ] ||
		failed "$*: not \"$want\""
	[ -z "$(ls -A "$TMPDIR")" ] || failed "$*: left $(ls "$TMPDIR")"
}

# what strikes is not told
ends 1 --fault ibv_reg_mr:nth=1:ENOMEM -- client 1
ends 2 --fault wr:nth=3:LOC_PROT_ERR -- client 5
ends 137 --fault process:nth=3:KILL -- client 5
ends 1 --fault ibv_reg_mr:prog=client:nth=1:ENOMEM -- sh -c 'client 1'
ends 137 --fault port:ms=20:LID_CHANGE --fault process:ms=40:KILL -- \
	client 1000000000

want='"ibv_reg_mr:nth=2:ENOMEM" never struck: it fitted 1 time'
ends 0 --fault ibv_reg_mr:nth=2:ENOMEM -- client 1
# each process counts for itself, whether it was executed or forked
want='"ibv_reg_mr:nth=2:ENOMEM" never struck: it fitted 3 times'
ends 0 --fault ibv_reg_mr:nth=2:ENOMEM -- \
	sh -c 'client 1 && (client 1) && exec client 1'
want='"ibv_reg_mr:prog=server:ENOMEM" never struck: nothing fitted it'
ends 0 --fault ibv_reg_mr:prog=server:ENOMEM -- client 1
want='"wr:op=RDMA_READ:LOC_PROT_ERR" never struck: nothing fitted it
"ibv_alloc_pd:p=0:EIO" never struck: it fitted 1 time
"process:ms=3000000:KILL" never struck: nothing fitted it
"rdma_listen:EIO" never struck: nothing fitted it'
ends 0 --fault wr:op=RDMA_READ:LOC_PROT_ERR --fault ibv_alloc_pd:p=0:EIO \
	--fault process:ms=3000000:KILL --fault rdma_listen:EIO -- client 1
# of two that fit, the one that was first
want='"ibv_reg_mr:nth=1:EIO" never struck: it fitted 1 time'
ends 1 --fault ibv_reg_mr:nth=1:ENOMEM --fault ibv_reg_mr:nth=1:EIO -- client 1
# once for a whole sweep
want='"ibv_reg_mr:nth=2:ENOMEM" never struck: it fitted 3 times'
ends 0 --adversary=sweep:3 --fault ibv_reg_mr:nth=2:ENOMEM -- client 1
# one in the other: each tells of its own
want='"ibv_alloc_pd:nth=9:EIO" never struck: it fitted 1 time'
ends 1 --fault ibv_reg_mr:nth=1:ENOMEM -- \
	"$URXE" run --fault ibv_alloc_pd:nth=9:EIO -- client 1
# what was not run has met nothing, of which nothing is told
want=
ends 127 --fault ibv_reg_mr:ENOMEM -- "$tmp/nobody"
want=
URXE_FAULTS=wrong ends 2 --fault ibv_reg_mr:ENOMEM -- client 1
grep -q '"wrong"' "$tmp/err" || failed "what is wrong in the environment"

[ $failures = 0 ]
