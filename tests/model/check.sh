#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# check.sh MODEL [-DMUTANT]: check all executions of MODEL.pml with spin.  With a
# mutant, which is a mistake in the model, at least one execution must fail.  Exit
# status 77 if spin is not installed.

set -u
model=$(realpath "$1") || exit 99
mutant=${2-}
name=$(basename "$model" .pml)
command -v spin >/dev/null || { echo 'SKIP: spin is not installed'; exit 77; }

dir=$(mktemp -d "${TMPDIR:-/tmp}/urxe-model.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99

# shellcheck disable=SC2086 # a mutant is one word or none
spin $mutant -a "$model" >spin.out 2>&1 || { cat spin.out; exit 99; }
${CC:-cc} -O2 -w -DSAFETY -DVECTORSZ=4096 -DCOLLAPSE -o pan pan.c || exit 99
./pan -m1000000 >pan.out 2>&1
if grep -q 'max search depth too small' pan.out; then
	echo "$name: the search depth is too small: not all executions were checked"
	exit 99
fi
errors=$(sed -nE 's/.*errors: ([0-9]+).*/\1/p' pan.out)
grep -E 'states, stored|elapsed' pan.out
case $mutant/$errors in
/0) exit 0 ;;
/*)
	cat pan.out
	# shellcheck disable=SC2086
	spin $mutant -t -p -g "$model" 2>/dev/null | tail -n 150
	exit 1
	;;
*/0)
	echo "$name: no execution fails with $mutant"
	exit 1
	;;
*/[1-9]*) grep -m 1 '^pan:' pan.out ;;
*) cat pan.out; exit 99 ;;
esac
