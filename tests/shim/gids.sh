#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# gids.sh URXE: the GID table follows the machine's addresses.
URXE=$1
if [ "${GIDS_INSIDE-}" != 1 ]; then
	command -v ip >/dev/null || { echo "skip: no ip"; exit 77; }
	unshare -rn true 2>/dev/null || { echo "skip: no unshare"; exit 77; }
	GIDS_INSIDE=1 exec unshare -rn "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
gids=/sys/class/infiniband/urxe0/ports/1/gids
stamp() {
	run stat -c %Y.%Z /sys/class/infiniband/urxe0/
}

# nothing up but the loopback, then not even that
ip link set lo up
export URXE_KEEP=1 # a slot keeps its index as long as the fabric lives
has 0000:0000:0000:0000:0000:ffff:7f00:0001 run cat $gids/1
has lo run ls /sys/class/infiniband/urxe0/device/net
before=$(stamp)
ip link set lo down
sleep 0.2
has 0000:0000:0000:0000:0000:0000:0000:0000 run cat $gids/1
has fe80:0000:0000:0000: run cat $gids/0
ip link set lo up

for kind in dummy bridge ifb none; do
	ip link add d0 type $kind 2>/dev/null && break
done
[ $kind != none ] || skip "no virtual Ethernet interface"
ip link set d0 address 02:11:22:33:44:55 addrgenmode none 2>/dev/null ||
	ip link set d0 address 02:11:22:33:44:55
ip link set d0 up
ip addr add 192.0.2.7/24 dev d0
has fe80:0000:0000:0000:0011:22ff:fe33:4455 run cat $gids/0
has :ffff:c000:0207 run cat $gids/1
has d0 run cat ${gids%gids}gid_attrs/ndevs/1
[ "$(run ls /sys/class/infiniband/urxe0/device/net)" = d0 ] || die "net"
ip addr add 198.51.100.1/24 dev d0
has :ffff:c633:6401 run cat $gids/2
# a slot keeps its index when an earlier one is vacated
ip addr del 192.0.2.7/24 dev d0
ip addr add 198.51.100.1/24 dev d0 2>/dev/null
has 0000:0000:0000:0000:0000:0000:0000:0000 run cat $gids/1
has :ffff:c633:6401 run cat $gids/2
run cat ${gids%gids}gid_attrs/ndevs/1 2>/dev/null && die "ndevs of a free slot"
has "::ffff:198.51.100.1 (d0)" "$URXE" info --fabric t
[ "$(stamp)" = "$before" ] || die "the device's identity changed"
