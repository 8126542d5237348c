#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# in-fabric.sh NAME COMMAND...: run the command with its own RDMA device.  Exit
# status 77: skipped, urxe is not installed.
name=$1
shift
if ! command -v urxe >/dev/null; then
	echo "urxe is missing"
	exit 77
fi
exec urxe run --fabric "$name.$$" -- "$@"
