#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# rm.sh URXE HOLD LEAVE: fabrics end with those who use them; what killed
# processes leave is found by others, or removed by hand.
URXE=$1
hold=$2
leave=$3
. "$(dirname "$0")/lib.sh"
fabrics=$URXE_DIR/fabrics # nothing else is in there
mkdir -m 700 "$fabrics"
top=$URXE_DIR
URXE_DIR=$fabrics
pids=
trap 'kill -9 $pids 2>/dev/null; rm -rf "$top"' EXIT

there() {
	[ "$(ls -A "$fabrics" | tr '\n' ' ')" = "$1" ] ||
		die "there is \"$(ls -A "$fabrics" | tr '\n' ' ')\", not \"$1\""
}

# start FABRIC: a process that holds the device open
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
	[ $? = 1 ] || die "$*: not refused: $(cat "$top/out")"
	grep -q "$why" "$top/out" || die "$*: no \"$why\": $(cat "$top/out")"
}

# the last one out, also if it is a child, removes it
look one
there ""
has "the child went on" run "$leave" fork
there ""
start one
look one
there "one "
for i in 1 2 3 4 5 6 7 8 9 10; do
	run "$leave" || die "leaving with threads: exit code $?"
	rm -rf "$fabrics/t" # a thread may have had the device open
done

# and if several are the last at once
for i in 1 2 3 4 5 6 7 8 9 10; do
	others=
	for n in 1 2 3 4; do
		look crowd &
		others="$others $!"
	done
	wait $others
	there "one "
done
# or leaves it, if he is asked to
(export URXE_KEEP=1; look kept)
there "kept one "
"$URXE" rm kept

# one that was killed is found by who makes another one
end $pid
there "one "
start two
there "two "
refused "two is in use" "$URXE" rm two
refused "there is no fabric" "$URXE" rm nosuch
has "$pid shim-hold" "$URXE" info --fabric two
look two

# an empty directory: its creator was killed; --unused leaves it alone
mkdir -m 700 "$fabrics/begun"
"$URXE" rm --unused
there "begun two "
"$URXE" rm begun || die "an empty directory is not removed"
there "two "

# by hand; what is no fabric is left alone
mkdir -m 700 "$fabrics/mine" "$fabrics/half" "$fabrics/half/ctx"
echo mine >"$fabrics/mine/file"
mkdir -m 755 "$fabrics/open"
refused "is no fabric" "$URXE" rm open
echo mine >"$fabrics/open/device"
ln -s "$top" "$fabrics/link"
refused "is no fabric" "$URXE" rm mine
refused "is no fabric" "$URXE" rm open
refused "is no fabric" "$URXE" rm link
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
[ -p "$away/cm.d/1" ] || die "a broken fabric with a user was removed"
exec 9>&-
"$URXE" rm --unused
there "three "
for args in "" "--unused three" "--nosuch"; do
	"$URXE" rm $args >/dev/null 2>&1
	[ $? = 2 ] || die "usage: rm $args"
done

# a port that was taken down is kept, for those who come
said=$("$URXE" port down --fabric down 2>&1) || die "port down"
case $said in
*"there is no fabric down in "*"; there are: three"*"; it is made"*) ;;
*) die "a fabric is made: $said" ;;
esac
has "1: DOWN" "$URXE" run --fabric down \
	cat /sys/class/infiniband/urxe0/ports/1/state
look five
there "down three "
"$URXE" port up --fabric down
look six
there "three "

# those who come and those who go do not disturb each other
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

# in little memory: all jobs have ended, or were killed
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
