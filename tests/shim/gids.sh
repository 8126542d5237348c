#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# gids.sh URXE: the GID table follows the addresses of the machine
URXE=$1
if [ "${GIDS_INSIDE-}" != 1 ]; then
	command -v ip >/dev/null || { echo "skip: no ip"; exit 77; }
	unshare -rn true 2>/dev/null || { echo "skip: no unshare"; exit 77; }
	GIDS_INSIDE=1 exec unshare -rn "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
port=/sys/class/infiniband/urxe0/ports/1
gids=$port/gids
none=0000:0000:0000:0000:0000:0000:0000:0000
stamp() {
	run stat -c %Y.%Z /sys/class/infiniband/urxe0/
}
# pair INDEX TEXT: check both entries of an address, RoCE v1 and RoCE v2
pair() {
	has "$2" run cat "$gids/$1" "$gids/$(($1 + 1))"
	has 'IB/RoCE v1' run cat "$port/gid_attrs/types/$1"
	[ "$(run cat "$port/gid_attrs/types/$(($1 + 1))")" = 'RoCE v2' ] ||
		die "type of $(($1 + 1))"
	[ "$(run cat "$gids/$1")" = "$(run cat "$gids/$(($1 + 1))")" ] ||
		die "$1 and the next entry have different addresses"
}
free() {
	has $none run cat "$gids/$1"
	run cat "$port/gid_attrs/types/$1" 2>/dev/null && die "type of a free $1"
	run cat "$port/gid_attrs/ndevs/$1" 2>/dev/null && die "ndev of a free $1"
	return 0
}
# the last of the 128 addresses of the table
full() {
	i=0
	while [ $i -lt 140 ]; do
		ip addr add "198.18.0.$i/32" dev d0
		i=$((i + 1))
	done
	pair 254 :ffff:c612:
	has 198.18.0.0 "$URXE" info --fabric t
	n=$("$URXE" info --fabric t | grep -c 'GID .* (v2)')
	[ "$n" = 128 ] || die "$n addresses in a full table"
	i=0
	while [ $i -lt 140 ]; do
		ip addr del "198.18.0.$i/32" dev d0
		i=$((i + 1))
	done
}

# first only the loopback is up, then no interface
ip link set lo up
export URXE_KEEP=1 # slots keep their index while the fabric exists
pair 0 fe80:0000:0000:0000:
pair 2 0000:0000:0000:0000:0000:ffff:7f00:0001
has lo run ls /sys/class/infiniband/urxe0/device/net
before=$(stamp)
ip link set lo down
sleep 0.2
free 2
free 3
pair 0 fe80:0000:0000:0000:
ip link set lo up

for kind in dummy bridge ifb veth none; do
	ip link add d0 type $kind 2>/dev/null && break
done
[ "$kind" != none ] || skip "cannot create a virtual Ethernet interface"
ip link set d0 address 02:11:22:33:44:55 addrgenmode none 2>/dev/null ||
	ip link set d0 address 02:11:22:33:44:55
ip link set d0 up
ip addr add 192.0.2.7/24 dev d0
pair 0 fe80:0000:0000:0000:0011:22ff:fe33:4455
pair 2 :ffff:c000:0207
has d0 run cat $port/gid_attrs/ndevs/2 $port/gid_attrs/ndevs/3
[ "$(run ls /sys/class/infiniband/urxe0/device/net)" = d0 ] || die "net"
ip addr add 198.51.100.1/24 dev d0 label d0:other
pair 4 :ffff:c633:6401
# a link-local address that is not derived from the MAC has entries, too
if ip -6 addr add fe80::77/64 dev d0 nodad 2>/dev/null; then
	pair 6 fe80:0000:0000:0000:0000:0000:0000:0077
	ip -6 addr del fe80::77/64 dev d0
fi
# an interface without a hardware address
if ip tuntap add mode tun t0 2>/dev/null; then
	ip link set t0 up
	ip addr add 203.0.113.1 peer 203.0.113.2 dev t0
	pair 6 :ffff:cb00:7101
	[ "$(run cat $port/gid_attrs/ndevs/6)" = t0 ] || die "t0"
	ip link del t0
	free 6
fi
# a slot keeps its index when an earlier one becomes free
ip addr del 192.0.2.7/24 dev d0
ip addr add 198.51.100.1/24 dev d0 2>/dev/null
free 2
free 3
pair 4 :ffff:c633:6401
has "GID 4 (v1), 5 (v2): ::ffff:198.51.100.1 (d0)" "$URXE" info --fabric t
# free slots are not listed
! have ibv_devinfo || has '::ffff:198.51.100.1, RoCE v2' run ibv_devinfo -v
full
free 2
free 254
# new addresses get the first free slots
ip addr add 192.0.2.8/24 dev d0
pair 2 :ffff:c000:0208
[ "$(stamp)" = "$before" ] || die "the device's identity changed"

# running programs get an event
have ibv_asyncwatch && have stdbuf || exit 0
"$URXE" run -- stdbuf -oL ibv_asyncwatch -d urxe0 >"$URXE_DIR/events" &
until grep -q 'async event FD' "$URXE_DIR/events"; do
	kill -0 $! || die "ibv_asyncwatch"
	sleep 0.05
done
ip addr add 192.0.2.9/24 dev d0
pair 6 :ffff:c000:0209
until grep -qi 'GID' "$URXE_DIR/events"; do
	kill -0 $! || die "ibv_asyncwatch"
	sleep 0.05
done
kill $!
