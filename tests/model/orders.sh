#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# orders.sh: check all executions of the models in orders.cpp, and that each of
# their mistakes is found.  Exit status 77 if g++ or relacy is not installed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/urxe-orders.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT

echo '#include <relacy/relacy.hpp>' | g++ -x c++ -std=c++11 -w -fsyntax-only - \
	2>/dev/null || { echo 'SKIP: relacy is not installed'; exit 77; }
g++ -std=c++11 -O1 -w -o "$dir/orders" "$here/orders.cpp" || exit 99
"$dir/orders" >"$dir/out" || { cat "$dir/out"; exit 1; }

# Each mistake, with the model that contains it: only that model is run.
awk '
	match($0, /^MODEL\([a-z_]+/) { model = substr($0, 7, RLENGTH - 6) }
	match($0, /MISTAKE\([A-Z_]+/) && !/#define/ {
		print model, substr($0, RSTART + 8, RLENGTH - 8)
	}' "$here/orders.cpp" | sort -u >"$dir/mistakes"
found=0
while read -r model mistake; do
	"$dir/orders" "$model" "$mistake" >"$dir/out"
	status=$?
	if [ $status != 1 ]; then
		echo "$mistake is not found in $model (status $status)"
		exit 1
	fi
	found=$((found + 1))
done <"$dir/mistakes"
[ $found -gt 0 ] || { echo 'orders.cpp contains no mistakes'; exit 1; }
echo "$found mistakes were found"
