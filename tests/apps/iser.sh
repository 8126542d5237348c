#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# iSER: tgt is the target; libiscsi the initiator, in its own programs and in
# qemu-img.  A disk of random bytes is read, another one written, and what came
# is compared.
#
# Debian's tgt lets nobody in by its address alone: an initiator has to be bound
# by its name, too.  It listens at port 3260 of its fabric.
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

next_port # of iSCSI by TCP, which is served as well
urxe_run tgtd -f --iser pool_sz_mb=128 --iscsi portal="127.0.0.1:$port" \
	>"$work/tgtd.log" 2>&1 &
tgtd=$!
wait_listening $tgtd

target() # ACTION OPTION...
{
	tgtadm --lld iser --op "$@" --tid 1
}

# Its control socket is there before its port; the device comes with the first
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

# run NAME PATTERN COMMAND...: it succeeds and prints that, if PATTERN is not empty.
run()
{
	local name=$1 pattern=$2 status i
	shift 2

	# libiscsi 1.19 cancels its thread when it disconnects and does not wait
	# for it before it frees what that reads: such a run is done again.
	for ((i = 0; i < 10; i++)); do
		status=0
		urxe_run "$@" >"$work/out" 2>&1 || status=$?
		[[ $status == 139 || $status == 134 ]] || break
	done
	[[ $status != 0 || ! $pattern ]] || grep -qaE -- "$pattern" "$work/out" ||
		status='not what it should print'
	report "$status" "$name"
	[[ $status == 0 ]] || complain
}

url=iser://127.0.0.1:3260/$disk
run iscsi-inq 'Vendor:IET' iscsi-inq -i $me $url/1
run iscsi-readcapacity16 "Total size:$size" iscsi-readcapacity16 -i $me $url/1
run 'iscsi-perf, in order' '^finished' iscsi-perf -i $me -m 8 -b 16 -t 2 $url/1
run 'iscsi-perf, random' '^finished' iscsi-perf -i $me -m 32 -b 8 -t 2 -r $url/1

# They write, and read again what they wrote.
for test in Read10.Simple Read16.Simple Write10.Simple Write16.Simple \
	CompareAndWrite.Simple; do
	run "iscsi-test-cu $test" 'asserts +([1-9][0-9]* +){3}0 ' \
		iscsi-test-cu -i $me --dataloss --fail --silent \
		-t "ALL.$test" $url/2
done

# What qemu-img reads and writes is the same at the other end.
image() # LUN
{
	echo "json:{\"driver\": \"raw\", \"file\": {\"driver\": \"iscsi\",
		\"transport\": \"iser\", \"portal\": \"127.0.0.1:3260\",
		\"target\": \"$disk\", \"lun\": $1, \"initiator-name\": \"$me\"}}"
}

# libiscsi takes less than 512 KiB at a time by iSER.
chunk=$((256 << 10))
if command -v qemu-img qemu-io >/dev/null &&
	compgen -G '/usr/lib/*/qemu/block-iscsi.so' >/dev/null; then
	run 'qemu-img reads a disk' '' qemu-img dd -f raw -O raw bs=$chunk \
		if="$(image 1)" of="$work/copy"
	cmp "$work/one" "$work/copy"
	report $? 'what it read is what was there'

	writes=()
	split -b $chunk -d -a 3 "$work/one" "$work/piece."
	for ((i = 0; i < size / chunk; i++)); do
		piece=$work/piece.$(printf %03d $i)
		writes+=(-c "write -s $piece $((i * chunk)) $chunk")
	done
	run 'qemu-io writes a disk' '' qemu-io -f raw "${writes[@]}" "$(image 2)"
	cmp "$work/one" "$work/two"
	report $? 'what it wrote is there'
else
	echo "not run: qemu-img (Debian's packages qemu-utils, qemu-block-extra)"
fi

# Debian's tgtd asserts at its end that there are no connections, but those whose
# RDMA_CM_EVENT_TIMEWAIT_EXIT is to come count, too: it is not asked to end.
pkill -9 -P "$(pgrep -P $tgtd)"
wait $tgtd 2>/dev/null
finish
