#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# full.sh URXE: shared memory that is too small for the fabric, or for a context.  Both
# fail at once, and the reason is printed.
URXE=$1
if [ "${FULL_INSIDE-}" != 1 ]; then
	unshare -rm true 2>/dev/null || { echo "skip: no unshare"; exit 77; }
	FULL_INSIDE=1 exec unshare -rm "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
dir=$URXE_DIR/small
top=$URXE_DIR
mkdir "$dir"
trap 'umount "$dir" 2>/dev/null; rm -rf "$top"' EXIT
mount -t tmpfs -o size=256k tmpfs "$dir" 2>/dev/null || skip "no mount"
URXE_DIR=$dir
run cat /sys/class/infiniband/urxe0/node_type >/dev/null 2>"$top/err" &&
	die "a device in 256 KiB"
grep -q "^urxe: no device.*no room" "$top/err" ||
	die "the reason is not printed: $(cat "$top/err")"
[ -z "$(ls "$dir/t/sys" 2>/dev/null)" ] || die "an incomplete tree was left"

umount "$dir" && mount -t tmpfs -o size=2m tmpfs "$dir" || skip "no mount"
export URXE_KEEP=1
has "1: CA" run cat /sys/class/infiniband/urxe0/node_type
dd if=/dev/zero of="$dir/fill" bs=4k 2>/dev/null
if have ibv_devinfo && have timeout; then
	# retry: on a busy machine a run may be late
	for i in 1 2 3 4 5 6 7 8 9 10; do
		timeout 4 "$URXE" run ibv_devinfo >/dev/null 2>"$top/err"
		code=$?
		[ $code = 124 ] || break
	done
	[ $code != 124 ] || die "the program waits for a device"
fi
run dd if=/dev/infiniband/uverbs1000 bs=1 count=1 >/dev/null 2>"$top/err" &&
	die "opened without memory"
grep -q "^urxe: cannot open urxe0.*no room" "$top/err" ||
	die "the reason is not printed: $(cat "$top/err")"
[ -z "$(ls "$dir/t/ctx")" ] || die "an incomplete arena was left"
if have rping; then
	run rping -s -C 1 >/dev/null 2>"$top/err" && die "rdma_cm works without memory"
	grep -q "No space left" "$top/err" || die "the reason is not printed: $(cat "$top/err")"
fi
"$URXE" doctor >"$top/out" && die "urxe doctor reports no problem"
grep -q "^FAIL  $dir: 0 of" "$top/out" || die "doctor: $(cat "$top/out")"
rm "$dir/fill"
