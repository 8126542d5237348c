#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# examples.sh URXE ctest|meson|pytest: build and test that project of examples/ as a
# user does, with urxe in PATH.  The tests must pass; without urxe they must be
# skipped.  Exit status 77: skipped.

set -eu
urxe=$(realpath "$1")
kind=$2
project=$(realpath "$(dirname "$0")/../../examples/$kind")

own=$(mktemp -d /dev/shm/urxe-test.XXXXXX) || exit 99
build=$(mktemp -d) || exit 99
trap 'rm -rf "$own" "$build"' EXIT
unset URXE_FABRIC LD_PRELOAD CFLAGS
export URXE_DIR=$own
out=$build/out

skip()
{
	echo "SKIP: $*"
	exit 77
}

# Run the tests of the project; their output is in $out.
project_test()
{
	case $kind in
	ctest) ctest --test-dir "$build/b" --output-on-failure ;;
	meson) meson test -C "$build/b" --print-errorlogs ;;
	pytest) "${pytest[@]}" -q -rs -p no:cacheprovider "$project" ;;
	esac >"$out" 2>&1
}

wants()
{
	grep -qE "$1" "$out" || { cat "$out"; echo "no $1"; exit 1; }
}

for header in rdma_cma.h rdma_verbs.h; do
	echo "#include <rdma/$header>" | cc -E - >/dev/null 2>&1 ||
		skip "no $header"
done
export PYTHONDONTWRITEBYTECODE=1
case $kind in
ctest)
	command -v cmake >/dev/null || skip 'no cmake'
	configure=(cmake -S "$project" -B "$build/b")
	cmake=yes
	passed='100% tests passed' skipped='Not Run|Skipped'
	;;
meson)
	configure=(meson setup "$build/b" "$project")
	passed='^Expected Fail: +1' skipped='^Skipped: +2'
	;;
pytest)
	for python in python3 /usr/bin/python3; do
		pytest=("$python" -m pytest)
		"${pytest[@]}" --version >/dev/null 2>&1 && break
		pytest=()
	done
	[[ ${#pytest[@]} -gt 0 ]] || skip 'no pytest'
	configure=()
	passed='4 passed' skipped='4 skipped.*'
	;;
esac

prepare()
{
	rm -rf "$build/b"
	[[ ${#configure[@]} == 0 ]] && return
	"${configure[@]}" >"$out" 2>&1 || { cat "$out"; exit 1; }
	[[ ! ${cmake-} ]] || cmake --build "$build/b" >"$out" 2>&1 ||
		{ cat "$out"; exit 1; }
}

# without urxe, if it is not installed
if ! command -v urxe >/dev/null; then
	prepare
	project_test || { cat "$out"; exit 1; }
	wants "$skipped"
fi

mkdir "$build/bin"
ln -s "$urxe" "$build/bin/urxe"
PATH=$build/bin:$PATH
prepare
project_test || { cat "$out"; exit 1; }
wants "$passed"

# no fabric is left
"$urxe" rm --unused >/dev/null
left=$(ls "$own")
[[ ! $left ]] || { "$urxe" info; echo "left: $left"; exit 1; }
