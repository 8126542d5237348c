#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# table.sh ZOO PAGE: the table in docs/zoo.md is the zoo's.
exe=$1 page=$2
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
"$exe" -l >"$dir/zoo" || exit 99
grep '^| `' "$page" >"$dir/page"
diff -u "$dir/page" "$dir/zoo" && exit 0
echo "the table in $page is not what $exe -l prints"
exit 1
