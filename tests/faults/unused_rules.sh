#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# unused_rules.sh URXE CLIENT: urxe run reports faults that never struck, and how often their
# rules matched, in one and in several processes.
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

# ends STATUS OPTION... -- COMMAND: run urxe run with these options, and check its exit
# status, and that its report of the faults equals $want.
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

# faults that strike are not reported
ends 1 --fault ibv_reg_mr:nth=1:ENOMEM -- client 1
ends 2 --fault wr:nth=3:LOC_PROT_ERR -- client 5
ends 137 --fault process:nth=3:KILL -- client 5
ends 1 --fault ibv_reg_mr:prog=client:nth=1:ENOMEM -- sh -c 'client 1'
ends 137 --fault port:ms=20:LID_CHANGE --fault process:ms=40:KILL -- \
	client 1000000000

want='"ibv_reg_mr:nth=2:ENOMEM" never struck: it matched 1 time'
ends 0 --fault ibv_reg_mr:nth=2:ENOMEM -- client 1
# each process counts separately, after exec and after fork
want='"ibv_reg_mr:nth=2:ENOMEM" never struck: it matched 3 times'
ends 0 --fault ibv_reg_mr:nth=2:ENOMEM -- \
	sh -c 'client 1 && (client 1) && exec client 1'
want='"ibv_reg_mr:prog=server:ENOMEM" never struck: nothing matched it'
ends 0 --fault ibv_reg_mr:prog=server:ENOMEM -- client 1
want='"wr:op=RDMA_READ:LOC_PROT_ERR" never struck: nothing matched it
"ibv_alloc_pd:p=0:EIO" never struck: it matched 1 time
"process:ms=3000000:KILL" never struck: nothing matched it
"rdma_listen:EIO" never struck: nothing matched it'
ends 0 --fault wr:op=RDMA_READ:LOC_PROT_ERR --fault ibv_alloc_pd:p=0:EIO \
	--fault process:ms=3000000:KILL --fault rdma_listen:EIO -- client 1
# of two matching rules, the first one strikes
want='"ibv_reg_mr:nth=1:EIO" never struck: it matched 1 time'
ends 1 --fault ibv_reg_mr:nth=1:ENOMEM --fault ibv_reg_mr:nth=1:EIO -- client 1
# also with an invalid TMPDIR
want='"ibv_reg_mr:nth=2:ENOMEM" never struck: it matched 1 time'
TMPDIR=$tmp/nowhere ends 0 --fault ibv_reg_mr:nth=2:ENOMEM -- client 1
# one report for a whole sweep
want='"ibv_reg_mr:nth=2:ENOMEM" never struck: it matched 3 times'
ends 0 --adversary=sweep:3 --fault ibv_reg_mr:nth=2:ENOMEM -- client 1
# nested: each urxe run reports its own rules
want='"ibv_alloc_pd:nth=9:EIO" never struck: it matched 1 time'
ends 1 --fault ibv_reg_mr:nth=1:ENOMEM -- \
	"$URXE" run --fault ibv_alloc_pd:nth=9:EIO -- client 1
# no report if the command cannot be executed
want=
ends 127 --fault ibv_reg_mr:ENOMEM -- "$tmp/nobody"
want=
URXE_FAULTS=wrong ends 2 --fault ibv_reg_mr:ENOMEM -- client 1
grep -q '"wrong"' "$tmp/err" || failed "URXE_FAULTS=wrong is not reported"

# with URXE_LOG each fault is logged, with its rule
for rule in ibv_reg_mr:EIO wr:nth=2:LOC_PROT_ERR qp:nth=2:PATH_MIG \
	port:nth=2:LID_CHANGE process:nth=2:SLEEP=1; do
	URXE_LOG=1 "$URXE" run --fault $rule -- client 4 2>"$tmp/err"
	grep -q "^urxe\[[0-9]*\]: injected fault: .*rule \"$rule\"" "$tmp/err" ||
		failed "$rule is not logged"
done

# the recipe: fail each verb of a program in turn, until the program succeeds
n=1
while ! URXE_LOG=1 "$URXE" run --fault "ibv_*:nth=$n:ENOMEM" -- client 2 \
	2>"$tmp/err" && [ $n -lt 100 ]; do
	grep -q 'injected fault' "$tmp/err" || failed "ibv_*:nth=$n"
	n=$((n + 1))
done
# at least open, query, PD, MR, CQ, QP, 3 modify, 2 post, 2 poll, and 4 to destroy
[ $n -gt 16 ] && [ $n -lt 100 ] || failed "the recipe ends after $n verbs"

# if the program is killed, the port stays down
want=
ends 137 --fault port:at=post:nth=1:DOWN=3600000 --fault process:nth=1:KILL -- \
	client 2
for said in '' 'the port of urxe0 is already up'; do
	[ "$("$URXE" port up)" = "$said" ] || failed "the port was not \"$said\""
done
ends 0 -- client 2

# the recipe: clients do not hang when the server is killed
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
