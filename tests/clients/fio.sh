#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# fio with its rdma engine: WRITE, READ and SEND between two processes.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
need fio
if ! fio --enghelp 2>/dev/null | grep -qw rdma; then
	echo "skipped: this fio has no rdma engine"
	exit 77
fi

# fio connects without RNR retries, so the receiver of SENDs posts a receive for each
# block at once.  With fewer receives, or with --verify, which delays posting them
# again, the sender gets RNR_RETRY_EXC_ERR, and both fio processes wait forever, as with
# any device.  The client's side is "write" for all verbs.
blocks=64
want='err= 0'
for verb in write read send; do
	next_port
	common="--ioengine=rdma --port=$port --bs=64k --size=4m --thread"
	# shellcheck disable=SC2086 # the options are words
	duo "fio, verb $verb" fio --name=receiver $common --rw=read \
		--iodepth=$blocks -- fio --name=sender $common --rw=write \
		--verb=$verb --iodepth=16 --hostname=127.0.0.1
done
finish
