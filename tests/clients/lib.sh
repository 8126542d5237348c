# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# Common functions of the client tests.  $URXE is the urxe command.

set -u
export LC_ALL=C
failed=0
passed=0
failures=()

# Without the library of a sanitizer, with which procps sometimes hangs
pgrep()
{
	LD_PRELOAD='' command pgrep "$@"
}

pkill()
{
	LD_PRELOAD='' command pkill "$@"
}

# need COMMAND...: skip the test unless the commands are installed.
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

# Check that UCX has its verbs transports; Debian's 1.23 does not.
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

# Set $input for ucx_perftest.  If it is linked with MPI (Debian 13), it needs two ranks,
# unless its standard input is a terminal: then it is server or client, as needed here.
input_for_ucx()
{
	ldd "$(command -v ucx_perftest)" | grep -q libmpi || return 0
	coproc python3 -c 'import os, pty, sys
ends = pty.openpty()
print(os.ttyname(ends[1]), flush=True)
sys.stdin.read()'
	read -r input <&"${COPROC[0]}" || exit 99
}

# long COMMAND...: run the command only in "./check --long".
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
		failures+=("FAILED ($1): $2")
		echo "FAILED ($1): $2"
	fi
}

# check NAME PATTERN COMMAND...: check that the command succeeds with the device, and
# that its output matches PATTERN.
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

# The failures are printed again: only the end of a log may be kept.
finish()
{
	[[ $failed == 0 ]] || printf '%s\n' "${failures[@]}"
	echo "$passed passed, $failed failed, 0 skipped"
	[[ $failed == 0 ]]
	exit
}

# urxe_run COMMAND...: run a program with the device, for at most LIMIT seconds, which
# suffice on a busy machine.  URXE_TEST_RUN has more options for "urxe run".
LIMIT=${URXE_TEST_LIMIT:-600}
urxe_run()
{
	# shellcheck disable=SC2086 # the options are words
	timeout -k 2 "$LIMIT" "$URXE" run ${URXE_TEST_RUN-} -- "$@"
}

# End a background program that was started with urxe_run.
stop() # PID
{
	# signal timeout, which forwards it; it may not have started yet
	until pkill -P "$1" || ! kill -0 "$1"; do
		sleep 0.01
	done
	wait "$1"
} 2>/dev/null

# has_gid INDEX: check that a GID exists.
has_gid()
{
	urxe_run cat "/sys/class/infiniband/urxe0/ports/1/gids/$1" 2>/dev/null |
		grep -q '[1-9a-f]'
}

# Set $port to a free TCP port, a new one at each call.  The range depends on the
# process, so that suites can run in parallel.
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

# await PID COMMAND...: wait until the command succeeds, or the background program PID
# has ended.
await()
{
	until "${@:2}" || ! kill -0 "$1" 2>/dev/null; do
		sleep 0.02
	done
}

# Wait until a process listens on $port, over TCP or rdma_cm, or PID has ended.
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

# pair NAME COMMAND...: run the command as server and, when that listens on $port, as
# client.
pair()
{
	local name=$1
	shift

	duo "$name" "$@" -- "$@" localhost
}

# duo NAME SERVER-COMMAND... -- CLIENT-COMMAND...: run the client when the server
# listens on $port.  Both must succeed, and the output of the client must match $want,
# unless that is empty.  Their standard input is $input.
want=.
input=/dev/null
work=$(mktemp -d)
# not in a child process that is killed before it has reset the trap
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

# How the programs are run, and how a listening server is detected.  Tests between
# hosts replace these functions.
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

# serve_and_ask OUT SERVER-COMMAND... -- CLIENT-COMMAND...: run both, with their output
# in OUT.server and OUT.client.  If the client fails, the server is ended.  If the
# client was too early, both are run again.
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

# Check whether the client was rejected because no process listens (reason 8).  A server
# of perftest -R does its TCP handshake before it calls rdma_listen.
came_early() # FILE
{
	grep -qE 'RDMA_CM_EVENT_REJECTED[,;] error:? 8\b|CM event bl blka 8$' \
		"$1"
}

# End a client that was too early; some clients wait forever then.
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

# rping with a corrected exit status, for scripts that source this file
# shellcheck disable=SC2034
rping=$(realpath "$(dirname "${BASH_SOURCE[0]}")/rping")
