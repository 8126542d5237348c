#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# jobs.sh: run action.py and gitlab.py in a sandbox.  Exit status 77: skipped.
here=$(realpath "$(dirname "$0")")
source=$(realpath "$here/../..")

for p in ibv_devinfo ibv_rc_pingpong meson ninja; do
	command -v $p >/dev/null || { echo "SKIP: no $p"; exit 77; }
done
for python in python3 /usr/bin/python3 ''; do
	[ "$python" ] || { echo "SKIP: no PyYAML"; exit 77; }
	"$python" -c 'import yaml' 2>/dev/null && break
done
exec "$here/in-sandbox" sh -ec '"$1" "$2/action.py" "$3"; "$1" "$2/gitlab.py" "$3"' \
	sh "$python" "$here" "$source"
