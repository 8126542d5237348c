#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The ibverbs transport of gloo: three processes add vectors
# shellcheck source=tests/apps/lib.sh
. "$(dirname "$0")/lib.sh"
need_packages libgloo-dev g++ -- g++
[[ -e /usr/include/gloo/transport/ibverbs/device.h ]] ||
	skip "needs the Debian package libgloo-dev"
has_gid 1 || skip 'the device has one GID only'
g++ -O1 -w -o "$work/gloo" "$(dirname "$0")/gloo.cc" -lgloo -libverbs || exit 1

mkdir "$work/store"
processes=()
for rank in 0 1 2; do
	urxe_run "$work/gloo" $rank 3 "$work/store" 1 >"$work/out.$rank" 2>&1 &
	processes+=($!)
done
for rank in 0 1 2; do
	status=0
	wait "${processes[rank]}" || status=$?
	[[ $status != 0 ]] || grep -q '^all right$' "$work/out.$rank" ||
		status='no result'
	report "$status" "gloo, rank $rank of 3"
	[[ $status == 0 ]] || sed 's/^/  /' "$work/out.$rank"
done
finish
