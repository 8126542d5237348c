#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The PCI function of the device in stock programs, and scripts that read /sys.  The
# functions of the host are unchanged.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
need ibv_devinfo

slot=7578:ff:00.0
if command -v lstopo-no-graphics >/dev/null; then
	check 'lstopo: the PCI function' "PCI $slot \(Ethernet\)" \
		lstopo-no-graphics --of console
	check 'lstopo: the device' 'OpenFabrics "urxe0"' \
		lstopo-no-graphics --of console
fi
if command -v lspci >/dev/null; then
	check 'lspci' "^$slot Ethernet controller: .*7278:0001" lspci -D
	check 'lspci -k' 'Kernel driver in use: urxe' lspci -k -s "$slot"
fi
if ucx_has_verbs; then
	check 'ucx_info' 'System device: urxe0' \
		env UCX_NET_DEVICES=urxe0:1 ucx_info -d
fi

# shellcheck disable=SC2016 # for the inner shell
show_gids='
for port in /sys/class/infiniband/*/ports/*; do
	for gid in "$port"/gids/*; do
		read -r raw <"$gid"
		[[ $raw =~ [1-9a-f] ]] || continue
		i=${gid##*/}
		read -r type <"$port/gid_attrs/types/$i"
		read -r ndev <"$port/gid_attrs/ndevs/$i"
		echo "$i $raw $type $ndev"
	done
done'
check 'a script: GID 3 is RoCE v2' '^3 .*:.* RoCE v2 [a-z]' \
	bash -c "$show_gids"
check 'a script: GID 2 is RoCE v1' '^2 .*:.* IB/RoCE v1 [a-z]' \
	bash -c "$show_gids"
check 'a script: the PCI function of an RDMA device' "/$slot/infiniband/urxe0$" \
	bash -c 'ls -d /sys/bus/pci/devices/*/infiniband/urxe0'
check 'a script: the network interface of an RDMA device' '^[a-z]' \
	ls /sys/class/infiniband/urxe0/device/net

# print all PCI functions of the host, with their files
host()
{
	# shellcheck disable=SC2016 # for the inner shell
	"$@" bash -c 'cd /sys/bus/pci/devices && for i in *; do
		echo "$i $(readlink -f "$i")" \
			"$(paste "$i/vendor" "/sys/bus/pci/devices/$i/device")"
	done' 2>&1 | grep -v "^$slot "
}
if [[ -d /sys/bus/pci/devices ]]; then
	[[ "$(host urxe_run)" == "$(host env)" ]]
	report $? "the host's functions are as before"
fi
finish
