#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# fallback.sh URXE NONL: without netlink, programs find the device in files
URXE=$1
nonl=$2
. "$(dirname "$0")/lib.sh"
have ibv_devices || skip "ibv_devices is not installed"
[ -e "$(dirname "$URXE")/../provider/liburxe-rdmav34.so" ] ||
	skip "the build tree has no provider"
LD_PRELOAD=$nonl
export LD_PRELOAD
has urxe0 run ibv_devices
has PORT_ACTIVE run ibv_devinfo
