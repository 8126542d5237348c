#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# debian.sh SOURCE
#
# dpkg-buildpackage builds the package from a copy of the tree; lintian reports nothing.
# The package has no files where the stock libibverbs or the dynamic linker would find
# them, and no maintainer scripts.  It works in the directory where it is unpacked.

# shellcheck source=tests/packages/lib.sh
. "$(dirname "$0")/lib.sh"

source=$(realpath "$1")
for p in dpkg-buildpackage dh lintian; do
	command -v $p >/dev/null ||
		skip "$p is not installed (Debian: dpkg-dev, debhelper, lintian)"
done
unset URXE_DIR # the trap removes only our own directory
dir=$(mktemp -d)
trap 'rm -rf "$dir" "${URXE_DIR:-}"' EXIT
copy_tree "$source" "$dir/src" || die 'the tree cannot be copied'
cd "$dir/src" || die "$dir/src"

# Remove the settings of sanitizer and cross builds from the environment.
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

# Newer releases of lintian have more tags: fail only for errors and warnings.
"${plain[@]}" lintian --allow-root --pedantic --display-info \
	--fail-on error,warning "$dir"/*.changes >"$dir/lintian" 2>&1
status=$?
cat "$dir/lintian"
[[ $status == 0 ]] || die "lintian ended with status $status"

# Only these files, and no scripts
wanted='bin/urxe
lib/[^/]+/urxe/(lessons/)?[^/]+
lib/[^/]+/pkgconfig/urxe\.pc
share/doc/urxe/.+
share/lintian/overrides/urxe
share/urxe/lessons/.+
share/urxe/profiles/[^/]+\.profile
share/man/man[157]/urxe(-cluster|-faults|-profile)?\.[157]\.gz
share/bash-completion/completions/urxe'
others=$(dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -v '/$' |
	grep -vxE "\./usr/(${wanted//$'\n'/|})")
[[ -z $others ]] || die "unexpected files in the package: $others"
dpkg-deb --ctrl-tarfile "$deb" | tar -t | sort >"$dir/control"
printf '%s\n' ./ ./control ./md5sums | cmp - "$dir/control" ||
	die "unexpected control files: $(cat "$dir/control")"

# dpkg-shlibdeps does not find libraries that are loaded with dlopen.
for p in libibverbs1 libnl-3-200; do
	[[ $(dpkg-deb -f "$deb" Depends) == *$p* ]] || die "the package does not depend on $p"
done

# Run it where it is unpacked.
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
