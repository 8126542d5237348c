# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Common functions of the shell tests.  Sourced with $URXE set to the command; creates a
# private directory for fabrics, and removes it at the end.
set -u

base=/dev/shm
[ -w "$base" ] || base=${TMPDIR:-/tmp}
URXE_DIR=$(mktemp -d "$base/urxe-test.XXXXXX") || exit 99
export URXE_DIR
URXE_FABRIC=t
export URXE_FABRIC
unset URXE_KEEP
trap 'rm -rf "$URXE_DIR"' EXIT
trap 'exit 99' INT TERM

skip() {
	echo "skip: $*"
	exit 77
}

die() {
	echo "failed: $*" >&2
	exit 1
}

have() {
	command -v "$1" >/dev/null 2>&1
}

# await WHAT CMD...: wait until CMD succeeds, for at most two minutes.
await() {
	awaited=$1
	shift
	last=$(($(date +%s) + 120))
	until "$@"; do
		[ "$(date +%s)" -lt $last ] || die "$awaited"
		sleep 0.05
	done
}

# Run a command with the device; it may be a function of the caller.
run() {
	"$URXE" run -- "$@"
}

# has TEXT CMD...: check that the output of CMD contains TEXT.
has() {
	want=$1
	shift
	out=$("$@" 2>&1) || die "$* says: $out"
	case $out in
	*"$want"*) ;;
	*) die "no \"$want\" in the output of $*: $out" ;;
	esac
}
