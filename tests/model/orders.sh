#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# orders.sh: every run of the models in orders.cpp is right, and each mistake in
# them is found.  77 where g++ or relacy is not installed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/urxe-orders.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT

echo '#include <relacy/relacy.hpp>' | g++ -x c++ -std=c++11 -w -fsyntax-only - \
	2>/dev/null || { echo 'SKIP: relacy is not installed'; exit 77; }
g++ -std=c++11 -O1 -w -o "$dir/orders" "$here/orders.cpp" || exit 99
"$dir/orders" >"$dir/out" || { cat "$dir/out"; exit 1; }
found=0
for mutant in $(grep -o 'MISTAKE([A-Z_]*' "$here/orders.cpp" | cut -d '(' -f 2); do
	if "$dir/orders" "$mutant" >"$dir/out"; then
		echo "$mutant is not found"
		exit 1
	fi
	found=$((found + 1))
done
echo "$found mistakes were found"
