#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# place.sh URXE HOLD: /dev/shm/urxe-UID exists already, and belongs to another user.
# urxe does not change it; all processes find the same substitute.  The test has a
# private /dev/shm.
if [ "${PLACE_INSIDE-}" != 1 ]; then
	# only root can create a directory of another user
	user=-r
	[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null && user=
	unshare $user -m true 2>/dev/null || { echo "skip: no unshare"; exit 77; }
	PLACE_INSIDE=1 exec unshare $user -m "$0" "$@"
fi
URXE=$1
hold=$2
mount -t tmpfs -o mode=1777 tmpfs /dev/shm 2>/dev/null ||
	{ echo "skip: no mount"; exit 77; }
. "$(dirname "$0")/lib.sh"
top=$URXE_DIR
trap 'rm -rf "$top"' EXIT
unset URXE_DIR URXE_LOG
name=/dev/shm/urxe-$(id -u)

entries() {
	find "$1" -mindepth 1 | wc -l
}

places() {
	find /dev/shm -maxdepth 1 -name "${name##*/}.*" | wc -l
}

# Check that the device exists, and that $name is unchanged.
works() {
	before=$(ls -ldn "$name")
	run cat /sys/class/infiniband/urxe0/node_type >"$top/out" 2>"$top/err" ||
		die "$1: no device: $(cat "$top/err")"
	grep -q "1: CA" "$top/out" || die "$1: $(cat "$top/out")"
	grep -q "^urxe: $name is .* not used: the fabric is $name\.[0-9a-f]*/t$" \
		"$top/err" || die "$1: the substitute is not logged: $(cat "$top/err")"
	[ "$(ls -ldn "$name")" = "$before" ] || die "$1: $name was changed"
	[ "$(places)" = 1 ] || die "$1: $(ls /dev/shm)"
	has "warn  $name is " "$URXE" doctor
	has "ok    fabric $name." "$URXE" doctor
}

again() {
	rm -rf "$name" "$name".*
}

mkdir "$top/victim"
if chown 1234 "$top/victim" 2>/dev/null; then
	for mode in 700 755 1777; do
		mkdir "$name" && chmod $mode "$name" && chown 1234:1234 "$name"
		works "another user's directory, mode $mode"
		[ "$(entries "$name")" = 0 ] || die "made: $(find "$name")"
		again
	done
	# a directory that the user has set is not replaced by a substitute
	mkdir "$top/other" && chown 1234 "$top/other"
	URXE_DIR=$top/other run cat /sys/class/infiniband/urxe0/node_type \
		>/dev/null 2>"$top/err" && die "the URXE_DIR of another user is accepted"
	grep -q "^urxe: no device.*other must be a directory of uid" "$top/err" ||
		die "the reason is not printed: $(cat "$top/err")"
	[ "$(entries "$top/other")" = 0 ] || die "made: $(find "$top/other")"
	URXE_DIR=$top/other "$URXE" doctor | grep -q "^FAIL  fabric .*other" ||
		die "urxe doctor does not report it"
	chown 0 "$top/victim"
fi

mkdir "$name" && chmod 777 "$name"
works "a directory that all may write to"
[ "$(entries "$name")" = 0 ] || die "made: $(find "$name")"
again
echo file >"$name"
works "a file"
again
ln -s "$top/victim" "$name"
works "a link"
[ "$(entries "$top/victim")" = 0 ] || die "made: $(find "$top/victim")"

# all processes use one place, also if several are the first at the same time
for round in 1 2 3 4 5; do
	again
	mkdir "$name" && chmod 777 "$name"
	pids=
	for i in 1 2 3 4 5 6; do
		run cat /sys/class/infiniband/urxe0/node_type >/dev/null 2>&1 &
		pids="$pids $!"
	done
	for p in $pids; do
		wait "$p" || die "a concurrent process: exit code $?"
	done
	[ "$(places)" = 1 ] || die "several places: $(ls /dev/shm)"
done
"$URXE" run "$hold" >/dev/null 2>&1 &
one=$!
trap 'kill -9 $one; rm -rf "$top"' EXIT
seen() {
	"$URXE" info 2>&1 | grep -q "$one shim-hold"
}
await "not seen" seen
# they use one place also when the name is free again
rm -r "$name"
has "$one shim-hold" "$URXE" info
has "1: CA" run cat /sys/class/infiniband/urxe0/node_type
[ ! -e "$name" ] && [ "$(places)" = 1 ] || die "several places: $(ls /dev/shm)"

# the place is removed with its last fabric, also while others create fabrics in it
kill -9 $one
trap 'rm -rf "$top"' EXIT
wait $one 2>/dev/null
again
for round in 1 2 3 4 5 6 7 8; do
	pids=
	for i in 1 2 3 4 5 6; do
		"$URXE" run --fabric "f$i" cat \
			/sys/class/infiniband/urxe0/node_type \
			>/dev/null 2>"$top/err$i" &
		pids="$pids $!"
	done
	for p in $pids; do
		wait "$p" || die "creating a fabric failed: $(cat "$top"/err?)"
	done
	[ ! -e "$name" ] || die "left: $(find "$name")"
done
