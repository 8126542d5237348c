#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# table.sh ZOO PAGE: check that the table in docs/zoo.md is what zoo -l prints.
exe=$1 page=$2
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
"$exe" -l >"$dir/zoo" || exit 99
grep '^| `' "$page" >"$dir/page"
diff -u "$dir/page" "$dir/zoo" && exit 0
echo "the table in $page differs from the output of $exe -l; update the table"
exit 1
