#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The examples of librpma, between two processes, on ordinary memory.  Debian has the
# library, but not its examples: URXE_RPMA is the path of the source, from
# https://github.com/pmem/rpma or "apt-get source rpma".
# shellcheck source=tests/apps/lib.sh
. "$(dirname "$0")/lib.sh"
need_packages gcc pkg-config -- cc pkg-config
pkg-config --exists librpma libibverbs ||
	skip "needs the Debian packages librpma-dev libibverbs-dev"
[[ -d ${URXE_RPMA-}/examples/01-connection ]] ||
	skip "needs the source of librpma in \$URXE_RPMA, as its examples are not packaged"
need_address

# The common part of the examples is built once; examples that need protobuf are omitted.
examples=$(realpath "$URXE_RPMA/examples")
read -ra flags < <(pkg-config --cflags --libs librpma libibverbs)
cd "$work" || exit 99
cc -O1 -w -c "$examples"/common/common-{conn,utils,hello,epoll}.c \
	"$examples/common/common-messages-ping-pong.c" "${flags[@]}" || exit 1
build() # EXAMPLE
{
	local program extra=()

	mapfile -t extra < <(compgen -G "$examples/$1/*-common.c")
	for program in server client; do
		cc -O1 -w -I "$examples/common" -o "$1-$program" \
			"$examples/$1/$program.c" ${extra[@]+"${extra[@]}"} \
			./common-*.o "${flags[@]}" || return
	done
}

want=
example() # NAME [CLIENT-ARGUMENT...]
{
	[[ -d $examples/$1 ]] || return # not in older sources
	if ! build "$1" >log 2>&1; then
		report 'not built' "$1"
		cat log
		return
	fi
	next_port
	duo "$1" "./$1-server" "$address" "$port" -- \
		"./$1-client" "$address" "$port" "${@:2}"
}

# The servers of these examples do not exit.
example_of_many() # NAME SEED...
{
	local server

	[[ -d $examples/$1 ]] || return
	if ! build "$1" >log 2>&1; then
		report 'not built' "$1"
		cat log
		return
	fi
	next_port
	urxe_run "./$1-server" "$address" "$port" >out.server 2>&1 &
	server=$!
	wait_listening $server
	for seed in "${@:2}"; do
		urxe_run "./$1-client" "$address" "$port" "$seed" >out 2>&1
		report $? "$1 $seed"
	done
	stop $server
}

example 01-connection
example 02-read-to-volatile
example 03-read-to-persistent
example 04-write-to-persistent
example 05-flush-to-persistent
example_of_many 06-multiple-connections 8 9 11 12
example_of_many 06scch-multiple-connections 8 9 11 12
example 07-atomic-write first second third
example 08-messages-ping-pong 7 3
example 08srq-simple-messages-ping-pong-with-srq 7 3
example 10-send-with-imm 1234 word
example 11-write-with-imm 1234
example 12-receive-completion-queue 7 3
example 12scch-receive-completion-queue 7 3
finish
