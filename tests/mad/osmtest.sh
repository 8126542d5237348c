#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# osmtest.sh URXE: the services of the subnet administrator, by the test program of
# OpenSM, with the built-in one and with that of OpenSM
URXE=$1
. "$(dirname "$0")/../shim/lib.sh"
have osmtest || skip "osmtest is not installed"
have saquery || skip "infiniband-diags is not installed"
export URXE_KEEP=1
# osmtest returns a status that it has not set
unset MALLOC_PERTURB_

# flow DIR FLOW: run a flow of osmtest, with its files in DIR.
flow() {
	OSM_TMP_DIR="$1/" OSM_CACHE_DIR="$1/" "$URXE" run -- osmtest -f "$2" -i "$1/inventory" \
		-l "$1/log" >"$1/out" 2>&1 || die "osmtest -f $2: $(cat "$1/out")"
	grep -q PASS "$1/out" || die "osmtest -f $2: $(cat "$1/out")"
}
# flows DIR: the inventory, which the other flows read, and the services
flows() {
	mkdir "$1"
	flow "$1" c
	flow "$1" s
}

"$URXE" run --devices 2 --link-layer infiniband -- true || die "run"
flows "$URXE_DIR/builtin.d"
have opensm || exit 0
export URXE_FABRIC=osm URXE_SM=external
"$URXE" run --devices 2 --link-layer infiniband -- true || die "run --sm external"
mkdir "$URXE_DIR/opensm.d"
OSM_TMP_DIR="$URXE_DIR/opensm.d/" OSM_CACHE_DIR="$URXE_DIR/opensm.d/" \
	"$URXE" run -- opensm -f "$URXE_DIR/opensm.d/log" \
	-g "$(run cat /sys/class/infiniband/urxe0/node_guid | sed 's/://g; s/^/0x/')" \
	>"$URXE_DIR/opensm.d/out" 2>&1 &
sm=$!
answers() {
	run saquery -c >/dev/null 2>&1
}
await "OpenSM" answers
flows "$URXE_DIR/external.d"
kill $sm
wait $sm
exit 0
