#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# docs.sh URXE SOURCE: each rule in the documents and in the help is accepted.  Invalid
# rules are refused before the program starts, with the invalid word.
set -u
URXE=$1
docs=$2/docs
failures=0
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

failed()
{
	echo "failed: $*"
	failures=$((failures + 1))
}

# understood RULE: check that the rule is accepted, so that the program runs.
understood()
{
	[ "$("$URXE" run --fault "$1" -- echo begun 2>"$tmp/err")" = begun ]
}

rules()
{
	sed -n 's/^    --fault \([^ ]*\)$/\1/p' "$docs/faults.md"
	sed -n 's/^\.Dl \\-\\-fault \(.*\)$/\1/p' "$docs/man/urxe-faults.7"
	"$URXE" run --fault=help | sed -n 's/^  --fault \([^@]*\)$/\1/p'
	sed -n 's/^    \([a-z_]*:prog=client:.*\)$/\1/p' "$docs/faults.md"
}

n=0
while read -r rule; do
	n=$((n + 1))
	understood "$rule" || failed "$rule: $(cat "$tmp/err")"
done < <(rules)
[ $n -ge 38 ] || failed "only $n rules in the documents"

# calls whose first argument is a QP
for call in attach_mcast bind_mw destroy_qp detach_mcast modify_qp post_recv \
	post_send qp_attach_comp_cntr query_ece query_qp set_ece wr_complete \
	create_qp,no create_ah,no post_srq_recv,no; do
	if understood "ibv_${call%,no}:qp=5:EIO"; then
		[[ $call != *,no ]] || failed "$call: qp= is accepted"
	else
		[[ $call = *,no ]] || failed "$call: qp= is refused"
	fi
done

# invalid rules, and the word that the message must contain
while read -r rule word; do
	if understood "$rule"; then
		failed "$rule is accepted"
	elif ! grep -qF "\"$word\"" "$tmp/err"; then
		failed "$rule: the message lacks $word: $(cat "$tmp/err")"
	fi
done <<END
ibv_reg_mr:nth=x:ENOMEM nth=x
ibv_reg_mr:nth=0:ENOMEM nth=0
ibv_reg_mr:nth=5 nth=5
ibv_reg_mr:nth=5:ENOSUCH ENOSUCH
ibv_reg_me:ENOMEM ibv_reg_me
ibv_close_device:EIO ibv_close_device
*:nth=5:ENOMEM *
ibv_post_send:op=SEND:EIO op=SEND
ibv_reg_mr:p=1.5:ENOMEM p=1.5
ibv_reg_mr:qp=5:ENOMEM ibv_reg_mr:qp=5:ENOMEM
ibv_create_*:type=UD:ENOMEM ibv_create_*:type=UD:ENOMEM
rdma_connect:type=RC:REJECTED rdma_connect:type=RC:REJECTED
ibv_reg_mr:p=0.5:nth=2:ENOMEM ibv_reg_mr:p=0.5:nth=2:ENOMEM
wr:op=SENT:LOC_PROT_ERR op=SENT
wr:op=RDMA_WRITE:RNR_RETRY_EXC_ERR RNR_RETRY_EXC_ERR
wr:type=UD:RETRY_EXC_ERR RETRY_EXC_ERR
wr:SUCCESS SUCCESS
wr:ms=5:LOC_PROT_ERR ms=5
packet:nth=2:GONE GONE
packet:op=SEND:LOST op=SEND
packet:p=0.01:LOST=1 LOST=1
qp:DOWN DOWN
cq:QP_FATAL QP_FATAL
srq:at=post:SRQ_ERR srq:at=post:SRQ_ERR
port:DOWN=0 DOWN=0
process:ms=5:nth=2:KILL process:ms=5:nth=2:KILL
port:ms=0:times=2:DOWN=5 port:ms=0:times=2:DOWN=5
port:link=rail0:LID_CHANGE port:link=rail0:LID_CHANGE
port:ready=5:DOWN port:ready=5:DOWN
port:ready=0:DOWN=5 ready=0
port:link=:DOWN link=
port:RATE=0 RATE=0
port:ms=5:RATE=1201 RATE=1201
qp:link=rail0:QP_FATAL link=rail0
wr:dev=a-name-that-is-too-long:LOC_PROT_ERR dev=a-name-that-is-too-long
packet:host=alice:LOST host=alice
rdma_listen:dev=mlx5_0:EIO rdma_listen:dev=mlx5_0:EIO
process:SLEEP SLEEP
process:ms=5:SLEEP=5 process:ms=5:SLEEP=5
rdma_listen:REJECTED REJECTED
rdma_connect:REJECTED=256 REJECTED=256
rdma_connect:ADDR_ERROR ADDR_ERROR
END

# a file with comments, and a file that does not exist
printf '# nothing\n\n  ibv_alloc_pd:nth=1:ENOMEM\n#ibv_x:y\n' >"$tmp/rules"
understood "@$tmp/rules" || failed "a file: $(cat "$tmp/err")"
printf 'wr:LOC_PROT_ERR\nwrong\n' >"$tmp/rules"
understood "@$tmp/rules" && failed "a file with an invalid rule is accepted"
grep -q '"wrong"' "$tmp/err" || failed "the message lacks the invalid rule of the file"
understood "@$tmp/nothing" && failed "a file that does not exist is accepted"

# URXE_FAULTS of the program, for files of different editors
said_of_file()
{
	"$URXE" run --fault "@$tmp/rules" -- sh -c 'echo "$URXE_FAULTS"' 2>"$tmp/err"
}
printf '\357\273\277# by\r\n  # somebody; who\r\n\r\n\tcq:CQ_ERR \r\nwr:LOC_PROT_ERR' \
	>"$tmp/rules"
[ "$(said_of_file)" = $'cq:CQ_ERR\nwr:LOC_PROT_ERR' ] ||
	failed "CRLF: $(said_of_file)"
for text in '' '# nothing; at all' 'cq:CQ_ERR\0\nwr:LOC_PROT_ERR' \
	"cq:$(printf '%0200d' 1):CQ_ERR"; do
	printf "$text" >"$tmp/rules"
	understood "@$tmp/rules" && failed "a file with \"$text\" is accepted"
	[ "$(wc -l <"$tmp/err")" = 1 ] || failed "\"$text\": $(cat "$tmp/err")"
done
understood "@$tmp" && failed "a directory is accepted"
for ((i = 0; i < 65; i++)); do
	echo "cq:nth=$((i + 1)):CQ_ERR"
done >"$tmp/rules"
understood "@$tmp/rules" && failed "65 rules are accepted"
grep -q '"cq:nth=65:CQ_ERR": too many rules' "$tmp/err" ||
	failed "65 rules: $(cat "$tmp/err")"

# several rules are appended to URXE_FAULTS
said=$(URXE_FAULTS=$'wr:LOC_PROT_ERR\n# mine' "$URXE" run --fault cq:CQ_ERR \
	--fault process:nth=9:KILL -- sh -c 'echo "$URXE_FAULTS"')
[ "$said" = $'wr:LOC_PROT_ERR\n# mine\ncq:CQ_ERR\nprocess:nth=9:KILL' ] ||
	failed "several rules: $said"

# urxe doctor reports that URXE_FAULTS is set
URXE_FAULTS=cq:CQ_ERR "$URXE" doctor | grep -q '^warn.*URXE_FAULTS is cq:CQ_ERR' ||
	failed "urxe doctor does not report URXE_FAULTS"
URXE_FAULTS=wrong "$URXE" doctor | grep -q '^FAIL.*"wrong"' ||
	failed "urxe doctor does not report the invalid rule"

[ $failures = 0 ]
