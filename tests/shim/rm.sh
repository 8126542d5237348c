#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# rm.sh URXE HOLD LEAVE: a fabric is removed when its last process ends; fabrics of
# killed processes are removed by others, or by urxe rm.
URXE=$1
hold=$2
leave=$3
. "$(dirname "$0")/lib.sh"
fabrics=$URXE_DIR/fabrics # contains only fabrics
mkdir -m 700 "$fabrics"
top=$URXE_DIR
URXE_DIR=$fabrics
pids=
trap 'kill -9 $pids 2>/dev/null; rm -rf "$top"' EXIT

there() {
	[ "$(ls -A "$fabrics" | tr '\n' ' ')" = "$1" ] ||
		die "there is \"$(ls -A "$fabrics" | tr '\n' ' ')\", not \"$1\""
}

# start FABRIC: start a process that keeps the device open
start() {
	"$URXE" run --fabric "$1" "$hold" &
	pid=$!
	pids="$pids $pid"
	await "no context in $1" holds "$1"
}

holds() {
	"$URXE" info --fabric "$1" 2>&1 | grep -q "$pid shim-hold"
}

end() {
	kill -9 "$1"
	wait "$1" 2>/dev/null
}

look() {
	"$URXE" run --fabric "$1" cat /sys/class/infiniband/urxe0/node_type \
		>/dev/null || die "no device in $1"
}

# refused WHY COMMAND...
refused() {
	why=$1
	shift
	"$@" >"$top/out" 2>&1
	[ $? = 1 ] || die "$*: accepted: $(cat "$top/out")"
	grep -q "$why" "$top/out" || die "$*: no \"$why\": $(cat "$top/out")"
}

# the last process removes the fabric, also if it is a forked child
look one
there ""
has "the child continued" run "$leave" fork
there ""
start one
look one
there "one "
for i in 1 2 3 4 5 6 7 8 9 10; do
	run "$leave" || die "exit with threads: exit code $?"
	rm -rf "$fabrics/t" # a thread may have kept the device open
done

# several processes exit at the same time
for i in 1 2 3 4 5 6 7 8 9 10; do
	others=
	for n in 1 2 3 4; do
		look crowd &
		others="$others $!"
	done
	wait $others
	there "one "
done
# with URXE_KEEP the fabric remains
(export URXE_KEEP=1; look kept)
there "kept one "
"$URXE" rm kept

# the fabric of a killed process is removed when another fabric is created
end $pid
there "one "
start two
there "two "
refused "two is in use" "$URXE" rm two
refused "no fabric nosuch" "$URXE" rm nosuch
has "$pid shim-hold" "$URXE" info --fabric two
look two

# an empty directory, whose creator was killed: --unused does not remove it
mkdir -m 700 "$fabrics/begun"
"$URXE" rm --unused
there "begun two "
"$URXE" rm begun || die "an empty directory is not removed"
there "two "

# urxe rm removes only fabrics
mkdir -m 700 "$fabrics/mine" "$fabrics/half" "$fabrics/half/ctx"
echo mine >"$fabrics/mine/file"
mkdir -m 755 "$fabrics/open"
refused "is not a fabric" "$URXE" rm open
echo mine >"$fabrics/open/device"
ln -s "$top" "$fabrics/link"
refused "is not a fabric" "$URXE" rm mine
refused "is not a fabric" "$URXE" rm open
refused "is not a fabric" "$URXE" rm link
has "removed half" "$URXE" rm --unused
there "link mine open two "
end $pid
"$URXE" rm two || die "not removed"
there "link mine open "
start three
three=$pid
start four
end $pid
has "removed four" "$URXE" rm --unused
there "link mine open three "
rm -r "$fabrics/link" "$fabrics/mine" "$fabrics/open"
moved=$fabrics/.gone.x
mkdir -m 700 "$moved" "$moved/cm.d"
mkfifo "$moved/cm.d/1"
away=$fabrics/.gone.$(printf %x "$(stat -c %i "$moved")")
mv "$moved" "$away"
exec 9<>"$away/cm.d/1" # an event channel of rdma_cm
"$URXE" rm --unused
[ -p "$away/cm.d/1" ] || die "a damaged fabric in use was removed"
exec 9>&-
"$URXE" rm --unused
there "three "
for args in "" "--unused three" "--nosuch"; do
	"$URXE" rm $args >/dev/null 2>&1
	[ $? = 2 ] || die "usage: rm $args"
done

# a fabric whose port is down is kept, so that later programs find the port down
said=$("$URXE" port down --fabric down 2>&1) || die "port down"
case $said in
*"no fabric down in "*"; existing: three"*"; creating fabric down"*) ;;
*) die "urxe port created a fabric: $said" ;;
esac
has "1: DOWN" "$URXE" run --fabric down \
	cat /sys/class/infiniband/urxe0/ports/1/state
look five
there "down three "
"$URXE" port up --fabric down
look six
there "three "

# processes that start and processes that exit at the same time
others=
for n in 1 2 3 4; do
	(for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		look t
		look job-$n-$i
	done) &
	others="$others $!"
done
for p in $others; do
	wait "$p" || die "a racer"
done
has "1: CA" "$URXE" run --fabric three \
	cat /sys/class/infiniband/urxe0/node_type
end $three
"$URXE" rm --unused >/dev/null
there ""

# little memory, in which many jobs ended or were killed
[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || exit 0
URXE="$URXE" hold="$hold" dir="$fabrics" unshare -m sh -euc '
	mount -t tmpfs -o mode=700,size=8m tmpfs "$dir" || exit 0
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		"$URXE" run --fabric job-$i \
			cat /sys/class/infiniband/urxe0/node_type >/dev/null
		"$URXE" run --fabric kill-$i "$hold" &
		n=0
		until "$URXE" info --fabric kill-$i 2>/dev/null |
			grep -q "$! shim-hold"; do
			n=$((n + 1))
			[ $n -lt 2400 ] || exit 1
			sleep 0.05
		done
		kill -9 $!
		wait $! || :
	done 2>"$dir/err"
	[ "$(ls "$dir" | wc -l)" = 2 ]' || die "jobs in 8 MiB"
