# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# What the client tests share.  $URXE is the urxe command.

set -u
export LC_ALL=C
failed=0
passed=0

# Not with a sanitizer's library, with which procps has been seen to hang.
pgrep()
{
	LD_PRELOAD='' command pgrep "$@"
}

pkill()
{
	LD_PRELOAD='' command pkill "$@"
}

# Programs of a package that may be missing.
need()
{
	local cmd

	for cmd in "$@"; do
		if ! command -v "$cmd" >/dev/null; then
			echo "skipped: $cmd is not installed"
			exit 77
		fi
	done
}

# UCX with its transports of verbs: Debian's 1.23 has none.
ucx_has_verbs()
{
	ucx_info -b 2>/dev/null | grep -q '#define HAVE_IB '
}

need_ucx_verbs()
{
	need ucx_info
	if ! ucx_has_verbs; then
		echo "skipped: this UCX was built without verbs"
		exit 77
	fi
}

# long COMMAND...: run it only in "./check --long".
long()
{
	[[ ! ${URXE_TEST_LONG-} ]] || "$@"
}

report() # STATUS NAME
{
	if [[ $1 == 0 ]]; then
		passed=$((passed + 1))
		echo "ok: $2"
	else
		failed=$((failed + 1))
		echo "FAILED ($1): $2"
	fi
}

# check NAME PATTERN COMMAND...: with the device it succeeds and prints that.
check()
{
	local name=$1 pattern=$2 status=0 out
	shift 2

	out=$(urxe_run "$@" 2>&1) || status=$?
	if [[ $status == 0 ]] && ! grep -qE -- "$pattern" <<<"$out"; then
		status="no $pattern"
	fi
	report "$status" "$name"
	[[ $status == 0 ]] || echo "$out"
}

finish()
{
	echo "$passed passed, $failed failed, 0 skipped"
	[[ $failed == 0 ]]
	exit
}

# A program with the device, for LIMIT seconds at most: only a hang takes so
# long, on the busiest machine, too.  URXE_TEST_RUN has more options for "urxe
# run".
LIMIT=${URXE_TEST_LIMIT:-600}
urxe_run()
{
	# shellcheck disable=SC2086 # words are meant
	timeout -k 2 "$LIMIT" "$URXE" run ${URXE_TEST_RUN-} -- "$@"
}

# End a program that urxe_run has in the background.
stop() # PID
{
	# the time limit's process, which passes it on; it may not have started
	until pkill -P "$1" || ! kill -0 "$1"; do
		sleep 0.01
	done
	wait "$1"
} 2>/dev/null

# Is there a GID at this index?
has_gid()
{
	urxe_run cat "/sys/class/infiniband/urxe0/ports/1/gids/$1" 2>/dev/null |
		grep -q '[1-9a-f]'
}

# A TCP port that nobody listens on, another one with every call: from a
# region that depends on the process, so that suites may run side by side.
# The answer is in $port.
port=$((20000 + $$ * 97 % 12000))
next_port()
{
	while port=$((port + 1)); listening "$port"; do
		:
	done
}

listening() # PORT
{
	local hex

	hex=$(printf ':%04X' "$1")
	grep -qE "^ *[0-9]+: [0-9A-F]+$hex [0-9A-F:]+ 0A " /proc/net/tcp \
		/proc/net/tcp6 2>/dev/null
}

# await PID COMMAND...: until the command succeeds, or the program that
# urxe_run has in the background has ended.
await()
{
	until "${@:2}" || ! kill -0 "$1" 2>/dev/null; do
		sleep 0.02
	done
}

# Until somebody listens on $port, by TCP or rdma_cm, or PID has ended.
wait_listening() # PID
{
	await "$1" somebody_listens
}

somebody_listens()
{
	listening "$port" || cm_listening "$port"
}

cm_listening() # PORT
{
	[[ ${CMSTAT-} ]] && "$CMSTAT" "$URXE_DIR/$URXE_FABRIC" 2>/dev/null |
		grep -q " port $1 .* listen "
}

# pair NAME SERVER-AND-CLIENT-COMMAND...: run it as server and, when that
# listens on $port, as client.
pair()
{
	local name=$1
	shift

	duo "$name" "$@" -- "$@" localhost
}

# duo NAME SERVER-COMMAND... -- CLIENT-COMMAND...: the client runs when the
# server listens on $port.  Both must succeed, and the client's output must
# match the pattern in $want, if there is one.  Their standard input is $input.
want=.
input=/dev/null
work=$(mktemp -d)
# not by a child that is killed before it has forgotten this
trap '[[ $BASHPID != "$$" ]] || rm -rf "$work"' EXIT
duo()
{
	local name=$1 out=$work/$port status
	shift

	serve_and_ask "$out" "$@"
	status=$?
	if [[ $status == 0 && $want ]] &&
		! grep -qE -- "$want" "$out.client"; then
		status='no result'
	fi
	if grep -qiE 'completion with error|failed status|invalid data' \
		"$out.server" "$out.client"; then
		status='an error was printed'
	fi
	report "$status" "$name"
	if [[ $status != 0 ]]; then
		sed 's/^/  server: /' "$out.server"
		sed 's/^/  client: /' "$out.client"
	fi
}

# How each is run, and what tells that the server may be asked: between hosts
# it is another way.
run_server()
{
	urxe_run "$@"
}

run_client()
{
	urxe_run "$@"
}

server_listens()
{
	somebody_listens
}

# serve_and_ask OUT SERVER-COMMAND... -- CLIENT-COMMAND...: what they print is
# in OUT.server and OUT.client.  A server whose client has failed is ended, and
# both are run again where the client was too early.
serve_and_ask()
{
	local out=$1 serve=() tries=0 status
	shift

	while [[ $1 != -- ]]; do
		serve+=("$1")
		shift
	done
	shift
	until serve_and_ask_once "$@"; do
		status=$?
		tries=$((tries + 1))
		[[ $tries -lt 100 ]] && came_early "$out.client" ||
			return "$status"
	done
}

serve_and_ask_once() # CLIENT-COMMAND...
{
	local serving asking watching status=0

	run_server "${serve[@]}" <"$input" >"$out.server" 2>&1 &
	serving=$!
	await $serving server_listens
	run_client "$@" <"$input" >"$out.client" 2>&1 &
	asking=$!
	end_if_early $asking "$out.client" >/dev/null 2>&1 &
	watching=$!
	wait $asking || status=$?
	{ kill $watching; wait $watching; } 2>/dev/null
	if [[ $status != 0 ]]; then
		stop $serving
		return "$status"
	fi
	wait $serving
}

# Was the client rejected because nobody listens (reason 8)?  A server of
# perftest -R shakes hands by TCP before it calls rdma_listen.
came_early() # FILE
{
	grep -qE 'RDMA_CM_EVENT_REJECTED[,;] error:? 8\b|CM event bl blka 8$' \
		"$1"
}

# Some clients wait for ever then.
end_if_early() # PID FILE
{
	await "$1" came_early_slowly "$2"
	! came_early "$2" || stop "$1"
}

came_early_slowly() # FILE
{
	sleep 0.5
	came_early "$1"
}

# rping with a repaired exit status, for those who source this.
# shellcheck disable=SC2034
rping=$(realpath "$(dirname "${BASH_SOURCE[0]}")/rping")
