#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# iSER: tgt is the target; libiscsi is the initiator, in its own programs and in
# qemu-img.  A disk of random data is read, another one is written, and the data is
# compared.
#
# Debian's tgt accepts an initiator only if both its address and its name are bound to
# the target.  It listens on port 3260 of its fabric.
# shellcheck source=tests/apps/lib.sh
. "$(dirname "$0")/lib.sh"
need_packages tgt libiscsi-bin -- tgtd tgtadm iscsi-inq iscsi-readcapacity16 \
	iscsi-perf iscsi-test-cu

export TGT_IPC_SOCKET=$work/control
me=iqn.2026-11.test.urxe:initiator
disk=iqn.2026-11.test.urxe:disk
size=$((16 << 20))
head -c $size /dev/urandom >"$work/one"
truncate -s $size "$work/two"

next_port # for iSCSI over TCP, which tgt serves as well
urxe_run tgtd -f --iser pool_sz_mb=128 --iscsi portal="127.0.0.1:$port" \
	>"$work/tgtd.log" 2>&1 &
tgtd=$!
wait_listening $tgtd

target() # ACTION OPTION...
{
	tgtadm --lld iser --op "$@" --tid 1
}

# The control socket exists before the port; tgtd opens the device at the first
# connection.
lun=0
{
	target new --mode target --targetname $disk &&
		for file in one two; do
			lun=$((lun + 1))
			target new --mode logicalunit --lun $lun -b "$work/$file" ||
				break
		done &&
		target bind --mode target --initiator-address ALL &&
		target bind --mode target --initiator-name $me
} >"$work/out" 2>&1
report $? 'tgtadm: a target with two disks'
sed 's/^/  /' "$work/out"

complain()
{
	sed 's/^/  /' "$work/out"
	tail -n 20 "$work/tgtd.log" | sed 's/^/  tgtd: /'
}

# run NAME PATTERN COMMAND...: check that the command succeeds, and that its output
# matches PATTERN, if that is not empty.
run()
{
	local name=$1 pattern=$2 status i
	shift 2

	# retry after a crash: libiscsi 1.19 cancels its thread when it
	# disconnects, and frees memory that the thread still uses
	for ((i = 0; i < 10; i++)); do
		status=0
		urxe_run "$@" >"$work/out" 2>&1 || status=$?
		[[ $status == 139 || $status == 134 ]] || break
	done
	[[ $status != 0 || ! $pattern ]] || grep -qaE -- "$pattern" "$work/out" ||
		status='unexpected output'
	report "$status" "$name"
	[[ $status == 0 ]] || complain
}

url=iser://127.0.0.1:3260/$disk
run iscsi-inq 'Vendor:IET' iscsi-inq -i $me $url/1
run iscsi-readcapacity16 "Total size:$size" iscsi-readcapacity16 -i $me $url/1
run 'iscsi-perf, in order' '^finished' iscsi-perf -i $me -m 8 -b 16 -t 2 $url/1
run 'iscsi-perf, random' '^finished' iscsi-perf -i $me -m 32 -b 8 -t 2 -r $url/1

# These tests write, and read the data back.
for test in Read10.Simple Read16.Simple Write10.Simple Write16.Simple \
	CompareAndWrite.Simple; do
	run "iscsi-test-cu $test" 'asserts +([1-9][0-9]* +){3}0 ' \
		iscsi-test-cu -i $me --dataloss --fail --silent \
		-t "ALL.$test" $url/2
done

# Compare the data that qemu-img reads and writes with that of the target.
image() # LUN
{
	echo "json:{\"driver\": \"raw\", \"file\": {\"driver\": \"iscsi\",
		\"transport\": \"iser\", \"portal\": \"127.0.0.1:3260\",
		\"target\": \"$disk\", \"lun\": $1, \"initiator-name\": \"$me\"}}"
}

# over iSER, libiscsi accepts less than 512 KiB at a time
chunk=$((256 << 10))
if command -v qemu-img qemu-io >/dev/null &&
	compgen -G '/usr/lib/*/qemu/block-iscsi.so' >/dev/null; then
	run 'qemu-img reads a disk' '' qemu-img dd -f raw -O raw bs=$chunk \
		if="$(image 1)" of="$work/copy"
	cmp "$work/one" "$work/copy"
	report $? 'qemu-img read the data of the disk'

	writes=()
	split -b $chunk -d -a 3 "$work/one" "$work/piece."
	for ((i = 0; i < size / chunk; i++)); do
		piece=$work/piece.$(printf %03d $i)
		writes+=(-c "write -s $piece $((i * chunk)) $chunk")
	done
	run 'qemu-io writes a disk' '' qemu-io -f raw "${writes[@]}" "$(image 2)"
	cmp "$work/one" "$work/two"
	report $? 'qemu-io wrote the data to the disk'
else
	echo "not run: qemu-img (Debian packages qemu-utils, qemu-block-extra)"
fi

# Kill tgtd: on a normal exit, Debian's tgtd asserts that it has no connections, and
# counts those that wait for RDMA_CM_EVENT_TIMEWAIT_EXIT.
pkill -9 -P "$(pgrep -P $tgtd)"
wait $tgtd 2>/dev/null
finish
