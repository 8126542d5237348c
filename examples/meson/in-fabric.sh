#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# in-fabric.sh NAME COMMAND...: run it with a device of its own.  77: skipped.
name=$1
shift
if ! command -v urxe >/dev/null; then
	echo "urxe is missing"
	exit 77
fi
exec urxe run --fabric "$name.$$" -- "$@"
