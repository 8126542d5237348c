#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# sanitizer.sh URXE: programs built with ASan and TSan by gcc and clang find the device
# and succeed; the sanitizers find bugs of the programs.
URXE=$1
. "$(dirname "$0")/lib.sh"
# new releases of meson set abort_on_error, and clang's TSan reads UBSAN_OPTIONS
unset ASAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS
source=$(dirname "$0")/programs/sanitizer.c
# /dev/shm may be mounted noexec
built=$(mktemp -d) || exit 99
trap 'rm -rf "$URXE_DIR" "$built"' EXIT
app=$built/app
log=$URXE_DIR/log
done=
leaks=1
if have gcc && ! "$(dirname "$0")/../finds-leaks" gcc; then
	echo "LeakSanitizer is not used: it does not work here; ptrace may be forbidden"
	leaks=0
	export ASAN_OPTIONS=detect_leaks=0
fi

# build COMPILER KIND FLAGS...: fail if the compiler has no such sanitizer
build() {
	compiler=$1
	kind=$2
	shift 2
	have "$compiler" || return 1
	case $* in
	*-shared-libasan*)
		set -- "$@" -Wl,-rpath,"$(dirname "$("$compiler" \
			-print-file-name=libclang_rt.asan-x86_64.so)")" ;;
	esac
	"$compiler" -g -O1 "-fsanitize=$kind" "$@" "$source" -o "$app" \
		-libverbs -pthread 2>"$log" && "$app" 2>/dev/null
	# a missing device has a separate exit code; a sanitizer that cannot start is killed
	[ $? -lt 126 ] || return 1
	done="$done $compiler:$kind"
}

plays() {
	"$@" >"$log" 2>&1 || die "$done: $*: exit code $?: $(cat "$log")"
	grep -q "^played" "$log" || die "$done: $*: $(cat "$log")"
}

# finds WHAT: check that the sanitizer reports the bug
finds() {
	"$URXE" run "$app" bug >"$log" 2>&1 && die "$done: no bug was found"
	grep -qE "$1" "$log" || die "$done: no $1: $(cat "$log")"
}

asan() {
	plays "$URXE" run "$app"
	# a script that sets sanitizer options itself
	plays "$URXE" run sh -c "ASAN_OPTIONS=detect_leaks=$leaks '$app'"
	finds "heap-use-after-free"
}

build gcc address && asan
build clang address && asan
build clang address -shared-libasan && asan
build gcc address -DOWN_OPTIONS && plays "$URXE" run "$app"
for compiler in gcc clang; do
	build $compiler thread || continue
	plays "$URXE" run "$app"
	# with a line of the source, if a symbolizer is installed
	finds "data race.*(sanitizer\.c|$app\+0x)"
	TSAN_OPTIONS=exitcode=3 "$URXE" run "$app" bug >/dev/null 2>&1
	code=$?
	[ $code = 3 ] || die "$done: exit code $code instead of the one that the user has set"
done
[ "$done" ] || skip "no compiler has a sanitizer"
echo "$done"
