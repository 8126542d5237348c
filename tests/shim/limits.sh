#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# limits.sh URXE HOLD LOCK: resource limits and unusual settings lead to errors with a
# reason, and only used memory is locked.
URXE=$1
hold=$2
lock=$3
. "$(dirname "$0")/lib.sh"
top=$URXE_DIR
trap 'rm -rf "$top"' EXIT
URXE_DIR=$top/fabrics
mkdir -m 700 "$URXE_DIR"
state=/sys/class/infiniband/urxe0/ports/1/state

# fails WHY COMMAND...: check that it fails with an exit code, not with a signal
fails() {
	why=$1
	shift
	"$@" >"$top/out" 2>&1
	code=$?
	[ $code != 0 ] && [ $code -lt 126 ] ||
		die "$*: exit code $code: $(cat "$top/out")"
	grep -q "$why" "$top/out" || die "$*: no \"$why\": $(cat "$top/out")"
}

limited() {
	(
		ulimit "$1" "$2"
		shift 2
		"$@"
	)
}

open_device() {
	URXE_LOG=1 "$URXE" run ibv_devinfo
}

# too small for the files of a fabric, and for those of a context (512-byte blocks)
fails "urxe: no device.*ulimit -f allows 100 KiB" \
	limited -f 200 "$URXE" run cat $state
fails "urxe: cannot open urxe0.*ulimit -f allows 102400 KiB" \
	limited -f 204800 "$URXE" run dd if=/dev/infiniband/uverbs1000 count=0
fails "^FAIL  file size: .*ulimit -f allows 102400 KiB" \
	limited -f 204800 "$URXE" doctor
[ -z "$(ls "$URXE_DIR")" ] || [ -z "$(ls "$URXE_DIR/t/ctx")" ] ||
	die "left: $(ls "$URXE_DIR/t/ctx")"
if have ibv_devinfo; then
	fails "1024 MiB more address space.*ulimit -v allows 781 MiB" \
		limited -v 800000 open_device
	fails "urxe: cannot open urxe0.*ulimit -v allows 781 MiB" \
		limited -v 800000 "$URXE" run ibv_devinfo
	# the second mapping, for the asynchronous events
	fails "urxe: cannot open urxe0.*ulimit -v allows 1367 MiB" \
		limited -v 1400000 "$URXE" run ibv_devinfo
	# with any number of descriptors, the message about the limit is printed once
	files=4
	until limited -n $((files += 1)) "$URXE" run ibv_devinfo \
		>"$top/out" 2>&1; do
		[ "$(grep -c "ulimit -n allows $files\$" "$top/out")" = 1 ] ||
			die "ulimit -n $files: $(cat "$top/out")"
		[ "$files" -lt 30 ] || die "30 descriptors: $(cat "$top/out")"
	done
	[ "$files" -gt 8 ] || die "$files descriptors suffice"
	fails "^FAIL  address space: ulimit -v allows 781 MiB" \
		limited -v 800000 "$URXE" doctor
	has "warn  address space: ulimit -v allows 2929 MiB" \
		limited -v 3000000 "$URXE" doctor
	has PORT_ACTIVE limited -v 3000000 "$URXE" run ibv_devinfo
fi

for size in x 64X 64MB M -1 0 4M4 ' '; do
	export URXE_DM_SIZE="$size"
	fails "URXE_DM_SIZE=$size is not a size" "$URXE" run cat $state
	fails "^FAIL  URXE_DM_SIZE=$size is not a size" "$URXE" doctor
done
URXE_DM_SIZE=4m
has ACTIVE run cat $state
unset URXE_DM_SIZE

# each context uses 1 GiB of address space, but little memory
mkfifo "$top/in"
"$URXE" run "$lock" <"$top/in" >"$top/out" 2>&1 &
exec 3>"$top/in"
started() {
	[ -s "$top/out" ] || ! kill -0 $! 2>/dev/null
}
await "it does not start" started
if grep -q "^open" "$top/out"; then
	kib=$(du -sk "$URXE_DIR" | cut -f 1)
	[ "$kib" -lt 32768 ] || die "$kib KiB: $(du -ak "$URXE_DIR/t" | sort -n)"
fi
exec 3>&-
wait $!
code=$?
[ $code = 77 ] && skip "mlockall is not permitted"
[ $code = 0 ] || die "exit code $code: $(cat "$top/out")"
