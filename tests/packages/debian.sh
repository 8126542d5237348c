#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# debian.sh SOURCE
#
# dpkg-buildpackage builds the package from a copy of the tree, lintian has
# nothing to say, and the package is what it should be: nothing where the
# stock libibverbs or the dynamic linker would find it, no scripts of its own,
# and it works from where it is unpacked.

# shellcheck source=tests/packages/lib.sh
. "$(dirname "$0")/lib.sh"

source=$(realpath "$1")
for p in dpkg-buildpackage dh lintian; do
	command -v $p >/dev/null ||
		skip "$p is not installed (Debian: dpkg-dev, debhelper, lintian)"
done
unset URXE_DIR # what is removed is our own
dir=$(mktemp -d)
trap 'rm -rf "$dir" "${URXE_DIR:-}"' EXIT
copy_tree "$source" "$dir/src" || die 'the tree cannot be copied'
cd "$dir/src" || die "$dir/src"

# What a sanitizer's or a cross build has in its environment is not for this.
plain=(env -u CC -u CFLAGS -u LDFLAGS -u LD_PRELOAD -u DESTDIR -u MAKEFLAGS
	-u ASAN_OPTIONS -u UBSAN_OPTIONS)
dpkg-checkbuilddeps -Pnocheck 2>"$dir/missing" ||
	skip "$(cat "$dir/missing")"
DEB_BUILD_OPTIONS=nocheck "${plain[@]}" dpkg-buildpackage -Pnocheck -b -us -uc \
	>"$dir/log" 2>&1 </dev/null || {
	tail -n 60 "$dir/log"
	die 'dpkg-buildpackage'
}
version=$(project_version "$source")
deb=$(echo "$dir"/urxe_"$version"_*.deb)
[[ -f $deb ]] || die "no package of version $version: $(ls "$dir")"

# The release of lintian knows more tags in newer ones: only what it calls an
# error or a warning fails there.
"${plain[@]}" lintian --allow-root --pedantic --display-info \
	--fail-on error,warning "$dir"/*.changes >"$dir/lintian" 2>&1
status=$?
cat "$dir/lintian"
[[ $status == 0 ]] || die "lintian ended with status $status"

# Nothing but these, and no script: the rest of the system is left alone.
wanted='bin/urxe
lib/[^/]+/urxe/(lessons/)?[^/]+
lib/[^/]+/pkgconfig/urxe\.pc
share/doc/urxe/.+
share/lintian/overrides/urxe
share/urxe/lessons/.+
share/man/man[17]/urxe(-faults)?\.[17]\.gz
share/bash-completion/completions/urxe'
others=$(dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -v '/$' |
	grep -vxE "\./usr/(${wanted//$'\n'/|})")
[[ -z $others ]] || die "what else is in the package: $others"
dpkg-deb --ctrl-tarfile "$deb" | tar -t | sort >"$dir/control"
printf '%s\n' ./ ./control ./md5sums | cmp - "$dir/control" ||
	die "what else is done: $(cat "$dir/control")"

# What is loaded with dlopen, dpkg-shlibdeps does not see.
for p in libibverbs1 libnl-3-200; do
	[[ $(dpkg-deb -f "$deb" Depends) == *$p* ]] || die "does not need $p"
done

# From where it is unpacked.
dpkg-deb -x "$deb" "$dir/root" || die 'the package cannot be unpacked'
urxe=$dir/root/usr/bin/urxe
[[ $("$urxe" --version) == "urxe $version" ]] || die 'urxe --version'
if command -v ibv_devinfo >/dev/null; then
	URXE_DIR=$(mktemp -d /dev/shm/urxe-test-XXXXXX) || die '/dev/shm'
	export URXE_DIR
	"${plain[@]}" timeout 60 "$urxe" run -- ibv_devinfo -d urxe0 \
		>"$dir/out" 2>&1 || die "ibv_devinfo: $(cat "$dir/out")"
	grep PORT_ACTIVE "$dir/out" || die "ibv_devinfo: $(cat "$dir/out")"
	"${plain[@]}" timeout 60 "$urxe" lesson 1 >"$dir/out" 2>&1 ||
		die "lesson 1: $(cat "$dir/out")"
fi
