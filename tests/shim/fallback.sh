#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# fallback.sh URXE NONL: a sandbox without netlink finds the device by files.
URXE=$1
nonl=$2
. "$(dirname "$0")/lib.sh"
have ibv_devices || skip "no ibv_devices"
[ -e "$(dirname "$URXE")/../provider/liburxe-rdmav34.so" ] ||
	skip "no provider in the build tree"
LD_PRELOAD=$nonl
export LD_PRELOAD
has urxe0 run ibv_devices
has PORT_ACTIVE run ibv_devinfo
