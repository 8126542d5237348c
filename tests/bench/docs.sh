#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Measure at both priorities, and update the table and the picture in docs:
#   docs.sh BUILD_DIR [OPTION OF URXE BENCH...]
# Run it on an idle machine; the load before the run is above the table.  The table
# replaces the text between the two lines <!-- bench --> of docs/performance.md.
set -eu
urxe=$1/tools/urxe
shift
docs=$(dirname "$0")/../../docs
table=$(mktemp)
trap 'rm -f "$table"' EXIT

{
	echo
	"$urxe" bench --rt "$@" --svg "$docs/pictures/bench.svg" --markdown -
	echo
} >"$table"
sed -i -e "/^<!-- bench -->$/,/^<!-- bench -->$/{//!d}" "$docs/performance.md"
sed -i -e "0,/^<!-- bench -->$/{/^<!-- bench -->$/r $table
}" "$docs/performance.md"
