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
	[ -z "$(ls -A "$tmp/t")" ] || failed "$*: left $(ls "$tmp/t")"
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
# wherever there is a place to count in
want='"ibv_reg_mr:nth=2:ENOMEM" never struck: it fitted 1 time'
TMPDIR=$tmp/nowhere ends 0 --fault ibv_reg_mr:nth=2:ENOMEM -- client 1
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

# each is said when it strikes, with its rule
for rule in ibv_reg_mr:EIO wr:nth=2:LOC_PROT_ERR qp:nth=2:PATH_MIG \
	port:nth=2:LID_CHANGE process:nth=2:SLEEP=1; do
	URXE_LOG=1 "$URXE" run --fault $rule -- client 4 2>"$tmp/err"
	grep -q "^urxe\[[0-9]*\]: a fault: .*the rule \"$rule\"" "$tmp/err" ||
		failed "$rule is not said"
done

# the recipe: each verb of a program, one after the other, until it passes
n=1
while ! URXE_LOG=1 "$URXE" run --fault "ibv_*:nth=$n:ENOMEM" -- client 2 \
	2>"$tmp/err" && [ $n -lt 100 ]; do
	grep -q 'a fault' "$tmp/err" || failed "ibv_*:nth=$n"
	n=$((n + 1))
done
# open, query, PD, MR, CQ, QP, 3 modify, 2 post, 2 poll, 4 to end with, at least
[ $n -gt 16 ] && [ $n -lt 100 ] || failed "the recipe ends at $n"

# who is killed leaves the port as it is
want=
ends 137 --fault port:at=post:nth=1:DOWN=3600000 --fault process:nth=1:KILL -- \
	client 2
for said in '' 'the port of urxe0 is up already'; do
	[ "$("$URXE" port up)" = "$said" ] || failed "the port was not \"$said\""
done
ends 0 -- client 2

# the recipe: whoever waits for a server that dies is not wedged
if command -v rping >/dev/null; then
	ln -s "$(command -v rping)" "$tmp/rserver"
	for n in 1 10 100; do
		ends 0 --fault process:prog=rserver:nth=$n:KILL --timeout 60 -- sh -c '
			rserver -s -a 127.0.0.1 -p 7471 &
			while grep -q "^State:.[^Z]" /proc/$!/status; do
				rping -c -a 127.0.0.1 -p 7471 -C 1000
			done 2>/dev/null
			wait $!
			[ $? = 137 ]'
	done
fi

[ $failures = 0 ]
