#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# doctor.sh URXE RING: urxe doctor checks completion rings, damaged ones and rings in use
URXE=$1
ring=$2
. "$(dirname "$0")/lib.sh"

# kill the background processes at exit
pids=
trap 'kill -9 $pids 2>/dev/null; rm -rf "$URXE_DIR"' EXIT

# start PROGRAM...: start it in the background, and wait for its first line
start() {
	: >"$URXE_DIR/out"
	"$@" >"$URXE_DIR/out" 2>&1 &
	pid=$!
	pids="$pids $pid"
	await "$* does not start" [ -s "$URXE_DIR/out" ]
}

end() {
	kill -9 "$@"
	wait "$@" 2>/dev/null || :
}

doctor() {
	"$URXE" doctor | grep "completion queue"
}

mkdir -m 700 "$URXE_DIR/empty"
[ -z "$(URXE_FABRIC=empty doctor)" ] || die "CQs are reported although no fabric exists"
start "$ring" empty
has "ok    completion queues: 1 in use, all rings are consistent" doctor
empty=$pid
start "$ring" busy
for i in 1 2 3 4 5; do
	has "completion queues: 2 in use, all rings are consistent" doctor
done
end "$pid"
for what in lap state owner hole place; do
	start "$ring" $what
	has "FAIL  completion queue 1 of shim-ring (PID $pid): " doctor
	[ "$(doctor | wc -l)" = 1 ] || die "not only $what is reported: $(doctor)"
	"$URXE" doctor >/dev/null && die "urxe doctor exits with 0"
	end "$pid"
done
has "1 in use, all rings are consistent" doctor
end "$empty"
has "0 in use" doctor

port=$((20000 + $$ % 10000))
have ibv_rc_pingpong || exit 0
listening() {
	grep -q "$(printf ':%04X .* 0A ' $port)" /proc/net/tcp /proc/net/tcp6
}
two_in_use() {
	doctor | grep -q "2 in use"
}
# not with run(): the shell would be killed instead of the program
"$URXE" run -- ibv_rc_pingpong -g 0 -n 1000000000 -p $port >/dev/null 2>&1 &
one=$!
pids="$pids $one"
await "no server" listening
"$URXE" run -- ibv_rc_pingpong -g 0 -n 1000000000 -p $port localhost \
	>/dev/null 2>&1 &
two=$!
pids="$pids $two"
await "no pingpong" two_in_use
for i in 1 2 3 4 5; do
	has "2 in use, all rings are consistent" doctor
done
end $one $two
