#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# netns.sh URXE HOLD: two network namespaces, like those of containers, share a fabric:
# it has the GIDs of both, and programs connect.
URXE=$1 hold=$2
if [ "${NETNS_INSIDE-}" != 1 ]; then
	command -v ip >/dev/null || { echo "skip: no ip"; exit 77; }
	unshare -rn true 2>/dev/null || { echo "skip: no unshare"; exit 77; }
	NETNS_INSIDE=1 exec unshare -rn "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"

unshare -n sleep 300 &
other=$! here_held='' there_held=''
trap 'kill $other $here_held $there_held 2>/dev/null; rm -rf "$URXE_DIR"' EXIT
there() {
	nsenter -t $other -n -- "$@"
}
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do
	sleep 0.05
done
ip link add v0 type veth peer name v1 2>/dev/null || skip "cannot create veth interfaces"
ip link set v1 netns $other
ip addr add 192.0.2.1/24 dev v0
ip link set v0 up
there ip addr add 192.0.2.2/24 dev v1
there ip link set v1 up

# each of these commands updates the addresses
look() {
	"$@" "$URXE" run -- cat /sys/class/infiniband/urxe0/ports/1/state \
		>/dev/null || die "look"
}
index() {
	"$URXE" info --fabric t | sed -n "s/.*, \(.*\) (v2): ::ffff:$1 .*/\1/p"
}
# the addresses of both have entries, which do not change at updates from either
URXE_KEEP=1 look env
"$URXE" run -- "$hold" &
here_held=$!
# until then its addresses can be replaced by those of the other namespace
until "$URXE" info --fabric t | grep -q shim-hold; do
	kill -0 $here_held || die "hold"
done
nsenter -t $other -n -- "$URXE" run -- "$hold" &
there_held=$!
until [ -n "$(index 192.0.2.2)" ]; do
	kill -0 $there_held || die "hold"
	look there
done
[ "$(index 192.0.2.1)" = 3 ] || die "192.0.2.1 is not at 3"
all=$("$URXE" info --fabric t | grep 'GID .*v2')
for i in 1 2 3; do
	look there
	look env
	[ "$("$URXE" info --fabric t | grep 'GID .*v2')" = "$all" ] ||
		die "$i: the table has changed"
done

if have ibv_rc_pingpong; then
	nsenter -t $other -n -- "$URXE" run -- ibv_rc_pingpong \
		-g "$(index 192.0.2.2)" \
		>"$URXE_DIR/server" 2>&1 &
	server=$!
	until there ss -tln 2>/dev/null | grep -q :18515; do
		kill -0 $server || die "$(cat "$URXE_DIR/server")"
		sleep 0.05
	done
	has 'bytes in' run ibv_rc_pingpong -g "$(index 192.0.2.1)" 192.0.2.2
	wait $server || die "$(cat "$URXE_DIR/server")"
fi
if have rping; then
	rping=$(realpath "$(dirname "$0")/../clients/rping")
	nsenter -t $other -n -- "$URXE" run -- "$rping" -s -a 192.0.2.2 -C 3 \
		>"$URXE_DIR/server" 2>&1 &
	server=$!
	n=0
	until run "$rping" -c -a 192.0.2.2 -C 3 >"$URXE_DIR/client" 2>&1; do
		kill -0 $server || die "$(cat "$URXE_DIR/server")"
		n=$((n + 1)) # the server does not listen yet
		[ $n -lt 600 ] || die "$(cat "$URXE_DIR/client")"
		sleep 0.1
	done
	wait $server || die "$(cat "$URXE_DIR/server")"
fi

# when no process is left in the namespace, its addresses are removed
kill $there_held
wait $there_held
until [ -z "$(index 192.0.2.2)" ]; do
	sleep 0.05
done
[ "$(index 192.0.2.1)" = 3 ] || die "192.0.2.1 went, too"

# a process that enters the namespace later keeps the addresses
"$URXE" run -- "$hold" /proc/$other/ns/net >"$URXE_DIR/moved" &
there_held=$!
until grep -qs moved "$URXE_DIR/moved"; do
	kill -0 $there_held || die "hold"
	sleep 0.05
done
look env
[ -n "$(index 192.0.2.2)" ] || die "the addresses of a process that changed its namespace are removed"
kill $here_held $there_held
