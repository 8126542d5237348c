#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The page of urxe trace --html in a browser (page.js).  This needs Chromium, node, npm,
# and a package that npm downloads once to a cache.
# Usage: page.sh URXE TRACED [PICTURES]
set -eu
here=$(cd "$(dirname "$0")" && pwd)

skip()
{
	echo "SKIP: $*"
	exit 77
}

for program in node npm chromium; do
	command -v "$program" >/dev/null || skip "$program is not installed"
done
[[ $(node -p 'process.versions.node.split(".")[0]') -ge 18 ]] ||
	skip "node is older than 18"
# Ubuntu's chromium is a snap, or a script that asks to install it.
[[ $(readlink -f "$(command -v chromium)") != *snap* ]] ||
	skip "chromium is a snap"

lock=$(sha256sum "$here/browser/package-lock.json" | cut -c 1-16)
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/urxe-tests/browser-$lock
if [[ ! -d $cache/node_modules/playwright-core ]]; then
	mkdir -p "${cache%/*}" || skip "cannot create a cache directory"
	new=$(mktemp -d "$cache.XXXXXX")
	cp "$here"/browser/package*.json "$new"
	# without ASan's library, which is preloaded for the test programs
	env -u LD_PRELOAD timeout 120 npm ci --prefix "$new" --ignore-scripts \
		--fetch-retries=1 --fetch-retry-mintimeout=1000 \
		--fetch-retry-maxtimeout=5000 \
		--no-audit --no-fund --loglevel=error >&2 || {
		rm -rf "$new"
		skip "npm cannot fetch playwright-core"
	}
	mv -T "$new" "$cache" 2>/dev/null || rm -rf "$new"
fi
NODE_PATH=$cache/node_modules exec node "$here/page.js" "$@"
