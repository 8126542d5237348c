# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Common functions of the tests of packages.  Sourced, not run.

set -u -o pipefail

die()
{
	echo "FAILED: $*" >&2
	exit 1
}

skip()
{
	echo "skipped: $*" >&2
	exit 77
}

# copy_tree SRC DEST: copy the sources, without build directories.
copy_tree()
{
	local -a git=(git -c 'safe.directory=*' -C "$1")

	mkdir -p "$2" || return 1
	if "${git[@]}" rev-parse --git-dir >/dev/null 2>&1; then
		"${git[@]}" ls-files -z --cached --others --exclude-standard |
			(cd "$1" && xargs -0 ls -d 2>/dev/null |
				tar -c --files-from=-) | tar -xC "$2"
	else
		tar -cC "$1" --exclude='./build*' . | tar -xC "$2"
	fi
}

# project_version SRC: print the version in meson.build.
project_version()
{
	sed -nE "s/^  version: '(.*)',$/\1/p" "$1/meson.build"
}
