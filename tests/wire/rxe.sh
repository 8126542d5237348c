#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# rxe.sh: all programs against the other host, with each end as the server.  For
# "hosts -k": the other host is a kernel with rxe.
set -u
here=$(dirname "$0")
status=0
for server in a b; do
	export WIRE_SERVER=$server
	echo "the server: $server"
	"$here/pingpong.sh" rc uc ud || status=1
	"$here/perftest.sh" 'write RC' 'read RC' 'atomic RC' 'send RC' \
		'send UD' || status=1
	"$here/rdmacm.sh" rping ucmatose udaddy || status=1
done
"$here/mckey.sh" || status=1
exit $status
